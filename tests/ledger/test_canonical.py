"""The canonical row: equal in Python, in ClickHouse SQL and in a stand-alone script."""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.samples import observation

from facta.ledger.canonical import (
    COLUMNS,
    NotCanonicalError,
    decode_row,
    encode_observation,
    encode_row,
    id_of,
    leaf_of,
    observation_id,
    without_receipt,
)
from facta.ledger.vectors import CASES, text
from facta.model.observation import Observation

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "schema" / "canonical-row-vectors.json"
KEY = bytes(range(32))

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_integers = st.integers(-(2**63), 2**63 - 1)
_types = {"s": _texts, "i": _integers, "b": st.binary(max_size=300)}
observations = st.builds(Observation, **{name: _types[kind] for name, kind in COLUMNS})


def test_the_vectors_are_those_of_this_code() -> None:
    assert VECTORS.read_text() == text()


def test_a_script_of_the_standard_library_alone_gives_the_same() -> None:
    script = Path(__file__).with_name("canonical_row_check.py")
    ran = subprocess.run(
        [sys.executable, "-I", script, VECTORS], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "all equal\n")


def test_the_script_finds_a_changed_vector(tmp_path: Path) -> None:
    changed = json.loads(VECTORS.read_text())
    changed["cases"][0]["columns"]["session"] += " "
    (tmp_path / "vectors.json").write_text(json.dumps(changed))
    script = Path(__file__).with_name("canonical_row_check.py")
    ran = subprocess.run(
        [sys.executable, "-I", script, tmp_path / "vectors.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "plain\nroots\n")


def _sql_value(name: str, kind: str) -> str:
    if kind == "i":
        return f"'i', unhex(leftPad(hex({name}), 16, '0'))"
    return f"'s', unhex(leftPad(hex(toUInt64(length({name}))), 16, '0')), {name}"


# In a process of its own: an engine in this one would hold its directory for all other tests.
_SQL_IN_A_PROCESS = """
import sys
import chdb
print(chdb.query(sys.argv[1], "JSONCompactEachRow"))
"""
_QUERY = """
SELECT hex(row), lower(hex(SHA256(concat(char(0), row))))
FROM (SELECT place, {row} AS row FROM (SELECT place, {columns} FROM file('{file}', JSONEachRow, '{types}')))
ORDER BY place
"""


def _in_sql(cases: list[tuple[Observation, int]], path: Path) -> list[tuple[str, str]]:
    """(row, leaf) of each case as ClickHouse makes them, in a process of its own."""
    names = [(name, kind) for name, kind in COLUMNS] + [("received_ns", "i")]
    with path.open("w") as stream:
        for place, (obs, received_ns) in enumerate(cases):
            row = {n: getattr(obs, n) for n, _ in COLUMNS} | {"received_ns": received_ns}
            row = {n: v.encode().hex() if isinstance(v, str) else v for n, v in row.items()}
            stream.write(json.dumps(row | {"body": obs.body.hex(), "place": place}) + "\n")
    columns = ", ".join(n if kind == "i" else f"unhex({n}) AS {n}" for n, kind in names)
    types = ", ".join(f"{n} {'Int64' if kind == 'i' else 'String'}" for n, kind in names)
    types += ", place UInt32"
    row_sql = f"concat(char(1), {', '.join(_sql_value(n, kind) for n, kind in names)})"
    query = _QUERY.format(row=row_sql, columns=columns, file=path, types=types)
    ran = subprocess.run(
        [sys.executable, "-c", _SQL_IN_A_PROCESS, query],
        capture_output=True,
        text=True,
        check=True,
        cwd=path.parent,
        env=os.environ,
    )
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines() if line]


def test_clickhouse_sql_gives_the_same_rows_and_leaves(tmp_path: Path) -> None:
    big = replace(CASES[0][1], body=b"z" * 10_000_000)
    many = [(replace(CASES[0][1], start_ns=n, body=bytes([n % 256])), n) for n in range(600)]
    cases = [(obs, received) for _, obs, received in CASES] + [(big, 1), *many]
    expected = [
        (encode_row(*case).hex().upper(), leaf_of(encode_row(*case)).hex()) for case in cases
    ]
    found = _in_sql(cases, tmp_path / "cases.json")
    assert len(found) == len(expected)
    assert [n for n, pair in enumerate(found) if tuple(pair) != expected[n]] == []
    # The trap of FixedString: hashes that end in a zero byte must be among those compared.
    assert any(leaf.endswith("00") for _, leaf in expected)


@given(observations, _integers)
def test_decoding_inverts_encoding(obs: Observation, received_ns: int) -> None:
    row = encode_row(obs, received_ns)
    assert decode_row(row) == (obs, received_ns)
    assert without_receipt(row) == encode_observation(obs)
    assert decode_row(row, "f" * 32)[0].id == "f" * 32


@given(observations, observations)
def test_different_observations_have_different_bytes_and_ids(
    one: Observation, other: Observation
) -> None:
    assert (encode_observation(one) == encode_observation(other)) == (one == other)
    assert (observation_id(KEY, one) == observation_id(KEY, other)) == (one == other)


@given(observations, st.data())
def test_a_row_cut_or_changed_never_reads_as_the_same(obs: Observation, data: Any) -> None:
    row = encode_row(obs, 1)
    with pytest.raises(NotCanonicalError):
        decode_row(row[: data.draw(st.integers(0, len(row) - 1))])
    with pytest.raises(NotCanonicalError):
        decode_row(row + b"\0")
    changed = bytearray(row)
    changed[data.draw(st.integers(0, len(row) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(NotCanonicalError):
        assert decode_row(bytes(changed)) != (obs, 1)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for candidate in (raw, b"\x01" + raw):
        try:
            assert encode_row(*decode_row(candidate)) == candidate
        except NotCanonicalError:
            continue


@pytest.mark.parametrize("name", [name for name, _ in COLUMNS])
def test_every_column_counts(name: str) -> None:
    plain = observation(1)
    value = getattr(plain, name)
    other = value + (1 if isinstance(value, int) else b"x" if isinstance(value, bytes) else "x")
    assert observation_id(KEY, plain) != observation_id(KEY, replace(plain, **{name: other}))


def test_ids_are_keyed_and_leave_the_receipt_out() -> None:
    obs = observation(1)
    assert observation_id(KEY, obs) != observation_id(bytes(32), obs)
    assert id_of(KEY, without_receipt(encode_row(obs, 5))).hex() == observation_id(KEY, obs)
    assert observation_id(KEY, obs) == observation_id(KEY, replace(obs, id="0" * 32))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"session": "secret \ud800"}, "session is not Unicode text"),
        ({"start_ns": 2**63}, "start_ns does not fit in 64 bits"),
        ({"end_ns": -(2**63) - 1}, "end_ns does not fit in 64 bits"),
    ],
)
def test_what_has_no_canonical_form_is_refused_without_its_value(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(NotCanonicalError) as caught:
        encode_observation(replace(observation(1), **change))
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_body_of_ten_megabytes() -> None:
    obs = observation(1, body=b"\0x" * 5_000_000)
    row = encode_row(obs, 1)
    assert decode_row(row) == (obs, 1)
    assert leaf_of(row) == hashlib.sha256(b"\0" + row).digest()

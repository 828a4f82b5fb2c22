"""Every payload of tests/data/otlp: what is sealed in it is exactly what its ground truth lists."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from facta.model.records import Record
from facta.sealing import seal

DATA = Path(__file__).parents[1] / "data" / "otlp"
SEALED: dict[str, dict[str, Any]] = json.loads((DATA / "EXPECT.json").read_text())["sealed"]
RUNS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
BY_BYTES = {facts["sha256_of_decoded_bytes"]: name for name, facts in SEALED.items()}
KINDS = {
    "oa": "openai.reasoning",
    "an": "anthropic.signature",
    "ge": "gemini.thought_signature",
    "cc": "openai.reasoning",
}


def _expected(run: str) -> tuple[Counter[str], int]:
    """How often each value stands in the run's payloads whole, and how often one is cut."""
    whole: Counter[str] = Counter()
    cut = 0
    for line in (DATA / "LOCATIONS.tsv").read_text().splitlines()[1:]:
        cells = line.split("\t")
        if cells[0] != run or cells[1] != "SEAL":
            continue
        for name, state, count in re.findall(r"(\w+):([a-z,-]+?)x(\d+)", cells[7]):
            if state == "truncated":
                cut += int(count)
            else:
                whole[name] += int(count)
    return whole, cut


def _kind(name: str) -> str:
    special = {"oa_cmp": "openai.compaction", "an_t2_redacted": "anthropic.redacted_thinking"}
    return special.get(name, KINDS[name[:2]])


def _values(texts: list[str]) -> set[str]:
    """The sealed values that stand in the texts, whole or cut (each holds a canary)."""
    runs = {run for text in texts for run in re.findall(r"[A-Za-z0-9+/_=-]{64,}", text)}
    return {run for run in runs if "SEALEDCANARY" in run}


def test_there_are_runs() -> None:
    assert len(RUNS) >= 50


@pytest.mark.parametrize("run", RUNS)
def test_each_value_of_a_run_is_sealed_and_nothing_else(
    run: str, records_of: Callable[[str], list[Record]]
) -> None:
    whole, cut = _expected(run)
    seen = [sealed for record in records_of(run) for sealed in seal(record).marks.sealed]
    got = Counter(BY_BYTES.get(s.sha256_decoded, "stray") for s in seen if s.state == "whole")
    assert got == whole
    assert sum(s.state == "truncated" for s in seen) == cut
    for sealed in (s for s in seen if s.state == "whole"):
        name = BY_BYTES[sealed.sha256_decoded]
        assert sealed.size == SEALED[name]["chars"]
        assert sealed.kind == _kind(name)
    for sealed in (s for s in seen if s.state != "whole"):
        assert not sealed.sha256
        assert not sealed.sha256_decoded


@pytest.mark.parametrize("run", RUNS)
def test_the_text_hash_is_the_one_as_received(
    run: str, records_of: Callable[[str], list[Record]]
) -> None:
    """Gemini values in the url alphabet have another text and the same bytes; all others agree."""
    for record in records_of(run):
        for sealed in (s for s in seal(record).marks.sealed if s.state == "whole"):
            name = BY_BYTES[sealed.sha256_decoded]
            same = sealed.sha256 == SEALED[name]["sha256_of_text"]
            assert same or (name.startswith("ge_") and sealed.alphabet == "url")
            assert sealed.alphabet == (
                "url" if name[:2] in ("oa", "cc") or not same else "standard"
            )


@pytest.mark.parametrize("run", RUNS)
def test_no_piece_of_a_value_is_left(
    run: str,
    records_of: Callable[[str], list[Record]],
    text_of: Callable[[Record], str],
) -> None:
    records = records_of(run)
    values = _values([text_of(record) for record in records])
    windows = {value[at : at + 16] for value in values for at in range(len(value) - 15)}
    windows |= {window.encode().hex() for window in windows}
    for record in records:
        left = text_of(seal(record))
        leaked = any(left[at : at + 16] in windows for at in range(len(left) - 15))
        assert not leaked
        assert not any(left[at : at + 32] in windows for at in range(len(left) - 31))
        assert "SEALEDCANARY" not in left


@pytest.mark.parametrize("run", RUNS)
def test_all_other_text_is_exact(
    run: str, records_of: Callable[[str], list[Record]], text_of: Callable[[Record], str]
) -> None:
    """With the marks taken out of the one, and the values out of the other, both are the same."""
    for record in records_of(run):
        sealed = seal(record)
        before, after = text_of(record), text_of(sealed)
        for value in sorted(_values([before]), key=len, reverse=True):
            before = before.replace(value, "@")
        for mark, index in re.findall(r"(\ue000[0-9a-f]+:(\d+)\ue001)", after):
            withheld = sealed.marks.sealed[int(index)].state == "withheld"
            after = after.replace(mark, "<REDACTED>" if withheld else "@")
        same = before == after
        assert same

"""The commands over a data folder that nobody serves, over HTTP, and over one that is held."""

import asyncio
import base64
import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from facta.api import LedgerStatus, Tokens, create_app
from facta.cli import main
from facta.cli.commands import run
from facta.settings import Settings
from facta.store.embedded import EmbeddedStore

Facta = Callable[..., Any]


def test_sessions_newest_first(facta: Facta) -> None:
    ran = facta("sessions")
    assert ran.code == 0
    head, *rows = ran.out.splitlines()
    assert head.split() == (
        ["session_id", "service", "models", "turns", "calls", "effects", "sealed", "gaps"]
    )
    assert [row.split()[0] for row in rows] == ["s-chat", "s-refund"]
    assert ran.err == ""


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "table"])
def test_data_goes_to_stdout_in_every_format(facta: Facta, form: str) -> None:
    ran = facta("sessions", "--format", form, "--service", "chat")
    assert (ran.code, ran.err) == (0, "")
    if form == "json":
        assert [row["session_id"] for row in json.loads(ran.out)] == ["s-chat"]
    elif form == "jsonl":
        assert json.loads(ran.out)["session_id"] == "s-chat"
    else:
        assert len(ran.out.splitlines()) == 2


def test_a_limit_says_that_there_is_more(facta: Facta) -> None:
    ran = facta("sessions", "--limit", "1", "--format", "jsonl")
    assert json.loads(ran.out)["session_id"] == "s-chat"
    assert "there are more than these 1" in ran.err


def test_a_timeline_in_its_formats(facta: Facta) -> None:
    table = facta("timeline", "s-refund")
    assert table.code == 0
    assert "issue_refund" in table.out
    assert "looked up the order" not in table.out
    assert "NOT EVIDENCE" in facta("timeline", "s-old", "--ux").out
    whole = json.loads(facta("timeline", "s-refund", "--format", "json").out)
    lines = facta("timeline", "s-refund", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == whole["steps"]


def test_sightings_are_unfolded(facta: Facta) -> None:
    rows = [json.loads(line) for line in facta("sightings", "--format", "jsonl").out.splitlines()]
    assert [row["turn_id"] for row in rows] == ["c1", "t1", "t2", "t2", "t3", "t3", "t3"]
    ran = facta("sightings", "--kind", "anthropic.signature", "--format", "csv")
    assert len(ran.out.splitlines()) == 2


def blob(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("around", ["{}", "{}\n", '"{}"\r\n', "  {} "])
def test_a_blob_is_found_by_the_hash_of_its_text(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    blob(monkeypatch, around.format("r1").encode())
    ran = facta("sightings", "--blob", "-", "--format", "jsonl")
    assert [json.loads(line)["turn_id"] for line in ran.out.splitlines()] == ["t1", "t2", "t3"]
    assert ran.code == 0


@pytest.mark.parametrize(
    "encode",
    [
        base64.b64encode,
        base64.urlsafe_b64encode,
        lambda data: base64.b64encode(data).rstrip(b"="),
        lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
    ],
)
def test_a_blob_is_found_by_the_hash_of_its_decoded_bytes(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, encode: Callable[[bytes], bytes]
) -> None:
    blob(monkeypatch, encode(b"r1-decoded") + b"\n")
    ran = facta("sightings", "--blob", "-", "--format", "jsonl")
    assert [json.loads(line)["turn_id"] for line in ran.out.splitlines()] == ["t1", "t2", "t3"]


def test_an_unknown_blob_is_said_and_forgotten(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    canary = b"canary5d1f" * 20
    blob(monkeypatch, canary)
    ran = facta("sightings", "--blob", "-")
    assert ran.code == 0
    assert "nobody here has shown this value" in ran.err
    assert "canary" not in ran.out + ran.err
    assert not [path for path in data.rglob("*") if path.is_file() and canary in path.read_bytes()]


def test_a_blob_comes_from_standard_input_alone(
    facta: Facta, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = facta("sightings", "--blob", "canary5d1f")
    assert ran.code == 2
    assert "canary" not in ran.err
    blob(monkeypatch, b"\n")
    assert facta("sightings", "--blob", "-").code == 2


USAGE = [
    ["nosuch"],
    ["timeline"],
    ["timeline", "no-such-session"],
    ["timeline", "s-refund", "--format", "csv"],
    ["sessions", "--format", "xml"],
    ["sessions", "--limit", "0"],
    ["sessions", "--since", "yesterday"],
    ["tokens", "list"],
    ["tokens", "create", "--scope", "ingest"],
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
@pytest.mark.parametrize("form", [[], ["--format", "json"]], ids=["", "json"])
def test_usage_and_input_errors_are_2(facta: Facta, arguments: list[str], form: list[str]) -> None:
    ran = facta(*arguments, *(form if "--format" not in arguments else []))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err
    assert "Traceback" not in ran.err


def test_a_wrong_setting_is_2_and_not_repeated(
    facta: Facta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTA_HTTP_PORT", "canary5d1f")
    ran = facta("sessions")
    assert ran.code == 2
    assert "FACTA_HTTP_PORT" in ran.err
    assert "canary" not in ran.err


def test_no_store_and_nobody_there_is_3(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FACTA_DATA", str(tmp_path / "none"))
    ran = facta("sessions")
    assert ran.code == 3
    assert "start `facta up`" in ran.err
    assert not (tmp_path / "none").exists()


def test_a_server_elsewhere_that_is_away_is_3(
    facta: Facta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTA_URL", "http://facta.invalid:4318")
    ran = facta("sessions")
    assert ran.code == 3
    assert "no Facta answers at FACTA_URL" in ran.err


def test_a_held_store_says_who_holds_it(facta: Facta, data: Path) -> None:
    store = EmbeddedStore.at(data)
    try:
        ran = facta("sessions")
    finally:
        store.close()
    assert ran.code == 3
    assert f"process {os.getpid()} has the store" in ran.err
    assert ran.err.count("\n") == 1


@pytest.fixture
def served(data: Path, tmp_path: Path) -> Iterator[tuple[str, Tokens]]:
    """The seeded folder behind uvicorn, with tokens."""
    store = EmbeddedStore.at(data)
    tokens = Tokens(tmp_path / "tokens.json")
    status = LedgerStatus(5000, 10, resolved=True)
    app = create_app(store, lambda: status, tokens, Settings(data=data))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", tokens
        server.should_exit = True
        thread.join()
    store.close()


def test_through_http_when_somebody_serves(
    facta: Facta, served: tuple[str, Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, tokens = served
    monkeypatch.setenv("FACTA_URL", url)
    ran = facta("sessions")
    assert ran.code == 2
    assert "set FACTA_TOKEN" in ran.err
    monkeypatch.setenv("FACTA_TOKEN", tokens.create(["evidence"]))
    assert "s-refund" in facta("sessions").out
    assert "issue_refund" in facta("timeline", "s-old").out
    ran = facta("timeline", "s-refund", "--ux")
    assert ran.code == 2
    assert "lacks the scope ux" in ran.err
    monkeypatch.setenv("FACTA_TOKEN", tokens.create(["evidence", "ux"]))
    assert "I looked up the order first." in facta("timeline", "s-refund", "--ux").out
    ran = facta("doctor")
    assert ran.code == 1
    assert "store behind: 4,990 observations wait" in ran.out


def test_doctor_finds_what_is_wrong(facta: Facta) -> None:
    ran = facta("doctor")
    assert ran.code == 1
    found = [line.split(":")[0] for line in ran.out.splitlines() if not line.startswith(" ")]
    assert [name for name in found if name != "disk nearly full"] == [
        "nothing arriving",
        "no content (chat)",
        "no session ids (chat)",
        "sealed by shape (chat)",
        "sealed in plain telemetry (anthropic.instrumentation)",
    ]
    rows = json.loads(facta("doctor", "--format", "json").out)
    assert all(row["hint"] for row in rows)
    assert facta("doctor", "--format", "csv").code == 1


def test_tokens_are_made_listed_and_revoked(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FACTA_TOKENS", str(tmp_path / "tokens.json"))
    made = facta("tokens", "create", "--scope", "evidence", "--scope", "ux", "--tenant", "acme")
    assert made.code == 0
    text = made.out.strip()
    assert text.startswith("facta_")
    identity = Tokens(tmp_path / "tokens.json").identify(f"Bearer {text}")
    assert (identity.tenant, sorted(identity.scopes)) == ("acme", ["evidence", "ux"])
    listed = facta("tokens", "list", "--format", "json")
    [row] = json.loads(listed.out)
    assert row["scopes"] == ["evidence", "ux"]
    assert "hash" not in row
    assert text not in listed.out
    assert facta("tokens", "revoke", "nosuch").code == 2
    assert facta("tokens", "revoke", row["id"]).code == 0
    assert json.loads(facta("tokens", "list", "--format", "json").out) == []
    assert facta("tokens", "create", "--scope", "root").code == 2


def test_up_refuses_another_address_without_tokens(
    facta: Facta, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        monkeypatch.setenv("FACTA_HOST", host)
        monkeypatch.setenv("FACTA_DATA", str(tmp_path / "new"))
        ran = facta("up", "--no-dashboard")
        assert ran.code == 2
        assert "set FACTA_TOKENS" in ran.err
    assert not (tmp_path / "new").exists()


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "facta.cli.commands", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "pip install 'facta[server]'" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_traceback(data: Path, nobody: str) -> None:
    environment = {**os.environ, "FACTA_DATA": str(data), "FACTA_URL": nobody}
    code = "from facta.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "sightings"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()
    assert process.returncode == 3
    assert "Traceback" not in told


def test_help_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in ("up", "demo", "sessions", "timeline", "sightings", "doctor", "tokens"):
        assert f" {command} " in shown


def test_a_caller_with_a_running_event_loop_is_served_as_well(facta: Facta) -> None:
    async def inside() -> str:
        shown: str = facta("sessions", "--format", "json").out
        return shown

    with ThreadPoolExecutor(1) as thread:
        assert "s-refund" in thread.submit(asyncio.run, inside()).result()

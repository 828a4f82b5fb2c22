"""Each request of captured runs sent again because its answer was lost: nothing is there twice."""

import socket
from pathlib import Path

import pytest
from tests.evidence.harness import Tables, files_of
from tests.faults.inside import Inside, serving, settings
from tests.faults.payloads import PROTOBUF

pytestmark = pytest.mark.fault

RUNS = ("otel-openai-responses", "openinference-anthropic", "vercel-ai7-openai", "codex-cli")


def requests_of(run: str) -> list[tuple[str, str, bytes]]:
    """Path, content type and body of a run's requests."""
    kinds = {".binpb": PROTOBUF, ".json": "application/json"}
    return [
        (f"/v1/{signal}", kinds[file.suffix], file.read_bytes()) for signal, file in files_of(run)
    ]


def sent_without_hearing(home: Inside, path: str, kind: str, data: bytes) -> None:
    """Send a request, wait until it is answered, and close without having read the answer."""
    with socket.create_connection(("127.0.0.1", home.http)) as connection:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: facta\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        connection.sendall(head.encode() + data)
        assert connection.recv(1, socket.MSG_PEEK)


def test_repeats_change_nothing_but_their_count(tmp_path: Path) -> None:
    plain: dict[str, Tables] = {}
    sizes: dict[str, int] = {}
    for run in RUNS:
        with serving(settings(tmp_path / run)) as home:
            for path, kind, data in requests_of(run):
                assert home.post(data, path, content_type=kind) == 200
            plain[run], sizes[run] = home.settled(), home.facta.ledger.size
            assert home.get("/api/v1/status")["repeats"] == 0
    for run in RUNS:
        # The same tenant key, so that commitments are the same too.
        again = tmp_path / f"{run}-again"
        (again / "ledger").mkdir(parents=True)
        (tmp_path / run / "ledger" / "keys").rename(again / "ledger" / "keys")
        with serving(settings(again)) as home:
            for number, (path, kind, data) in enumerate(requests_of(run)):
                before = home.facta.ledger.size
                sent_without_hearing(home, path, kind, data)
                assert home.facta.ledger.size > before or number
                if number % 2:  # the store has seen the first when the second comes, or not yet
                    home.settled()
                assert home.post(data, path, content_type=kind) == 200
            assert home.settled() == plain[run]
            assert home.facta.ledger.size == sizes[run]
            assert home.get("/api/v1/status")["repeats"] == sizes[run]
            assert home.facta.ledger.verify() == []

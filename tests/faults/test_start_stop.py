"""Starting where something is in the way, and stopping with requests in flight."""

import signal
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest
from tests.faults.inside import settings, until
from tests.faults.lives import Nursery, Senders
from tests.faults.payloads import body, trace_of
from tests.faults.test_store_away import export

from facta.app.serve import open_collector
from facta.app.service import Facta

pytestmark = pytest.mark.fault

STOP_SECONDS = 5.0


def test_a_stop_with_requests_in_flight(tmp_path: Path, nursery: Nursery) -> None:
    life = nursery.start(tmp_path / "data")
    senders = Senders(life)
    senders.start([[(n, body(n)) for n in range(first, 4000, 4)] for first in range(4)])
    senders.wait_for(8)
    # One that never sends all of its body, one that never sends a whole head, one idle gRPC channel.
    half = socket.create_connection(("127.0.0.1", life.http))
    half.sendall(
        b"POST /v1/traces HTTP/1.1\r\nHost: f\r\nContent-Type: application/x-protobuf\r\n"
        b"Content-Length: 9000000\r\n\r\n" + b"\x0a" * 3_000_000
    )
    quiet = socket.create_connection(("127.0.0.1", life.http))
    quiet.sendall(b"POST /v1/traces HT")
    with half, quiet, grpc.insecure_channel(f"127.0.0.1:{life.grpc}") as channel:
        grpc.channel_ready_future(channel).result(60)
        began = time.monotonic()
        assert life.end(signal.SIGTERM) == 0
        took = time.monotonic() - began
    senders.join()
    assert took < STOP_SECONDS
    log = life.log.read_text()
    assert "Traceback" not in log
    assert "Error" not in log
    life = nursery.start(tmp_path / "data")
    told = life.json("/check?resolved")
    assert told["found"] == []
    assert {trace_of(n) for n in senders.acknowledged} <= told["traces"].keys()
    assert life.end(signal.SIGINT) == 0


def test_a_stop_while_something_hangs(tmp_path: Path, nursery: Nursery) -> None:
    """A body that takes long to read: it was not acknowledged, so nobody waits for it."""
    life = nursery.start(tmp_path / "data")
    assert life.post(body(0))[0] == 200
    large = body(1, text="x" * 1000) * 12_000
    threading.Thread(target=_ignored, args=(life.http, large), daemon=True).start()
    life.json("/health")
    began = time.monotonic()
    assert life.end(signal.SIGTERM) == 0
    assert time.monotonic() - began < STOP_SECONDS
    life = nursery.start(tmp_path / "data")
    assert life.json("/check")["found"] == []
    assert life.end(signal.SIGTERM) == 0


def _ignored(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"POST /v1/traces HTTP/1.1\r\nHost: f\r\nContent-Type: application/x-protobuf\r\nContent-Length: {len(data)}\r\n\r\n"
        try:
            connection.sendall(head.encode() + data)
            connection.recv(1)
        except OSError:
            return


@pytest.mark.parametrize("setting", ["http_port", "grpc_port"])
def test_a_port_in_use_is_said_in_one_line(tmp_path: Path, nursery: Nursery, setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        http, grpc_ = (port if setting == name else "0" for name in ("http_port", "grpc_port"))
        life = nursery.start(tmp_path / "data", http_port=http, grpc_port=grpc_)
    assert life.code == 2
    [line] = life.log.read_text().splitlines()
    assert port in line
    assert f"FACTA_{setting.upper()}" in line


def test_a_second_one_on_the_same_data_names_the_first(
    tmp_path: Path, nursery: Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    life = nursery.start(tmp_path / "data")
    for ports in (
        {"http_port": 0, "grpc_port": 0},
        {"http_port": life.http, "grpc_port": life.grpc},
    ):
        assert open_collector(settings(tmp_path / "data", **ports)) == 3
        [line] = capfd.readouterr().err.splitlines()
        assert str(life.pid) in line
    export(life.grpc, body(0))
    assert life.end(signal.SIGTERM) == 0


def test_what_was_opened_is_closed_when_the_rest_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = {thread.name for thread in threading.enumerate()}
    for name in (
        "facta.app.service.Projector",
        "facta.app.service.Store.open",
        "facta.app.serve.create_app",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, broken)
            assert open_collector(settings(tmp_path, http_port=0, grpc_port=0)) == 2
    until(lambda: {t.name for t in threading.enumerate()} <= before)
    home = Facta.open(settings(tmp_path))
    home.close()

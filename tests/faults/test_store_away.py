"""The store away, broken or gone: senders do not notice, and afterwards all of it is there, once."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from clickhouse_connect.driver._chdbclient import ChdbClient
from clickhouse_connect.driver.exceptions import OperationalError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from tests.faults.inside import Inside, serving, settings, until
from tests.faults.payloads import body, trace_of

from facta.app import projector, service
from facta.conventions import read
from facta.model.records import Record
from facta.resolve import engine
from facta.resolve.cluster import resolve
from facta.store import StoreError

pytestmark = pytest.mark.fault

LIMIT = 40  # observations; a request brings two
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def export(port: int, data: bytes, *metadata: tuple[str, str], method: str = EXPORT) -> bytes:
    """One gRPC export of raw bytes; raises grpc.RpcError."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        answer: bytes = channel.unary_unary(method)(data, metadata=metadata, timeout=60)
        return answer


def traces(home: Inside) -> Counter[str]:
    return Counter(row.observation.trace_id for row in home.facta.ledger.rows(-1, 10_000))


def once(home: Inside, numbers: range) -> None:
    """Each of these requests is in the ledger once and in the store once, and nothing else is."""
    tables = home.settled()
    assert traces(home) == {trace_of(n): 2 for n in numbers}
    kept = [row.observation.id for row in home.facta.ledger.rows(-1, 10_000)]
    stored = home.store.query("SELECT id FROM evidence.observations FINAL")
    assert sorted(row["id"] for row in stored) == sorted(kept)
    assert len(tables["evidence.turns"]) == len(tables["evidence.tool_calls"]) == len(numbers)


def test_the_store_away_until_the_backlog_is_full_and_back(tmp_path: Path) -> None:
    with serving(settings(tmp_path, max_backlog_rows=LIMIT)) as home:
        assert home.post(body(0)) == 200
        home.settled()
        home.store.away = True
        statuses = [home.post(body(number)) for number in range(1, 21)]
        assert statuses == [200] * 20, "every request until the limit"
        status, headers, _ = home.ask(
            "POST", "/v1/traces", body(21), content_type="application/json"
        )
        assert status == 503
        assert int(headers["retry-after"]) > 0
        with pytest.raises(grpc.RpcError) as refused:
            export(home.grpc, body(21))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        told = Status.FromString(dict(refused.value.trailing_metadata())["grpc-status-details-bin"])
        info = RetryInfo()
        assert told.details[0].Unpack(info)
        assert info.retry_delay.seconds > 0
        assert home.get("/health")["status"] == "ok"
        assert home.ask("GET", "/ready")[0] == 503
        assert home.ask("GET", "/api/v1/sessions")[0] == 503
        assert home.get("/api/v1/status")["backlog"] == LIMIT
        home.store.away = False
        until(lambda: home.post(body(21)) == 200)
        assert home.post(body(22)) == 200
        once(home, range(23))
        assert home.ask("GET", "/ready")[0] == 200


def test_a_store_that_fails_at_any_insert_has_all_of_it_once(tmp_path: Path) -> None:
    failed: list[str] = []
    left = 0

    def one(table: str, _rows: Sequence[Mapping[str, Any]]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            failed.append(table)
            raise StoreError(210, "the store answers nothing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projector, "_RETRY_SECONDS", 0.01)
        with serving(settings(tmp_path)) as home:
            home.store.fail = one
            for number in range(8):
                left = number + 1
                assert home.post(body(number)) == 200
                home.settled()
            home.store.fail = None
            once(home, range(8))
            assert len(set(failed)) >= 5


def garbage(path: Path) -> None:
    path.write_bytes(b"\xffno such file\x00" * 50)


def _files(data: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in (data / "chdb").rglob(pattern) if path.is_file())
    assert found, pattern
    return found


def _table_texts(data: Path) -> None:
    for path in _files(data, "*.sql"):
        garbage(path)


def _columns(data: Path) -> None:
    for path in _files(data, "data.bin") + sorted((data / "chdb").rglob("*.cmrk*")):
        garbage(path)


def _parts(data: Path) -> None:
    for path in _files(data, "data.bin"):
        shutil.rmtree(path.parent)


def _store(data: Path) -> None:
    shutil.rmtree(data / "chdb")


def _resolver(data: Path) -> None:
    for path in (data / "resolve").iterdir():
        garbage(path)


def _no_resolver(data: Path) -> None:
    shutil.rmtree(data / "resolve")


BREAKS: dict[str, Callable[[Path], None]] = {
    "the texts of its tables": _table_texts,
    "the files of its columns": _columns,
    "all its parts gone": _parts,
    "all of it gone": _store,
    "the resolver's file": _resolver,
    "the resolver's file gone": _no_resolver,
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_a_broken_store_is_made_anew(tmp_path: Path, broken: Callable[[Path], None]) -> None:
    with serving(settings(tmp_path)) as home:
        for number in range(10):
            assert home.post(body(number)) == 200
        before = home.settled()
    broken(tmp_path)
    with serving(settings(tmp_path)) as home:
        assert home.settled() == before
        assert home.post(body(10)) == 200
        once(home, range(11))


def test_a_store_of_another_ledger_is_made_anew(tmp_path: Path) -> None:
    with serving(settings(tmp_path)) as home:
        for number in range(5):
            assert home.post(body(number)) == 200
        home.settled()
    shutil.rmtree(tmp_path / "ledger")
    with serving(settings(tmp_path)) as home:
        for number in range(20, 26):
            assert home.post(body(number)) == 200
        once(home, range(20, 26))


def test_a_machine_that_stopped_without_warning_costs_a_rebuild_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings(tmp_path)) as home:
        assert home.post(body(0)) == 200
        before = home.settled()
        # A change that the engine had not put on disk when the power went.
        home.store.store.query("SELECT 1")
        home.store.truncate("evidence.effects")
        monkeypatch.setattr(home.facta.projector._resolver, "keep", lambda **_: None)
    monkeypatch.setattr(projector, "_boot", lambda: 12345)
    with serving(settings(tmp_path)) as home:
        assert home.settled() == before
    assert "the machine stopped" in caplog.text
    caplog.clear()
    monkeypatch.setattr(projector, "_boot", lambda: 12346)
    with serving(settings(tmp_path)) as home:
        assert home.settled() == before
    assert caplog.text == "", "after a clean stop nothing needs to be made anew"


def test_a_rebuild_on_demand(tmp_path: Path) -> None:
    with serving(settings(tmp_path)) as home:
        for number in range(10):
            assert home.post(body(number)) == 200
        before = home.settled()
        home.store.truncate("evidence.turns")
        home.facta.rebuild()
        assert not home.facta.status().resolved
        assert home.settled() == before
        once(home, range(10))


def test_what_cannot_be_resolved_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def picky(tenant: str, observations: list[Any], *rest: Any) -> Any:
        if any(o.service == "odd" for o in observations):
            raise ValueError("secret")
        return resolve(tenant, observations, *rest)

    def misfit(_table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if any(row.get("service") == "large" and "session_id" in row for row in rows):
            raise StoreError(53, "a value does not fit its column")

    monkeypatch.setattr(engine, "resolve", picky)
    with serving(settings(tmp_path)) as home:
        home.store.fail = misfit
        assert home.post(body(0, service="odd")) == 200
        assert home.post(body(1, service="large")) == 200
        for number in range(2, 8):
            assert home.post(body(number)) == 200
        until(lambda: len(home.get("/api/v1/turns")["items"]) == 6)
        until(lambda: home.facta.projector._resolver.failed == 2)
        assert not home.facta.status().resolved, "and it is seen"
        monkeypatch.undo()
        home.store.fail = None
        # More of the same sessions: they are tried again.
        assert home.post(body(7, service="odd")) == 200
        assert home.post(body(8, service="large")) == 200
        assert len(home.settled()["evidence.turns"]) == 10
    assert "secret" not in caplog.text


def test_a_record_that_our_code_fails_on_is_a_gap_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(record: Record) -> Any:
        if record.name == "execute_tool":
            raise RuntimeError("secret")
        return read(record)

    monkeypatch.setattr(service, "read", picky)
    with serving(settings(tmp_path)) as home:
        assert home.post(body(0)) == 200
        tables = home.settled()
        assert len(tables["evidence.turns"]) == 1
        assert [row["reason"] for row in tables["evidence.refusals"]] == ["unreadable"]
        assert home.get("/api/v1/status")["refused"] == 1


def test_an_engine_that_lives_on_dead_is_not_ready(tmp_path: Path) -> None:
    with serving(settings(tmp_path)) as home:
        assert home.post(body(0)) == 200
        home.settled()
        assert home.ask("GET", "/ready")[0] == 200
        with pytest.MonkeyPatch.context() as patch:

            def dead(*_: object, **__: object) -> None:
                raise OperationalError("a value of a row")

            patch.setattr(ChdbClient, "query", dead)
            patch.setattr(ChdbClient, "command", dead)
            status, headers, told = home.ask("GET", "/ready")
            assert status == 503
            assert int(headers["retry-after"]) > 0
            assert b"value" not in told
            assert home.get("/health")["status"] == "ok"
            assert home.post(body(1)) == 200, "the ledger takes what the store cannot"
            assert home.ask("GET", "/api/v1/turns")[0] == 503
        once(home, range(2))
        assert home.ask("GET", "/ready")[0] == 200

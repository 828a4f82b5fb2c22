"""Values that must not be found: sealed ones nowhere, a payload's nowhere but where it is kept."""

import base64
import json
import os
import random
import re
import signal
import socket
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.fernet import Fernet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.evidence.harness import DATA
from tests.faults.lives import Life, Nursery
from tests.faults.payloads import PROTOBUF, attribute, body
from tests.faults.test_lost_answers import requests_of

from facta.api.tokens import Tokens
from facta.ledger.zstd import decompress
from facta.store.embedded import EmbeddedStore

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

EXPECT = json.loads((DATA / "EXPECT.json").read_text())
RUNS = [
    "claude-code",
    "openinference-anthropic",
    "openinference-openai-responses",
    "logfire-anthropic",
    "vercel-ai6-openai",
]
if os.environ.get("FACTA_FULL") == "1":
    RUNS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
OWN = "OWNCANARY"
ANY = re.compile(rb"CANARY")
JSON = "application/json"


@cache
def made_value(seed: int) -> str:
    """A sealed value as no file here holds it."""
    key = base64.urlsafe_b64encode(random.Random(seed).randbytes(32))
    return Fernet(key).encrypt(random.Random(-seed).randbytes(400)).decode()


@dataclass
class Hunt:
    """One collector, what it was sent, and what it said."""

    life: Life
    root: Path
    tokens: dict[str, str]
    sealed: set[str] = field(default_factory=set)
    said: list[tuple[str, bytes]] = field(default_factory=list)

    def send(self, path: str, kind: str, data: bytes, **headers: str) -> int:
        given = {"Content-Type": kind, "Authorization": f"Bearer {self.tokens['ingest']}"}
        status, told, answer = self.life.post(data, path, given | headers)
        self.said.append((f"{path} {status}", answer + repr(told).encode()))
        return status

    def read(self, path: str, token: str = "") -> int:
        headers = {"Authorization": f"Bearer {token or self.tokens['admin']}"}
        status, answer = self.life.get(path, headers)
        if status >= 300 or path == "/metrics":
            self.said.append((f"{path} {status}", answer))
        return status


def pieces_of(values: set[str]) -> list[bytes]:
    """A few windows of each value: of its text, of the text's hex and of its bytes."""
    out: set[bytes] = {b"SEALEDCANARY", base64.b64encode(b"SEALEDCANARY")}
    for value in values:
        for part in range(5):
            at = (len(value) - 24) * part // 4 // 4 * 4
            text = value[at : at + 24]
            raw = base64.b64decode(text.replace("-", "+").replace("_", "/"))
            out |= {text.encode(), text.encode().hex().encode(), raw, raw.hex().encode()}
            out.add(text.encode("utf-16-le"))
    return sorted(out)


def sealed_in(run: str) -> set[str]:
    """The sealed values of a captured run."""
    hashes = {value["sha256_of_text"] for value in EXPECT["sealed"].values()}
    text = "\n".join(data.decode("utf-8", "replace") for _, _, data in requests_of(run))
    for _ in range(4):
        text = text.replace('\\"', '"').replace("\\\\", "\\")
    import hashlib

    found = set(re.findall(r"[A-Za-z0-9+/_=-]{64,}", text))
    return {v for v in found if hashlib.sha256(v.encode()).hexdigest() in hashes}


def everywhere(values: Iterator[str]) -> Iterator[tuple[str, bytes]]:
    """Requests with a sealed value in every place where a text can stand."""
    request = ExportTraceServiceRequest.FromString(body(900))
    resource = request.resource_spans[0]
    resource.resource.attributes.append(attribute("host.note", next(values)))
    scope = resource.scope_spans[0]
    scope.scope.name, scope.scope.version = next(values), next(values)
    span = scope.spans[0]
    span.name, span.trace_state, span.status.message = (next(values) for _ in range(3))
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": next(values)}]}]
    span.attributes.append(attribute("gen_ai.output.messages", json.dumps(messages)))
    span.attributes.append(attribute("note", json.dumps({"a": json.dumps({"b": next(values)})})))
    span.attributes.append(attribute(next(values), "a value under it"))
    nested = span.attributes.add(key="nested").value.kvlist_value.values
    nested.append(attribute("inner", next(values)))
    nested.append(attribute(next(values), "x"))
    span.attributes.add(key="bytes").value.bytes_value = next(values).encode()
    event = span.events.add(name=next(values))
    event.attributes.append(attribute("exception.message", f"failed with {next(values)}"))
    span.links.add().attributes.append(attribute("why", next(values)))
    yield "/v1/traces", request.SerializeToString()
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = f"INFO got {next(values)}"
    record.severity_text, record.event_name = next(values), next(values)
    record.attributes.append(attribute("http.response.body", next(values)))
    yield "/v1/logs", logs.SerializeToString()


def broken(path: str, kind: str, data: bytes) -> Iterator[tuple[str, str, bytes]]:
    """The same request, broken in a few ways."""
    yield path, kind, data[: len(data) * 2 // 3]
    yield path, kind, data.replace(b"CANARY-1", b"CANARY\xff1")
    yield path, kind, data[1:]
    yield path, f"text/plain; {OWN}", data
    yield path, f"{kind}; charset={OWN}", data
    yield path, JSON if kind == PROTOBUF else PROTOBUF, data
    yield f"/v1/{OWN}", kind, data
    deep = "[" * 3000 + f'"{OWN}"' + "]" * 3000
    yield path, JSON, b'{"resourceSpans": %s}' % deep.encode()
    for odd in (
        f'"{OWN}"',
        f'[{{"scopeSpans":[{{"spans":[{{"name":{{"{OWN}":1}},"traceId":"{OWN}"}}]}}]}}]',
    ):
        yield path, JSON, b'{"resourceSpans": %s}' % odd.encode()


def read_routes(hunt: Hunt) -> None:
    """Every parameter of every route with something that it does not take, or that is not there."""
    schema = hunt.life.json("/openapi.json")
    refused = 0
    for route, methods in schema["paths"].items():
        path = re.sub(r"\{[^}]*\}", OWN, route)
        names = [
            p["name"] for p in methods.get("get", {}).get("parameters", []) if p["in"] == "query"
        ]
        for query in ("", *(f"?{name}={OWN}" for name in names), f"?{OWN}={OWN}", f"?token={OWN}"):
            refused += hunt.read(path + query) in (401, 404, 422)
        hunt.read(path, token=OWN)
        hunt.life.get(path, {"Authorization": OWN})
    assert refused > 40


@pytest.fixture(scope="module")
def hunt(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Hunt:
    """All of it sent; the collector has ended, and its files lie there."""
    root = tmp_path_factory.mktemp("hunt")
    file = Tokens(root / "tokens.json")
    scopes = {"ingest": ["ingest"], "admin": ["evidence", "ux", "admin"]}
    tokens = {name: file.create(given) for name, given in scopes.items()}
    life = nursery.start(root / "data", log_level="debug", tokens=str(file.path))
    made = Hunt(life, root, tokens)
    for run in RUNS:
        assert sealed_in(run) or os.environ.get("FACTA_FULL") == "1"
        made.sealed |= sealed_in(run)
        for path, kind, data in requests_of(run):
            assert made.send(path, kind, data) == 200
            for odd in broken(path, kind, data):
                made.send(*odd)
    for encoding in ("gzip", OWN, "zstd"):
        made.send("/v1/traces", PROTOBUF, body(1, text=OWN), **{"Content-Encoding": encoding})
    made.sealed |= {made_value(number) for number in range(1, 40)}
    for path, data in everywhere(map(made_value, range(1, 40))):
        assert found(pieces_of(made.sealed), data)
        assert made.send(path, PROTOBUF, data) == 200
        for odd in broken(path, PROTOBUF, data):
            made.send(*odd)
    with socket.create_connection(("127.0.0.1", life.http)) as connection:
        connection.sendall(f"{OWN} /{quote(OWN)}\x00 HTTP/9.9\r\n\r\n".encode())
        made.said.append(("no request", connection.recv(10_000)))
    read_routes(made)
    assert made.read("/metrics") == 200
    assert life.json("/check")["found"] == []
    # Killed in the middle, so that what lies about then is seen too.
    life.json("/arm")
    life.end(signal.SIGKILL)
    made.said.append(("log", life.log.read_bytes()))
    return made


def test_nothing_that_is_said_holds_a_value_of_a_payload(hunt: Hunt) -> None:
    assert len(hunt.said) > 100
    pieces = pieces_of(hunt.sealed)
    for what, text in hunt.said:
        assert not ANY.search(text), what
        assert not [piece for piece in pieces if piece in text], what


def cells(path: Path) -> Iterator[bytes]:
    """Every cell of an SQLite file, unpacked where it is compressed."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = [
        row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    for name in names:
        for row in database.execute(f'SELECT * FROM "{name}"'):
            for cell in row:
                data = cell.encode("utf-8", "surrogatepass") if isinstance(cell, str) else cell
                if isinstance(data, bytes):
                    yield data
                    yield from unpacked(data)
    database.close()


def unpacked(data: bytes) -> Iterator[bytes]:
    if data[:4] == b"\x28\xb5\x2f\xfd":
        yield decompress(data)
    for bits in (15, 31):
        try:
            yield zlib.decompress(data, bits)
        except zlib.error:
            continue


def found(pieces: list[bytes], data: bytes) -> list[bytes]:
    return [piece for piece in pieces if piece in data]


def test_no_file_holds_a_sealed_value(hunt: Hunt) -> None:
    pieces = pieces_of(hunt.sealed)
    files = [path for path in hunt.root.rglob("*") if path.is_file()]
    assert len(files) > 50
    for path in files:
        data = path.read_bytes()
        assert not found(pieces, data), path.relative_to(hunt.root)
        if data[:15] == b"SQLite format 3":
            assert not found(pieces, b"\n".join(cells(path))), path.relative_to(hunt.root)
    assert any(b"ARGCANARY" in cell for cell in cells(next(hunt.root.rglob("segment-*.db"))))


def test_no_table_holds_a_sealed_value(hunt: Hunt) -> None:
    pieces = pieces_of(hunt.sealed)
    store = EmbeddedStore.at(hunt.root / "data")
    try:
        texts = {
            table: repr(store.query(f"SELECT * FROM {table}")).encode("utf-8", "surrogatepass")
            for table in (
                *_tables(),
                "evidence.observations",
                "evidence.reads",
                "evidence.controls",
            )
        }
    finally:
        store.close()
    for table, text in texts.items():
        assert not found(pieces, text), table
        assert (
            table.startswith("ux.")
            or table == "evidence.observations"
            or b"UXCANARY-1 " not in text
        )
    assert b"PROMPTCANARY" in texts["evidence.content"]


def _tables() -> tuple[str, ...]:
    from facta.resolve.engine import CONTENT, TABLES

    return (*TABLES, *CONTENT)

"""Effects: what client, server and tool spans say was done to the world outside.

A span of an HTTP, database, messaging, file, process, RPC or MCP client says that its own producer
did something (instrumented); one of a server says that the target saw it (observed). Whether such a
span lies below a tool call is decided when sessions are resolved. Targets are kept without query
strings, which hold what nobody meant to keep.
Source: OpenTelemetry semantic conventions for HTTP, database, messaging, file, process, RPC and MCP.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from facta.conventions.genai import call_of, fact
from facta.conventions.values import Attrs, attributes_of, event_name, text_of
from facta.model.facts import Basis, Effect, Fact, Observer
from facta.model.records import CLIENT, CONSUMER, SERVER, STATUS_ERROR, Record, Value

NAME = "otel.effects"
_BASES: dict[str, Basis] = {
    "acknowledged": "acknowledged",
    "instrumented": "instrumented",
    "observed": "observed",
    "verified": "verified",
    "conflict": "conflict",
}


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """The effects that one record tells: its own attributes' or events' first, else its kind's."""
    own = _own(record, attrs)
    if own or record.signal == "log":
        return own
    for reader in (_mcp, _http, _database, _messaging, _file, _process, _rpc):
        effect = reader(record, attrs)
        if effect is not None:
            if record.kind in (SERVER, CONSUMER):
                effect.basis = "observed"
            effect.status = effect.status or ("error" if record.status == STATUS_ERROR else "ok")
            observer: Observer = "target" if effect.basis == "observed" else "tool_span"
            return [*_mcp_call(record, attrs), fact(effect, observer, record)]
    return []


def _own(record: Record, attrs: Attrs) -> list[Fact]:
    """`facta.effect.*` as span attributes, as a span event, or as a log event."""
    told: list[Attrs] = [attrs] if "facta.effect.operation" in attrs else []
    if record.signal == "log" and event_name(record, attrs) == "facta.effect" and not told:
        told.append(record.body if isinstance(record.body, dict) else attrs)
    told += [attributes_of(e.attributes) for e in record.events if e.name == "facta.effect"]
    out: list[Fact] = []
    for values in told:
        value = _getter(values, record)
        basis = _BASES.get(value("basis"), "acknowledged")
        effect = Effect(
            value("operation"),
            value("target"),
            value("status"),
            basis,
            value("call_id"),
            stated=True,
        )
        if effect.operation or effect.target:
            out.append(
                fact(effect, "target" if basis in ("observed", "verified") else "tool_span", record)
            )
    return out


def _getter(values: Attrs, record: Record) -> Callable[[str], str]:
    def value(name: str) -> str:
        return record.marks.render(text_of(values.get(f"facta.effect.{name}", values.get(name))))

    return value


def _first(attrs: Attrs, *keys: str) -> str:
    for key in keys:
        value: Value = attrs.get(key)
        if value is not None and value not in ("", []):
            return text_of(value)
    return ""


def _http(record: Record, attrs: Attrs) -> Effect | None:
    method = _first(attrs, "http.request.method", "http.method")
    if not method:
        return None
    url = _first(attrs, "url.full", "http.url")
    parts = urlsplit(url) if url else None
    host = (
        (parts.hostname or "")
        if parts
        else _first(attrs, "server.address", "net.peer.name", "http.host")
    )
    port = _port(parts.netloc) if parts else _first(attrs, "server.port", "net.peer.port")
    path = (
        parts.path
        if parts
        else _first(attrs, "url.path", "http.target", "http.route").split("?")[0]
    )
    host = f"{host}:{port}" if port and port not in ("80", "443") else host
    status = _first(attrs, "http.response.status_code", "http.status_code")
    return Effect(method.upper(), record.marks.render(host + (path or "/")), status)


def _port(netloc: str) -> str:
    tail = netloc.rpartition("@")[2].rpartition(":")
    return tail[2] if tail[1] and tail[2].isdigit() else ""


def _database(record: Record, attrs: Attrs) -> Effect | None:
    system = _first(attrs, "db.system.name", "db.system")
    if not system:
        return None
    statement = _first(attrs, "db.query.text", "db.statement")
    operation = _first(attrs, "db.operation.name", "db.operation") or statement.split(None, 1)[:1]
    operation = (
        operation if isinstance(operation, str) else (operation[0] if operation else "query")
    )
    named = (
        _first(attrs, "db.namespace", "db.name"),
        _first(attrs, "db.collection.name", "db.sql.table", "db.mongodb.collection"),
    )
    target = "/".join(part for part in (system, *named) if part)
    status = _first(attrs, "db.response.status_code")
    return Effect(record.marks.render(operation.upper()), record.marks.render(target), status)


def _messaging(record: Record, attrs: Attrs) -> Effect | None:
    system = _first(attrs, "messaging.system")
    if not system:
        return None
    operation = _first(
        attrs, "messaging.operation.type", "messaging.operation.name", "messaging.operation"
    )
    destination = _first(attrs, "messaging.destination.name", "messaging.destination")
    return Effect(operation or "send", record.marks.render(f"{system}/{destination}"), "")


def _file(record: Record, attrs: Attrs) -> Effect | None:
    path = _first(attrs, "file.path", "file.name")
    if not path:
        return None
    operation = _first(attrs, "file.operation", "operation.name") or record.name.split(" ", 1)[0]
    return Effect(record.marks.render(operation), record.marks.render(path), "")


def _process(record: Record, attrs: Attrs) -> Effect | None:
    command = _first(attrs, "process.command", "process.executable.path", "process.executable.name")
    if not command or record.kind not in (0, 1, CLIENT):
        return None
    return Effect("exec", record.marks.render(command), _first(attrs, "process.exit.code"))


def _rpc(record: Record, attrs: Attrs) -> Effect | None:
    system = _first(attrs, "rpc.system", "rpc.system.name")
    if not system or record.kind not in (CLIENT, SERVER):
        return None
    method = "/".join(p for p in (_first(attrs, "rpc.service"), _first(attrs, "rpc.method")) if p)
    target = _first(attrs, "server.address", "net.peer.name") or system
    status = _first(attrs, "rpc.grpc.status_code", "rpc.response.status_code")
    return Effect(record.marks.render(method), record.marks.render(target), status)


def _mcp(record: Record, attrs: Attrs) -> Effect | None:
    method = _first(attrs, "mcp.method.name")
    if not method:
        return None
    target = _first(
        attrs, "gen_ai.tool.name", "mcp.tool.name", "mcp.resource.uri", "gen_ai.prompt.name"
    )
    server = _first(attrs, "server.address", "mcp.server.name")
    place = "/".join(part for part in (server, target) if part)
    return Effect(record.marks.render(method), record.marks.render(place), "")


def _mcp_call(record: Record, attrs: Attrs) -> list[Fact]:
    """An MCP server's span of a tool call is also the call, as its target tells it."""
    if _first(attrs, "mcp.method.name") != "tools/call" or record.kind != SERVER:
        return []
    return [fact(call_of(record, attrs), "target", record)]

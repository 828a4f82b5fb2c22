"""OTLP requests in JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding) to records.

Ids are hex in either case, 64-bit integers strings or numbers, enums numbers (names are read too),
bytes base64, unknown fields ignored. A small body is parsed at once; when that fails, or the body
is large, it is cut into records first and what cannot be read is salvaged
(`facta.intake.json_salvage`).
"""

from collections.abc import Iterator
from typing import Any, Literal

import orjson

from facta.intake import json_salvage
from facta.intake.errors import DecodeFailed, Refused
from facta.intake.json_text import Handler, entries, members, skip_space, value_end
from facta.intake.json_values import Node, log_record, node_of, scope, span
from facta.intake.limits import Allowance, Limits
from facta.intake.outline import Outline, ResourcePart, ScopePart, slices, whole
from facta.intake.wire import Damaged
from facta.model.records import Batch, Record, Refusal, Scope

Signal = Literal["traces", "logs"]

# Parsed at once up to this size: it bounds the time and memory of one call into the parser.
_AT_ONCE = 4 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NAMES = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}


def decode(body: bytes, signal: Signal, limits: Limits) -> Batch:
    """The records of an export request in JSON.

    Raises DecodeFailed when nothing in the body can be decoded. No body at all is an empty request.
    """
    return whole(decode_slices(body, signal, limits))


def decode_slices(body: bytes, signal: Signal, limits: Limits) -> Iterator[Batch]:
    """The same a slice at a time; DecodeFailed comes at the end."""
    body = body.removeprefix(_BYTE_ORDER_MARK)
    if not body:
        return iter(())
    if len(body) <= _AT_ONCE:
        try:
            return iter((_at_once(orjson.loads(body), signal, limits),))
        except (orjson.JSONDecodeError, Refused):
            pass
    allowance = Allowance(limits)
    outline = Outline(body, limits.records, allowance.steps)
    _split(outline, signal)
    if signal == "traces":
        return slices(outline, _Spans(), "span", allowance)
    return slices(outline, _LogRecords(), "log record", allowance)


def _at_once(request: Any, signal: Signal, limits: Limits) -> Batch:
    """A request with nothing wrong in it; raises Refused for any other."""
    if not isinstance(request, dict):
        raise Refused("not an object")
    allowance = Allowance(limits)
    batch = Batch()
    resources, scopes, records = _NAMES[signal]
    read = span if signal == "traces" else log_record
    for resource in _nodes(request, resources):
        for part in _nodes(resource, scopes):
            owner = scope(resource, part, allowance)
            batch.records.extend(read(node, owner, allowance) for node in _nodes(part, records))
    if len(batch.records) > limits.records:
        raise Refused("too many records")
    return batch


def _nodes(node: Node, name: str) -> list[Node]:
    found = node.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise Refused("not a list")
    return [node_of(entry) for entry in found]


def _split(outline: Outline, signal: Signal) -> None:
    data = outline.data
    splitter = _Splitter(outline, signal)
    at = skip_space(data, 0)
    if data[at : at + 1] != b"{":
        raise DecodeFailed("The body is not a JSON object.")
    try:
        at = skip_space(data, splitter.request(at))
    except Damaged as damage:
        outline.broken(damage)
    else:
        if at < len(data):
            outline.broken(Damaged(at))


class _Splitter:
    """Fills an outline while one walk goes over the text."""

    def __init__(self, outline: Outline, signal: Signal) -> None:
        self._outline = outline
        self._data = outline.data
        self._resources, self._scopes, self._records = _NAMES[signal]

    def request(self, at: int) -> int:
        """Walk the whole request; returns its end."""
        handlers: dict[str, Handler] = {
            self._resources: lambda at: self._entries(at, self._resource)
        }
        return members(self._data, at, handlers, self._outline.steps)

    def _entries(self, at: int, handler: Handler) -> int:
        return entries(self._data, at, handler, self._outline.steps)

    def _kept(self, part: ResourcePart | ScopePart, name: str) -> Handler:
        def keep(at: int) -> int:
            end = value_end(self._data, at, self._outline.steps)
            setattr(part, name, self._data[at:end])
            return end

        return keep

    def _resource(self, at: int) -> int:
        part = ResourcePart()
        self._outline.parts.append(part)
        handlers: dict[str, Handler] = {
            "resource": self._kept(part, "resource"),
            "schemaUrl": self._kept(part, "schema_url"),
            self._scopes: lambda at: self._entries(at, lambda at: self._scope(part, at)),
        }
        return members(self._data, at, handlers, self._outline.steps)

    def _scope(self, resource: ResourcePart, at: int) -> int:
        part = ScopePart()
        resource.scopes.append(part)
        handlers: dict[str, Handler] = {
            "scope": self._kept(part, "scope"),
            "schemaUrl": self._kept(part, "schema_url"),
            self._records: lambda at: self._record_list(part, at),
        }
        return members(self._data, at, handlers, self._outline.steps)

    def _record_list(self, part: ScopePart, at: int) -> int:
        beyond: list[int] = []
        try:
            end = self._entries(at, lambda at: self._record(part, at, beyond))
        except Damaged:
            if beyond:
                self._outline.beyond(beyond[0], len(self._data))
            raise
        if beyond:
            self._outline.beyond(beyond[0], end)
        return end

    def _record(self, part: ScopePart, at: int, beyond: list[int]) -> int:
        end = len(self._data)
        try:
            end = value_end(self._data, at, self._outline.steps)
        finally:
            # A record that breaks off is a record too: its ids often come first.
            if self._outline.room():
                part.records.append((at, end))
            elif not beyond:
                beyond.append(at)
        return end


class _Scopes:
    def scope(
        self, resource: ResourcePart, part: ScopePart, allowance: Allowance
    ) -> tuple[Scope, list[Refusal]]:
        return json_salvage.scope(resource, part, allowance)


class _Spans(_Scopes):
    def strict(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return span(_strict_node(raw), scope, allowance)

    def salvage(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return json_salvage.span(raw, scope, allowance)


class _LogRecords(_Scopes):
    def strict(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return log_record(_strict_node(raw), scope, allowance)

    def salvage(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return json_salvage.log_record(raw, scope, allowance)


def _strict_node(raw: bytes) -> Node:
    try:
        return node_of(orjson.loads(raw))
    except orjson.JSONDecodeError:
        raise Refused("not JSON") from None

"""Canonical row, version 1: the bytes that an observation's id and its tree leaf are made of.

The format is described in `schema/canonical-row.md`; `schema/canonical-row-vectors.json` holds test
vectors. Every value is tagged and length-prefixed, so no two different rows have the same bytes, and
the same bytes can be built in SQL and in a stand-alone script.
"""

import hashlib
import hmac
import struct
from operator import attrgetter
from typing import Any

from facta.model.observation import Observation

VERSION = b"\x01"
COLUMNS = (
    ("tenant", "s"),
    ("producer", "s"),
    ("service", "s"),
    ("observer", "s"),
    ("kind", "s"),
    ("convention", "s"),
    ("scope_name", "s"),
    ("scope_version", "s"),
    ("schema_url", "s"),
    ("trace_id", "s"),
    ("span_id", "s"),
    ("parent_span_id", "s"),
    ("session", "s"),
    ("start_ns", "i"),
    ("end_ns", "i"),
    ("body", "b"),
)
"""Name and type of each column, in order: s is UTF-8 text, b is bytes, i is a signed 64-bit integer."""

_TEXTS = tuple(name for name, kind in COLUMNS if kind == "s")
_texts_of = attrgetter(*_TEXTS)
_LENGTH = struct.Struct(">cQ")
_INTEGER = struct.Struct(">cq")
_SHORT = tuple(_LENGTH.pack(b"s", length) for length in range(256))


class NotCanonicalError(ValueError):
    """A value that has no canonical form, or bytes that are not a canonical row; says which column."""


def _texts(observation: Observation) -> list[bytes]:
    texts = _texts_of(observation)
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:
        bad = next(n for n, text in zip(_TEXTS, texts, strict=True) if _has_surrogate(text))
        raise NotCanonicalError(
            f"{bad} is not Unicode text (it holds a lone surrogate): remove it before the ledger"
        ) from None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _prefixed(raw: bytes) -> bytes:
    length = len(raw)
    return (_SHORT[length] if length < len(_SHORT) else _LENGTH.pack(b"s", length)) + raw


def _integer(name: str, value: int) -> bytes:
    try:
        return _INTEGER.pack(b"i", value)
    except struct.error:
        raise NotCanonicalError(
            f"{name} does not fit in 64 bits: refuse the record before the ledger"
        ) from None


def encode_observation(observation: Observation) -> bytes:
    """The canonical bytes without id and receipt time: the same statement, the same bytes.

    Raises NotCanonicalError for a lone surrogate in a text or an integer beyond 64 bits.
    """
    parts = [VERSION]
    parts += [_prefixed(raw) for raw in _texts(observation)]
    parts.append(_integer("start_ns", observation.start_ns))
    parts.append(_integer("end_ns", observation.end_ns))
    parts.append(_prefixed(observation.body))
    return b"".join(parts)


def id_of(tenant_key: bytes, statement: bytes) -> bytes:
    """The id, 16 bytes, of the bytes that `encode_observation` returned."""
    return hmac.digest(tenant_key, statement, "sha256")[:16]


def observation_id(tenant_key: bytes, observation: Observation) -> str:
    """The id of an observation, 32 hex digits: HMAC-SHA256 with the tenant's key, cut to 16 bytes."""
    return id_of(tenant_key, encode_observation(observation)).hex()


def with_receipt(statement: bytes, received_ns: int) -> bytes:
    """The canonical row of the bytes that `encode_observation` returned."""
    return statement + _integer("received_ns", received_ns)


def without_receipt(row: bytes) -> bytes:
    """The bytes that `encode_observation` returned for the observation in this row."""
    return row[: -_INTEGER.size]


def encode_row(observation: Observation, received_ns: int) -> bytes:
    """The canonical row: the observation's columns, then the receipt time (nanoseconds, our clock)."""
    return with_receipt(encode_observation(observation), received_ns)


def leaf_of(row: bytes) -> bytes:
    """The RFC 6962 leaf hash of a canonical row (32 bytes)."""
    return hashlib.sha256(b"\x00" + row).digest()


def _value(row: bytes, at: int, kind: str) -> tuple[Any, int]:
    """The value of a type that begins at a byte of a row, and where it ends."""
    if kind == "i":
        tag, value = _INTEGER.unpack_from(row, at)
        end = at + _INTEGER.size
    else:
        tag, length = _LENGTH.unpack_from(row, at)
        begin = at + _LENGTH.size
        end = begin + length
        value = row[begin:end].decode() if kind == "s" else row[begin:end]
    if end > len(row) or tag != (b"i" if kind == "i" else b"s"):
        raise NotCanonicalError("not a canonical row: cut, or of other columns")
    return value, end


def decode_row(row: bytes, id: str = "") -> tuple[Observation, int]:  # noqa: A002 - the field's name
    """The observation in a canonical row, with `id` (which the row does not hold), and receipt time.

    Raises NotCanonicalError for anything that `encode_row` does not return.
    """
    if row[:1] != VERSION:
        raise NotCanonicalError("not a canonical row of version 1")
    columns: list[Any] = []
    at = 1
    try:
        for _, kind in COLUMNS:
            value, at = _value(row, at, kind)
            columns.append(value)
        received_ns, at = _value(row, at, "i")
    except (struct.error, UnicodeDecodeError):
        raise NotCanonicalError("not a canonical row: cut, or of other columns") from None
    if at != len(row):
        raise NotCanonicalError("not a canonical row: bytes behind its end")
    columns.append(id)
    return Observation(*columns), received_ns

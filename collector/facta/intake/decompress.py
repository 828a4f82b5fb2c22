"""Bodies as they were before compression, never larger than a limit.

The limit is applied to what comes out, while it comes out: a bomb costs no more memory than an
honest body. Declared sizes are not believed. Encodings inside encodings are not read.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

from facta.intake.errors import BodyTooLarge, Unsupported

ACCEPTED = "gzip, deflate, zstd, identity"
_STEP = 1 << 20
_PIECE = 1 << 16
# Concatenated members are legal but rare; each costs a copy of what follows it.
_MEMBERS = 4096
# 64 MiB: what is over the body limit anyway need not be looked back upon.
_ZSTD_WINDOW_LOG = 26
_ZLIB_METHOD = 8


@dataclass(frozen=True, slots=True)
class Inflated:
    """A decompressed body. `damage` says what was wrong with its end, or is ""."""

    data: bytes
    damage: str = ""


class _Member(Protocol):
    """One compressed member: what zlib's and zstd's decompressors have in common here."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def pull(self, data: bytes, most: int) -> bytes: ...
    def hungry(self) -> bool: ...


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def pull(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, most)

    def hungry(self) -> bool:
        return not self._inner.unconsumed_tail


class _Zstd:
    def __init__(self) -> None:
        self._inner = ZstdDecompressor(
            options={DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def pull(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(data, most)

    def hungry(self) -> bool:
        return self._inner.needs_input


def codings(header: str) -> str:
    """The one coding named in a Content-Encoding header, "" for none; raises Unsupported."""
    named = [part.strip().lower() for part in header.split(",")]
    named = [part for part in named if part not in {"", "identity"}]
    if not named:
        return ""
    if len(named) > 1:
        raise Unsupported("Nested content encodings are not accepted. Use one of: " + ACCEPTED)
    coding = "gzip" if named[0] == "x-gzip" else named[0]
    if coding not in {"gzip", "deflate", "zstd"}:
        raise Unsupported("This content encoding is not accepted. Use one of: " + ACCEPTED)
    return coding


def inflate(chunks: Iterable[bytes], coding: str, limit: int) -> Inflated:
    """The body in `chunks`, without its coding ("", gzip, deflate, zstd).

    Raises BodyTooLarge over `limit` bytes. A stream that breaks off or is corrupt yields what came
    before, with its damage named: what can be decoded of it is for the caller to find out.
    """
    if not coding:
        data = b"".join(chunks)
        if len(data) > limit:
            raise BodyTooLarge(limit)
        return Inflated(data)
    output = _Output(limit)
    damage = _expand(_pieces(chunks), coding, output)
    return Inflated(output.joined(), damage)


class _Output:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def room(self) -> int:
        return min(_STEP, self._limit - self._size + 1)

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise BodyTooLarge(self._limit)
        self._parts.append(data)

    def joined(self) -> bytes:
        return b"".join(self._parts)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for at in range(0, len(chunk), _PIECE):
            yield chunk[at : at + _PIECE]


def _expand(pieces: Iterator[bytes], coding: str, output: _Output) -> str:
    """Decompress all members into `output`; returns the damage."""
    piece = next(pieces, b"")
    if not piece:
        return ""
    if len(piece) == 1:
        piece += next(pieces, b"")
    make = _maker(coding, piece)
    for _ in range(_MEMBERS):
        member = make()
        try:
            if not _expand_member(member, piece, pieces, output):
                return "the compressed body breaks off"
        except (zlib.error, ZstdError, EOFError):
            return "the compressed body is corrupt"
        piece = member.unused_data or next(pieces, b"")
        if coding != "zstd":
            piece = _skip_padding(piece, pieces)
        if not piece:
            return ""
        if coding == "deflate":
            return "bytes follow the compressed body"
    return "the compressed body has too many members"


def _expand_member(member: _Member, piece: bytes, pieces: Iterator[bytes], output: _Output) -> bool:
    """Decompress one member; whether its end was seen."""
    while True:
        most = output.room()
        part = member.pull(piece, most)
        output.add(part)
        if member.eof:
            return True
        # A full part may have more behind it even when all input has been taken.
        if len(part) == most or not member.hungry():
            piece = b""
            continue
        piece = next(pieces, b"")
        if not piece:
            return False


def _skip_padding(piece: bytes, pieces: Iterator[bytes]) -> bytes:
    """What follows zero bytes: gzip's own tool pads with them."""
    piece = piece.lstrip(b"\0")
    while not piece:
        following = next(pieces, None)
        if following is None:
            return b""
        piece = following.lstrip(b"\0")
    return piece


def _maker(coding: str, head: bytes) -> Callable[[], _Member]:
    if coding == "zstd":
        return _Zstd
    if coding == "gzip":
        return lambda: _Zlib(16 + zlib.MAX_WBITS)
    # RFC 9110 means zlib by "deflate", some senders mean the raw stream: RFC 1950's header tells.
    wrapped = is_zlib(head)
    return lambda: _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def is_zlib(head: bytes) -> bool:
    """Whether these first bytes are a zlib header (RFC 1950 section 2.2)."""
    return (
        len(head) > 1
        and head[0] & 0x0F == _ZLIB_METHOD
        and int.from_bytes(head[:2], "big") % 31 == 0
    )

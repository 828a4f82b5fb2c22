"""Bounded decompression: what comes out is right, and never more than the limit."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from backports import zstd

from facta.intake.decompress import codings, inflate
from facta.intake.errors import BodyTooLarge, Unsupported

TEXT = b"".join(b"line %d of a body\n" % number for number in range(20_000))
HALF = len(TEXT) // 2
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"


def raw_deflate(data: bytes) -> bytes:
    maker = zlib.compressobj(wbits=-15)
    return maker.compress(data) + maker.flush()


MAKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "zstd": ("zstd", zstd.compress),
    "none": ("", bytes),
}


@pytest.mark.parametrize("step", [1, 7, 65_536, 10_000_000])
@pytest.mark.parametrize("name", MAKERS)
def test_whatever_the_pieces_the_body_comes_out(name: str, step: int) -> None:
    coding, make = MAKERS[name]
    body = make(TEXT[:2000] if step == 1 else TEXT)
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    inflated = inflate(pieces, coding, len(TEXT))
    assert inflated.data == (TEXT[:2000] if step == 1 else TEXT)
    assert inflated.damage == ""


@pytest.mark.parametrize("name", MAKERS)
def test_the_limit_is_exact(name: str) -> None:
    coding, make = MAKERS[name]
    assert inflate([make(TEXT)], coding, len(TEXT)).data == TEXT
    with pytest.raises(BodyTooLarge):
        inflate([make(TEXT)], coding, len(TEXT) - 1)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(TEXT[:HALF]) + gzip.compress(TEXT[HALF:])),
        ("gzip", gzip.compress(TEXT[:HALF]) + gzip.compress(b"") + gzip.compress(TEXT[HALF:])),
        ("gzip", gzip.compress(TEXT) + bytes(1000)),
        ("zstd", zstd.compress(TEXT[:HALF]) + zstd.compress(TEXT[HALF:])),
        ("zstd", SKIPPABLE + zstd.compress(TEXT)),
    ],
)
def test_members_that_follow_each_other_are_one_body(coding: str, body: bytes) -> None:
    inflated = inflate([body], coding, len(TEXT))
    assert (inflated.data, inflated.damage) == (TEXT, "")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_no_body_at_all_is_an_empty_one(coding: str) -> None:
    assert inflate([], coding, 10).data == b""
    assert inflate([b""], coding, 10).damage == ""


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "zstd"])
def test_a_body_that_breaks_off_yields_what_came_before(name: str) -> None:
    coding, make = MAKERS[name]
    body = make(TEXT)
    inflated = inflate([body[: len(body) * 3 // 4]], coding, len(TEXT))
    assert inflated.damage == "the compressed body breaks off"
    assert TEXT.startswith(inflated.data)
    assert len(inflated.data) > HALF or name == "zstd"


@pytest.mark.parametrize(
    ("coding", "body", "damage"),
    [
        ("gzip", b"not gzip at all", "the compressed body is corrupt"),
        ("deflate", b"\xff" * 100, "the compressed body is corrupt"),
        ("zstd", b"not zstd at all", "the compressed body is corrupt"),
        ("gzip", gzip.compress(TEXT) + b"rubbish", "the compressed body is corrupt"),
        ("deflate", zlib.compress(TEXT) + b"rubbish", "bytes follow the compressed body"),
        ("gzip", gzip.compress(b"") * 5000, "the compressed body has too many members"),
        ("gzip", gzip.compress(b"x")[:-8] + bytes(8), "the compressed body is corrupt"),
    ],
)
def test_damage_is_named_and_never_raised(coding: str, body: bytes, damage: str) -> None:
    assert inflate([body], coding, len(TEXT)).damage == damage


def bomb(coding: str, size: int) -> bytes:
    block = bytes(1 << 20)
    if coding == "zstd":
        packer = zstd.ZstdCompressor()
        return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()
    maker = zlib.compressobj(9, wbits={"gzip": 31, "deflate": 15}[coding])
    return b"".join(maker.compress(block) for _ in range(size >> 20)) + maker.flush()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_bomb_costs_no_more_memory_than_the_limit(coding: str) -> None:
    body = bomb(coding, 256 << 20)
    limit = 4 << 20
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            inflate([body], coding, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * limit


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("", ""),
        ("identity", ""),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        (" deflate ", "deflate"),
        ("zstd", "zstd"),
        ("gzip, identity", "gzip"),
    ],
)
def test_codings_that_are_read(header: str, coding: str) -> None:
    assert codings(header) == coding


@pytest.mark.parametrize(
    "header", ["br", "gzip, gzip", "gzip, zstd", "snappy", "lz4", "aws-chunked"]
)
def test_codings_that_are_not(header: str) -> None:
    with pytest.raises(Unsupported) as raised:
        codings(header)
    assert header not in str(raised.value)

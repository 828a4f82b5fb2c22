"""Zstandard from the standard library where it has it (Python 3.14), else from its backport."""

import sys
import threading

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3
_LEVEL_BIG = 1
_BIG = 1 << 20

# A compressor is costly to make and not thread-safe.
_local = threading.local()


def compress(data: bytes) -> bytes:
    """`data` as one zstd frame: quickly where it is big, since others wait for the same commit."""
    if len(data) >= _BIG:
        return zstd.compress(data, _LEVEL_BIG)
    compressor = getattr(_local, "compressor", None)
    if compressor is None:
        compressor = _local.compressor = zstd.ZstdCompressor(_LEVEL)
    frame: bytes = compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
    return frame


def decompress(frame: bytes) -> bytes:
    """The data in a zstd frame. Raises ValueError when it is not one."""
    try:
        return zstd.decompress(frame)
    except zstd.ZstdError:
        raise ValueError("not a zstd frame") from None

"""Whose blob is this? The value is hashed here; only its hashes are looked up, nothing is kept."""

import base64
import binascii
import hashlib
from typing import BinaryIO

LIMIT = 64 << 20


class BlobError(Exception):
    """What came on standard input cannot be a sealed value; one line, without it."""


def hashes(source: BinaryIO) -> list[str]:
    """The sha256, as hex, of the text read (without surrounding space or quotes) and of what it
    decodes to as base64, standard or URL-safe, padded or not; raises BlobError.
    """
    data = source.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise BlobError(f"the value is over {LIMIT >> 20} MiB")
    whole = data
    data = data.strip()
    if len(data) > 1 and data[:1] == data[-1:] and data[:1] in b"\"'":
        data = data[1:-1]
    if not data:
        raise BlobError("nothing came on standard input")
    found = [whole, data, *_decoded(data)]
    return list(dict.fromkeys(hashlib.sha256(part).hexdigest() for part in found))


def _decoded(data: bytes) -> list[bytes]:
    text = data.replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        return [base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)]
    except binascii.Error:
        return []

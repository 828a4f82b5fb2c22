"""Size and hashes of a value: all that is ever kept of it."""

import binascii
import hashlib
import re
from typing import NamedTuple

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_LINE_ENDS = str.maketrans("", "", "\r\n")
_TO_STANDARD = str.maketrans("-_", "+/")
BEDROCK_PREFIX = "rsn_"


class Facts(NamedTuple):
    """`size` in characters of text or bytes of bytes; hashes in lower-case hex.

    `sha256_decoded` is of the base64-decoded bytes, empty where the text does not decode;
    `alphabet` is "standard", "url", "" (neither shown) or "bytes".
    """

    size: int
    sha256: str
    sha256_decoded: str
    alphabet: str


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encoded(text: str) -> bytes:
    """UTF-8 of the text; lone surrogates, which JSON escapes can make, keep their code point."""
    return text.encode("utf-8", "surrogatepass")


def alphabet(text: str) -> str:
    """Which base64 alphabet the text shows: "standard", "url", or "" for neither or both."""
    standard, url = "+" in text or "/" in text, "-" in text or "_" in text
    if standard == url:
        return ""
    return "standard" if standard else "url"


def decode(text: str) -> bytes | None:
    """The bytes that base64 text stands for, or None where it is not whole, clean base64.

    Standard or url alphabet, padded or not, in lines or not; Bedrock's `rsn_` is a label before it.
    """
    body = text.removeprefix(BEDROCK_PREFIX)
    if "\n" in body:
        body = body.translate(_LINE_ENDS)
    if not _BASE64.fullmatch(body):
        return None
    core = body.rstrip("=")
    wrong_padding = len(core) != len(body) and len(body) % 4
    both = ("+" in core or "/" in core) and ("-" in core or "_" in core)
    if len(core) % 4 == 1 or wrong_padding or both:
        return None
    return binascii.a2b_base64(core.translate(_TO_STANDARD) + "=" * (-len(core) % 4))


def facts(value: str | bytes) -> Facts:
    """Size and hashes of one value as it was received; the value is not kept.

    >>> facts("aGk=").sha256_decoded == sha256(b"hi")
    True
    """
    if isinstance(value, bytes):
        digest = sha256(value)
        return Facts(len(value), digest, digest, "bytes")
    decoded = decode(value)
    return Facts(
        len(value),
        sha256(encoded(value)),
        "" if decoded is None else sha256(decoded),
        alphabet(value.removeprefix(BEDROCK_PREFIX)),
    )

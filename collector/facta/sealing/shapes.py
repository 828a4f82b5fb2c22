"""What a value's own bytes say: a sealed value's structure, an opaque shape, ordinary content."""

import base64
import re
import zlib

from facta.model.sealed import State
from facta.sealing import digest
from facta.sealing.places import MAGIC, SENTINELS

SHORTEST = 40  # characters: a shorter value is no sealed blob (carriage rules, section 0)
SHORTEST_BY_SHAPE = 128  # characters: response ids of 109 are ordinary
SHORTEST_STRUCTURE = 100
_SAMPLE = 4096

_FERNET = re.compile(r"gAAAAA[A-D][A-Za-z0-9_-]")
_HEX = re.compile(r"[0-9a-fA-F]+")
_ITEM_ID = re.compile(
    r"(?:rs|msg|fc|resp|item|call|toolu|srvtoolu|cmp|ws|req|chatcmpl|run|gen)[_-][0-9A-Za-z_-]{1,64}"
)
_HANDLE = re.compile(
    r"(?:[A-Za-z]{1,3}[_-]|[\"'{])?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}[\"'}]?"
)
_REDACTED = re.compile(
    r"[\[<({*]*[^\[\]<>\n]{0,40}?"
    r"(?:redact|withheld|omitted|scrubbed|masked|filtered|stripped|removed|hidden|\*{3})"
    r"[^\[\]<>\n]{0,160}[\]>)}*]*",
    re.IGNORECASE,
)
_STATED_LENGTH = re.compile(r"\b(?:len|length|size|chars)\s*[=:]\s*(\d{1,9})\b", re.IGNORECASE)


def _sentinels() -> dict[str, bytes]:
    table: dict[str, bytes] = {}
    for text in SENTINELS:
        raw = text.encode()
        for form in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
            table[form.decode()] = table[form.decode().rstrip("=")] = raw
        table[text] = raw
    return table


_SENTINEL_BYTES = _sentinels()


def sentinel(text: str) -> bytes | None:
    """The bytes of a documented stand-in for a signature, or None."""
    return _SENTINEL_BYTES.get(text)


def is_handle(text: str) -> bool:
    """A reference that stands where ciphertext would (DeepSeek: a UUID, 36 or 38 characters)."""
    return _HANDLE.fullmatch(text) is not None


def is_item_id(text: str) -> bool:
    return _ITEM_ID.fullmatch(text) is not None


def redacted(text: str) -> tuple[State, int] | None:
    """State and size of a literal that stands for a value somebody took out, or None.

    The size is the one that the literal states, or its own. Angle brackets are a host's own
    redaction at the source (Claude Code): withheld.
    """
    if len(text) > 256 or not _REDACTED.fullmatch(text):  # noqa: PLR2004 - literals are short
        return None
    if re.fullmatch(r"[A-Za-z0-9+/_=-]{40,}", text):  # a word inside base64 by chance
        return None
    stated = _STATED_LENGTH.search(text)
    return "withheld" if text.startswith("<") else "redacted", int(stated[1]) if stated else len(
        text
    )


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Value and end of the varint at `at`; the end is -1 where there is none."""
    value = shift = 0
    while at < len(data) and shift < 64:  # noqa: PLR2004 - a varint has at most 64 bits
        value |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:  # noqa: PLR2004 - the last byte has no continuation bit
            return value, at + 1
        at, shift = at + 1, shift + 7
    return 0, -1


def _head(data: bytes) -> str:
    """Whose head the bytes have: "anthropic", "gemini" or "".

    Anthropic: field 2, in it field 1 (a header), in it field 1, a varint. Gemini: field 1 (older:
    field 2 around field 1), in it a Tink prefix, 0x01 and four bytes of key id.
    """
    at, outer = 0, len(data)
    if data[:1] == b"\x12":
        outer, at = _varint(data, 1)
    if at < 0 or data[at : at + 1] != b"\x0a":
        return ""
    inner, start = _varint(data, at + 1)
    if start < 0 or inner < 5 or (data[:1] == b"\x12" and inner >= outer):  # noqa: PLR2004 - the prefix
        return ""
    if data[start : start + 1] == b"\x08" and at:
        return "anthropic"
    return "gemini" if data[start : start + 1] == b"\x01" else ""


_GEMINI_KEYS = b"\x01\xd1\xed\x8a"  # the Tink prefix of all signatures that were seen


def bytes_head(data: bytes) -> str:
    return _head(data[:32])


def structure(text: str) -> str:
    """Whose sealed value the text is by its structure: fernet, mantle, anthropic, gemini or ""."""
    if text.startswith("gAAAA"):
        return "fernet" if _FERNET.match(text) else ""
    if text.startswith(digest.BEDROCK_PREFIX):
        return "mantle"
    head = digest.decode(text[:48].rstrip("="))
    return "" if head is None else _head(head)


def specific(text: str, head: str) -> bool:
    """Whether a structure is specific enough to stand alone, also in a tool's data."""
    if len(text) < SHORTEST_STRUCTURE:
        return False
    if head == "fernet":
        return True
    if head == "mantle":
        return varied(text)
    data = digest.decode(_whole_quads(text[:2048]))
    if data is None:
        return False
    if head == "gemini" and _GEMINI_KEYS not in data[:16]:
        return chain_of_chunks(digest.decode(text) or b"")
    return ciphered(data)


def _whole_quads(text: str) -> str:
    return text[: len(text) - len(text) % 4]


def chain_of_chunks(data: bytes) -> bool:
    """Whether the bytes are field 1 again and again, to their end, each with one Tink prefix."""
    at, prefix = 0, b""
    while at < len(data):
        size, start = _varint(data, at + 1)
        if data[at] != 0x0A or start < 0 or start + size > len(data):  # noqa: PLR2004 - tag of field 1
            return False
        prefix = prefix or data[start : start + 5]
        if data[start : start + 5] != prefix:
            return False
        at = start + size
    return bool(prefix)


def parses(data: bytes) -> bool:
    """Whether the bytes are protobuf fields of plausible numbers, to their very end."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if at < 0 or not 1 <= tag >> 3 <= 64:  # noqa: PLR2004 - field numbers of a small message
            return False
        if tag & 7 == 2:  # noqa: PLR2004 - length-delimited
            size, at = _varint(data, at)
            at = at + size if at >= 0 else -1
        elif tag & 7 in (0, 1, 5):
            at = _varint(data, at)[1] if tag & 7 == 0 else at + (8 if tag & 7 == 1 else 4)
        else:
            return False
        if not 0 <= at <= len(data):
            return False
    return bool(data)


def overrun(text: str) -> bool:
    """Whether the text is a cut value: its head declares more bytes than there are."""
    head = structure(text)
    if head not in ("anthropic", "gemini"):
        return False
    data = digest.decode(_whole_quads(text[:48]))
    size, start = _varint(data or b"", 1)
    return start > 0 and start + size > len(text) * 3 // 4 + 1


def looks_cut(text: str) -> bool:
    """Whether a value that no key vouches for was cut by a length limit.

    Its head is known but its structure does not come out even, no padding closes it, and its
    length is one that limits have.
    """
    if text.endswith("=") or structure(text) != "anthropic":
        return False
    size = len(text)
    round_size = size % 100 == 0 or any(n & (n - 1) == 0 for n in (size - 1, size, size + 1))
    return round_size and not parses(digest.decode(text) or b"")


def varied(text: str) -> bool:
    """Whether the characters are spread as in base64 of random bytes (no hex, path, rule line)."""
    sample = text[:_SAMPLE]
    size = len(sample)
    upper = sum(map(str.isupper, sample))
    digits = sum(map(str.isdigit, sample))
    marks = sum(map(sample.count, "+/-_"))
    if _HEX.fullmatch(sample) or len(set(sample)) < min(20, size // 2):
        return False
    lower = size - upper - digits - marks
    return min(upper, lower) >= size // 5 and digits >= size // 20 and marks <= size // 8


def ciphered(data: bytes) -> bool:
    """Whether the bytes are as evenly spread as ciphertext, and not mostly readable."""
    sample = data[:512]
    if len(sample) < 24:  # noqa: PLR2004 - too few to say
        return False
    expected = 256 * (1 - (255 / 256) ** len(sample))
    readable = sum(32 <= byte < 127 for byte in sample)  # noqa: PLR2004 - printable ASCII
    return len(set(sample)) >= 0.8 * expected and readable < 0.6 * len(sample)


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    controls = sum(ord(char) < 32 and char not in "\t\r\n" for char in text[:_SAMPLE])  # noqa: PLR2004
    return controls * 20 <= len(text[:_SAMPLE])


def _is_floats(data: bytes) -> bool:
    """Little-endian float32 or float64 of modest size: their high bytes are few (embeddings)."""
    for width in (4, 8):
        high = data[width - 1 : _SAMPLE : width]
        if len(data) % width == 0 and len(high) >= 8:  # noqa: PLR2004 - enough to tell
            modest = sum(0x38 <= byte & 0x7F <= 0x44 for byte in high)  # noqa: PLR2004
            if modest >= 0.9 * len(high):
                return True
    return False


def _is_der(data: bytes) -> bool:
    if data[:2] == b"\x30\x82":
        return int.from_bytes(data[2:4], "big") == len(data) - 4
    return data[:2] == b"\x30\x81" and data[2:3] == bytes([(len(data) - 3) & 0xFF])


def _is_zlib(data: bytes) -> bool:
    if data[:2] not in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
        return False
    try:
        return bool(zlib.decompressobj().decompress(data[:_SAMPLE], 1024))
    except zlib.error:
        return False


def is_ordinary(data: bytes) -> bool:
    """Whether decoded bytes are ordinary content: a known file format, text, numbers, a key."""
    return (
        data.startswith(MAGIC)
        or data[4:8] == b"ftyp"
        or (data[:2] == b"BM" and int.from_bytes(data[2:6], "little") == len(data))
        or _is_text(data)
        or _is_der(data)
        or _is_floats(data)
        or _is_zlib(data)
    )


def is_opaque(text: str) -> bool:
    """Whether the text is base64 of something that looks like ciphertext (shape)."""
    if not varied(text) or is_item_id(text):
        return False
    data = digest.decode(text)
    if data is None:  # mangled: only the spread of the characters speaks
        core = text.rstrip("=")
        return not (("+" in core or "/" in core) and ("-" in core or "_" in core))
    return not is_ordinary(data) and ciphered(data)

"""The protobuf wire format, read without a schema (https://protobuf.dev/programming-guides/encoding/).

What the generated parser refuses as a whole is walked here field by field, so that one broken field
costs only itself.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_GROUP, _GROUP_END = 3, 4
_GROUPS = 100
_VARINT_BYTES = 10
_MORE = 0x80
_MAX_TAG = 0xFFFFFFFF
_U64 = 0xFFFFFFFFFFFFFFFF

# Number and wire type, then the value: for BYTES where it starts and ends, else itself and 0.
Field = tuple[int, int, int, int]


class Damaged(Exception):  # noqa: N818 - a statement about the bytes
    """Nothing can be read from offset `at` on; `reason` says why.

    When a length points beyond the end, `number` is its field and `start` where its content begins.
    """

    def __init__(
        self, at: int, number: int = 0, start: int = 0, reason: str = "the encoding breaks off"
    ) -> None:
        super().__init__(reason)
        self.at = at
        self.number = number
        self.start = start
        self.reason = reason


class Steps:
    """How many more fields or tokens of a request are looked at: a bound on the time it takes."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spent(self, at: int) -> Damaged:
        """What to raise at `at` when none is left."""
        return Damaged(at, reason="over the limit of steps for a request, not looked at")


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The unsigned 64-bit varint at `at`, and where it ends."""
    value = 0
    for place in range(_VARINT_BYTES):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < _MORE:
            return value & _U64, at
    raise Damaged(at)


def signed(value: int, bits: int = 64) -> int:
    """A varint as a two's complement integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def double(value: int) -> float:
    """A FIXED64 as a double, NaN payloads included as far as Python keeps them."""
    number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    return number


def fields(data: bytes, at: int, end: int, steps: Steps) -> Iterator[Field]:
    """The fields between `at` and `end`, groups left out; raises Damaged where they break off."""
    while at < end:
        begin = at
        steps.left -= 1
        if steps.left < 0:
            raise steps.spent(begin)
        tag = data[at]
        at += 1
        if tag >= _MORE:
            tag, at = _damage_at(begin, data, begin, end)
        number, kind = tag >> 3, tag & 7
        if number == 0 or tag > _MAX_TAG:
            raise Damaged(begin)
        if kind == BYTES:
            if at < end and data[at] < _MORE:
                size = data[at]
                at += 1
            else:
                size, at = _damage_at(begin, data, at, end)
            if size > end - at:
                raise Damaged(begin, number, at)
            yield number, kind, at, at + size
            at += size
        elif kind == VARINT:
            value, at = _damage_at(begin, data, at, end)
            yield number, kind, value, 0
        elif kind in {FIXED64, FIXED32}:
            width = 8 if kind == FIXED64 else 4
            if width > end - at:
                raise Damaged(begin)
            yield number, kind, int.from_bytes(data[at : at + width], "little"), 0
            at += width
        elif kind == _GROUP:
            at = _after_group(data, at, end, number)
        else:
            raise Damaged(begin)


def _damage_at(begin: int, data: bytes, at: int, end: int) -> tuple[int, int]:
    """`varint`, whose damage counts from the field's first byte."""
    try:
        return varint(data, at, end)
    except Damaged:
        raise Damaged(begin) from None


def _after_group(data: bytes, at: int, end: int, number: int) -> int:
    """Where a group ends. No message of OTLP has groups: they are unknown fields."""
    begin = at
    open_groups = [number]
    while open_groups:
        tag, at = _damage_at(begin, data, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == _GROUP and len(open_groups) < _GROUPS and number:
            open_groups.append(number)
        elif kind == _GROUP_END and open_groups[-1] == number:
            open_groups.pop()
        elif kind == VARINT and number:
            _, at = _damage_at(begin, data, at, end)
        elif kind in {BYTES, FIXED64, FIXED32} and number:
            if kind == BYTES:
                size, at = _damage_at(begin, data, at, end)
            else:
                size = 8 if kind == FIXED64 else 4
            at += size
            if at > end:
                raise Damaged(begin)
        else:
            raise Damaged(begin)
    return at


@dataclass(slots=True)
class Message:
    """One message's fields, collected: the last of each, and all of the repeated ones asked for.

    Of a repeated field at most `keep` entries are held; `beyond` says how many more there were and
    where the first of those began. `damage` is set where the encoding broke off.
    """

    data: bytes
    start: int
    end: int
    last: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    repeated: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    beyond: dict[int, tuple[int, int]] = field(default_factory=dict)
    damage: Damaged | None = None

    def bytes_at(self, number: int) -> bytes | None:
        """The last content of a BYTES field, None when there is none."""
        place = self.last.get((number, BYTES))
        return None if place is None else self.data[place[0] : place[1]]

    def number_at(self, number: int, kind: int) -> int:
        """The last value of a numeric field, 0 when there is none."""
        return self.last.get((number, kind), (0, 0))[0]

    def rest(self) -> bytes:
        """What lies behind the damage."""
        return b"" if self.damage is None else self.data[self.damage.at : self.end]


def message(data: bytes, at: int, end: int, repeated: dict[int, int], steps: Steps) -> Message:
    """Collect the fields between `at` and `end`. `repeated` gives the repeated fields, and of how
    many entries of each the places are held.
    """
    found = Message(data, at, end, repeated={number: [] for number in repeated})
    try:
        for number, kind, value, stop in fields(data, at, end, steps):
            if kind == BYTES and number in repeated:
                entries = found.repeated[number]
                if len(entries) < repeated[number]:
                    entries.append((value, stop))
                else:
                    count, first = found.beyond.get(number, (0, value))
                    found.beyond[number] = (count + 1, first)
            else:
                found.last[number, kind] = (value, stop)
    except Damaged as damage:
        found.damage = damage
    return found

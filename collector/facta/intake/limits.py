"""How much one request may hold, and what is left of it while a request is read."""

from dataclasses import dataclass

from facta.intake.errors import Refused
from facta.intake.wire import Steps

MEBIBYTE = 1024 * 1024
_NOTES = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request. What is over them is refused and counted, never dropped silently.

    `body`: bytes, of the body as sent and again after decompression (64 MiB; a single sealed value
    of 2.9 MB is normal). `records`: spans or log records of a request; the rest is rejected.
    `attributes`: of one span, event, log record, scope or resource. `events`: events of a span, and
    links likewise. `nesting`: arrays and maps around a value. `key`: characters of an attribute
    key. `values`: attributes and nested values of a request together, which bounds the memory that
    a body of tiny values can take. `steps`: fields or JSON tokens looked at one by one, which bounds
    the time that a body of tiny or broken pieces can take; what lies beyond is refused unseen.
    `threads`: for bodies up to 1 MiB; larger ones queue for two
    threads of their own. `read_seconds`: time that a sender has for its body.
    """

    body: int = 64 * MEBIBYTE
    records: int = 100_000
    attributes: int = 4096
    events: int = 4096
    nesting: int = 64
    key: int = 65_536
    values: int = 4_000_000
    steps: int = 8_000_000
    threads: int = 16
    read_seconds: float = 120.0


class Allowance:
    """What the reading of one request may still take.

    A strict reader (`strict`) refuses a map with repeated keys, so that the caller reads again what
    it read, slowly; the slow reader counts them in `repeated`. `notes` refusals may still be noted one
    by one.
    """

    __slots__ = ("limits", "notes", "repeated", "steps", "strict", "values")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.values = limits.values
        self.strict = True
        self.repeated = 0
        self.notes = _NOTES
        self.steps = Steps(limits.steps)

    def take(self, count: int) -> None:
        """Count `count` values; raises Refused when the request has no more of them."""
        if count > self.values:
            raise Refused(f"over the limit of {self.limits.values} values in a request")
        self.values -= count

    def enter(self, depth: int) -> int:
        """The depth inside one more array or map; raises Refused below the limit."""
        if depth >= self.limits.nesting:
            raise Refused(f"nested deeper than {self.limits.nesting}")
        return depth + 1

    def key(self, key: str) -> str:
        """`key`, unless it is too long."""
        if len(key) > self.limits.key:
            raise Refused(f"key over the limit of {self.limits.key} characters")
        return key

    def repeats(self, count: int) -> None:
        """Note `count` values of a map that a later value of the same key replaces."""
        if self.strict:
            raise Refused("repeated keys in a map")
        self.repeated += count

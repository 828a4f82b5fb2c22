"""Where the records of a request lie in its body, found before any of them is read.

Both encodings are split first: limits hold before anything is built, a record that cannot be read
costs no neighbour, and a large body is read in small steps, so that other requests get their turn.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from facta.intake.errors import DecodeFailed, RecordRefused, Refused, refusal
from facta.intake.limits import Allowance
from facta.intake.wire import Damaged, Steps
from facta.model.records import Attributes, Batch, Record, Refusal, Scope, Value

# A record or attribute over this size is read field by field, counting: parsers that build first
# and count afterwards take twenty times the memory of a body full of empty values.
SLICE = 256 * 1024

# A slice of a request: SDKs send 512 records at a time, so most requests are one slice.
_RECORDS = 1000
_BYTES = 4 * 1024 * 1024

_STEPS_OF_A_REFUSAL = 10
_STEPS_OF_A_REJECTION = 3
_STEPS_OF_IDS = 32

Place = tuple[int, int]
T = TypeVar("T")


@dataclass(slots=True)
class ScopePart:
    """The records of one scope: `scope` and `schema_url` as encoded, records as places in it."""

    scope: bytes = b""
    schema_url: bytes = b""
    records: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class ResourcePart:
    """One resource as encoded, with its scopes."""

    resource: bytes = b""
    schema_url: bytes = b""
    scopes: list[ScopePart] = field(default_factory=list)


@dataclass(slots=True)
class Outline:
    """A request's parts; what could not even be split is in `refusals`."""

    data: bytes
    limit: int
    steps: Steps
    parts: list[ResourcePart] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    found: int = 0
    rejected: int = 0
    damaged: bool = False

    def room(self) -> bool:
        """Whether one more record may be kept; counts it either way."""
        if self.found < self.limit:
            self.found += 1
            return True
        self.rejected += 1
        self.steps.left -= _STEPS_OF_A_REJECTION
        return False

    def beyond(self, first: int, end: int) -> None:
        """Note that the records from `first` to `end` are over the limit."""
        reason = f"over the limit of {self.limit} records in a request"
        self.refusals.append(refusal(reason, "body", memoryview(self.data)[first:end]))

    def broken(self, damage: Damaged) -> None:
        """Note that nothing more can be found. The innermost of nested parts says so first."""
        if not self.damaged:
            self.damaged = True
            raw = memoryview(self.data)[damage.at :]
            self.refusals.append(refusal(damage.reason, "body", raw))


class Encoding(Protocol):
    """What differs between protobuf and JSON once a body is split."""

    def scope(
        self, resource: ResourcePart, part: ScopePart, allowance: Allowance
    ) -> tuple[Scope, list[Refusal]]:
        """The scope with its resource, and what could not be read of them."""

    def strict(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        """A record with nothing wrong in it; raises Refused for anything else."""

    def salvage(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        """A record without what cannot be read of it; raises RecordRefused."""


def slices(
    outline: Outline, encoding: Encoding, noun: str, allowance: Allowance
) -> Iterator[Batch]:
    """The records of an outline, a thousand or so at a time: a large body never stands in memory
    as records all at once. Raises DecodeFailed at the end when nothing of it could be read.
    """
    batch = Batch(refusals=outline.refusals, rejected=outline.rejected)
    damaged, kept, index, size = outline.damaged, 0, -1, 0
    for resource in outline.parts:
        for part in resource.scopes:
            scope, refusals = encoding.scope(resource, part, allowance)
            batch.refusals.extend(refusals)
            for start, end in part.records:
                index += 1
                raw = outline.data[start:end]
                try:
                    batch.records.append(read(raw, scope, encoding, allowance))
                except RecordRefused as refused:
                    damaged = damaged or refused.damaged
                    batch.rejected += 1
                    batch.refusals.append(refusal(refused.reason, f"{noun} {index}", raw))
                size += len(raw)
                if len(batch.records) + len(batch.refusals) >= _RECORDS or size >= _BYTES:
                    kept += len(batch.records)
                    yield batch
                    batch, size = Batch(), 0
    kept += len(batch.records)
    if damaged and not kept:
        raise DecodeFailed("Nothing in the body can be decoded.")
    yield batch


def whole(batches: Iterable[Batch]) -> Batch:
    """The slices of one request as one batch."""
    joined = Batch()
    for batch in batches:
        joined.records.extend(batch.records)
        joined.refusals.extend(batch.refusals)
        joined.rejected += batch.rejected
    return joined


def read(raw: bytes, scope: Scope, encoding: Encoding, allowance: Allowance) -> Record:
    """One record: fast when all is well with it, else field by field."""
    if len(raw) <= SLICE:
        before = allowance.values
        allowance.strict = True
        try:
            return encoding.strict(raw, scope, allowance)
        except Refused:
            allowance.values = before
    allowance.strict = False
    allowance.repeated = 0
    # Enough to find the ids, which senders put first: no span is lost to its neighbours' rubbish.
    allowance.steps.left = max(allowance.steps.left, _STEPS_OF_IDS)
    return encoding.salvage(raw, scope, allowance)


class Notes:
    """The refusals of one record, scope or resource while it is salvaged.

    A request has room for a number of single refusals; after that those of one owner are noted
    together, so that a body full of broken values cannot fill the memory with notes about them.
    """

    def __init__(self, allowance: Allowance, owner: str) -> None:
        self._found: list[Refusal] = []
        self._owner = owner
        self._allowance = allowance
        self._more = 0
        self._size = 0
        self._digest = hashlib.sha256()

    def add(self, reason: str, place: str, raw: bytes | memoryview) -> None:
        """Refuse `raw`, which stood at `place` of the owner."""
        self._allowance.steps.left -= _STEPS_OF_A_REFUSAL
        if self._allowance.notes:
            self._allowance.notes -= 1
            self._found.append(refusal(reason, f"{self._owner} {place}".strip(), raw))
        else:
            self._together(raw)

    def _together(self, raw: bytes | memoryview) -> None:
        self._more += 1
        self._size += len(raw)
        self._digest.update(raw)

    def found(self) -> list[Refusal]:
        """All refusals so far."""
        if not self._more:
            return self._found
        reason = f"{self._more} more that could not be read"
        rest = Refusal(reason, self._owner, self._size, self._digest.hexdigest())
        return [*self._found, rest]

    def attempt(self, place: str, raw: bytes, reading: Callable[[bytes], T], default: T) -> T:
        """What `reading` makes of `raw`, or `default` and a refusal."""
        allowance = self._allowance
        allowance.repeated = 0
        try:
            value = reading(raw)
        except Refused as refused:
            self.add(refused.reason, place, raw)
            return default
        if allowance.repeated:
            reason = f"repeated keys in a map, {allowance.repeated} earlier values left out"
            self.add(reason, place, raw)
        return value

    def attributes(
        self, place: str, raws: Iterable[bytes], reading: Callable[[bytes], tuple[str, Value]]
    ) -> Attributes:
        """The readable attributes among `raws`, in order; each of the others is refused alone."""
        kept: Attributes = []
        nothing: tuple[str, Value] = ("", None)
        for index, raw in enumerate(raws):
            if not self._allowance.values or self._allowance.steps.left <= 0:
                self._together(raw)
                continue
            pair = self.attempt(f"{place} {index}".strip(), raw, reading, nothing)
            if pair is not nothing:
                kept.append(pair)
        return kept

    def over(self, limit: int, what: str, count: int, raw: bytes | memoryview) -> None:
        """Refuse the `count` entries over a limit; `raw` runs from the first of them on."""
        self.add(f"over the limit of {limit} {what} ({count} more)", what, raw)

"""One group commit: the appends that were waiting together, written and fsynced at once.

The segment is committed first, then the index; an observation is in the ledger when its leaf is in
the index. Ids already there are counted, content already there is not stored again.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from facta.ledger.canonical import (
    NotCanonicalError,
    encode_observation,
    id_of,
    leaf_of,
    with_receipt,
)
from facta.ledger.index import KIND_BITS, Change, Index
from facta.ledger.segments import ObjectRecord, RowRecord, Segment
from facta.ledger.zstd import compress
from facta.model.observation import Append, Object

OnPoint = Callable[[str], None]

HASH_BYTES = 32
MAX_BYTES = 900_000_000
"""SQLite stores no value of more than 1,000,000,000 bytes."""


@dataclass(frozen=True, slots=True)
class Appended:
    """How many of an append's observations were new, and how many the ledger had already."""

    new: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One observation, ready to be written."""

    id: bytes
    row: bytes
    leaf: bytes


@dataclass(slots=True)
class Job:
    """One append, ready to be written, and who waits for it."""

    tenant: str
    entries: list[Entry]
    objects: list[tuple[bytes, Object]]
    done: "Future[Appended]" = field(default_factory=Future)

    @property
    def weight(self) -> int:
        """Bytes that this job may write."""
        rows = sum(len(entry.row) for entry in self.entries)
        return rows + sum(len(obj.data) for _, obj in self.objects)


def prepare(append: Append, tenant_key: bytes, received_ns: int) -> Job:
    """Encode and hash an append's observations (all of one tenant).

    Raises NotCanonicalError (a ValueError) for what cannot be stored; then nothing of it is.
    """
    tenant = append.observations[0].tenant
    entries = []
    for observation in append.observations:
        if observation.tenant != tenant:
            raise NotCanonicalError("an append holds observations of one tenant only")
        statement = encode_observation(observation)
        row = with_receipt(statement, received_ns)
        _check_size(row)
        entries.append(Entry(id_of(tenant_key, statement), row, leaf_of(row)))
    return Job(tenant, entries, [(_hash(obj), obj) for obj in append.objects])


def _hash(obj: Object) -> bytes:
    _check_size(obj.data)
    try:
        raw, _, _ = bytes.fromhex(obj.commit), bytes.fromhex(obj.salt), bytes.fromhex(obj.sha256)
    except ValueError:
        raise NotCanonicalError("commit, salt and sha256 of an object are hex digits") from None
    if len(raw) != HASH_BYTES or obj.kind not in KIND_BITS:
        raise NotCanonicalError("an object has a commit of 64 hex digits and a known kind")
    return raw


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise NotCanonicalError(f"a value of {len(data)} bytes is over the limit of {MAX_BYTES}")


class Group:
    """What a list of jobs adds to the ledger, given what it holds."""

    def __init__(self, jobs: list[Job], index: Index) -> None:
        self._index = index
        self.rows: list[RowRecord] = []
        self.objects: list[ObjectRecord] = []
        self.change = Change()
        self.next_object = index.next_object
        self.outcomes = self._observations(jobs)
        self._contents(jobs)

    def _tenant(self, name: str) -> int:
        number = self._index.tenants.get(name) or self.change.tenants.get(name)
        if number is None:
            number = len(self._index.tenants) + len(self.change.tenants) + 1
            self.change.tenants[name] = number
        return number

    def _observations(self, jobs: list[Job]) -> list[Appended]:
        seqs = self._index.seqs([entry.id for job in jobs for entry in job.entries])
        outcomes = []
        for job in jobs:
            before = len(self.rows)
            for entry in job.entries:
                self._observation(entry, self._tenant(job.tenant), seqs)
            new = len(self.rows) - before
            outcomes.append(Appended(new, len(job.entries) - new))
        return outcomes

    def _observation(self, entry: Entry, tenant: int, seqs: dict[bytes, int]) -> None:
        known = seqs.get(entry.id)
        if known is not None:
            self.change.repeats[known] = self.change.repeats.get(known, 0) + 1
            return
        seq = self._index.frontier.size + len(self.rows)
        seqs[entry.id] = seq
        self.rows.append((seq, entry.row))
        self.change.leaves.append((seq, entry.id, entry.leaf, tenant))

    def _contents(self, jobs: Iterable[Job]) -> None:
        wanted: dict[tuple[bytes, int], tuple[str, list[Object]]] = {}
        for job in jobs:
            tenant = self._tenant(job.tenant) if job.objects else 0
            for hash_, obj in job.objects:
                wanted.setdefault((hash_, tenant), (job.tenant, []))[1].append(obj)
        kept = self._index.kinds(list({hash_ for hash_, _ in wanted}))
        for (hash_, tenant), (name, objects) in wanted.items():
            self._content(hash_, tenant, name, objects, kept.get((hash_, tenant), 0))

    def _content(
        self, hash_: bytes, tenant: int, name: str, objects: list[Object], kept: int
    ) -> None:
        first, bits = self.next_object, kept
        for obj in objects:
            bit = KIND_BITS[obj.kind]
            if bits & bit:
                continue
            data = None if bits else compress(obj.data)
            salt, sha256 = bytes.fromhex(obj.salt), bytes.fromhex(obj.sha256)
            self.objects.append((self.next_object, hash_, name, obj.kind, salt, sha256, data))
            self.next_object += 1
            bits |= bit
        if not kept:
            self.change.objects.append((hash_, tenant, self._index.segment.no, first, bits))
        elif bits != kept:
            self.change.kinds.append((bits, hash_, tenant))

    def write(self, segment: Segment, on_point: OnPoint) -> None:
        """Write and fsync. Raises apsw.Error (nothing was kept) or CommitFailedError (unknown)."""
        on_point("before_append")
        if self.rows or self.objects:
            with segment.transaction() as commit:
                segment.add(self.rows, self.objects)
                on_point("after_append")
                commit()
        on_point("before_fsync")
        self._index.commit(self.change, self.next_object)
        on_point("after_fsync")

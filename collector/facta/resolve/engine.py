"""Resolving as observations come in: only the clusters that changed, only the rows that differ."""

import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw
import orjson

from facta.ledger import LedgerDamagedError
from facta.model.errors import Unavailable
from facta.model.observation import Object, Observation
from facta.resolve.chains import Chains
from facta.resolve.cluster import Tables, resolve
from facta.resolve.contents import CONTENT as CONTENT_TABLES
from facta.resolve.contents import Contents
from facta.resolve.keys import cluster_keys
from facta.resolve.state import GONE, State, Written, digest
from facta.store import StoreError

TABLES = (
    "evidence.sessions", "evidence.turns", "evidence.context", "evidence.tool_calls", "evidence.effects",
    "evidence.retrievals", "evidence.evaluations", "evidence.state_transitions", "evidence.sightings",
    "evidence.refusals", "ux.summaries",
)  # fmt: skip
CONTENT = tuple(CONTENT_TABLES.values())
_CACHE_BYTES = 64 * 1024 * 1024
_CACHED_OBSERVATIONS = 50_000
_CACHED_LINKS = 20_000
_CACHED_TENANTS = 64
_BATCH = 64


MISFIT = 53  # the store's code for a value that its column does not take
# Not the fault of what is resolved: to be tried again.
_ELSEWHERE = (Unavailable, LedgerDamagedError, OSError, MemoryError, apsw.Error)

log = logging.getLogger("facta.resolve")

Writes = dict[str, list[dict[str, Any]]]


class Done(NamedTuple):
    """What has been worked out for a cluster: rows to write, and what to note of them."""

    cluster: int
    tenant: str
    changed: list[Written]
    gone: list[bytes]
    writes: Writes


class Source(Protocol):
    """Where observations and objects are read: the ledger."""

    def rows(self, after_seq: int, limit: int) -> list[Any]:
        """Observations behind a place, in order."""

    def objects(self, commits: Iterable[str], tenant: str) -> dict[str, Object]:
        """Objects by commitment."""


class Sink(Protocol):
    """Where rows are written: the store."""

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Insert rows of equal columns."""


class Cache:
    """Objects of the ledger, the most recently used ones kept."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: OrderedDict[tuple[str, str], Object] = OrderedDict()
        self._bytes = 0

    def reader(self, tenant: str) -> Callable[[list[str]], dict[str, Object]]:
        """A reader of one tenant's objects."""

        def read(commits: list[str]) -> dict[str, Object]:
            out: dict[str, Object] = {}
            missing: list[str] = []
            for commit in commits:
                found = self._kept.get((tenant, commit))
                if found is None:
                    missing.append(commit)
                else:
                    self._kept.move_to_end((tenant, commit))
                    out[commit] = found
            if missing:
                for commit, found in self._source.objects(missing, tenant).items():
                    out[commit] = found
                    self._keep(tenant, found)
            return out

        return read

    def _keep(self, tenant: str, found: Object) -> None:
        self._kept[tenant, found.commit] = found
        self._bytes += len(found.data)
        while self._bytes > _CACHE_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1].data)


class Resolver:
    """Keeps the resolved tables equal to what the ledger's observations come to."""

    def __init__(self, path: Path, source: Source, sink: Sink) -> None:
        self._state = State(path)
        self._source, self._sink = source, sink
        self._cache = Cache(source)
        self._observations: OrderedDict[int, Observation] = OrderedDict()
        self._failed: set[int] = set()
        self._chains: dict[str, Chains] = {}

    @property
    def taken(self) -> int:
        """How many of the ledger's observations have been taken in (each below this place)."""
        return self._state.number("taken")

    @property
    def failed(self) -> int:
        """How many clusters could not be resolved; they are tried again when they change."""
        return len(self._failed)

    def number(self, name: str) -> int:
        """A number that was kept under a name; 0 where none was."""
        return self._state.number(name)

    def keep(self, **numbers: int) -> None:
        """Keep numbers under their names, on stable storage."""
        with self._state.transaction():
            for name, value in numbers.items():
                self._state.set_number(name, value)

    def clear(self) -> None:
        """Forget everything, to resolve it anew into empty tables."""
        self._state.clear()
        self._failed.clear()
        self._observations.clear()
        self._chains.clear()

    def close(self) -> None:
        """Close the resolver's own file."""
        self._state.close()

    def counts(self) -> dict[str, int]:
        """The rows that should stand in each table."""
        rows = {table: self._state.count(table) for table in TABLES}
        return rows | {name: self._state.count_shown(bit) for bit, name in CONTENT_TABLES.items()}

    def take(self, rows: list[Any]) -> None:
        """Take in the ledger's next rows (with `seq` and `observation`), without resolving yet."""
        with self._state.transaction():
            for row in rows:
                o = row.observation
                keys = _keys(o, self._chain(o.tenant))
                self._failed.discard(self._state.add(o.tenant, row.seq, keys))
                self._remember(row.seq, o)
            self._state.set_number("taken", rows[-1].seq + 1)
        # Those that were joined to another are no more.
        self._failed = {cluster for cluster in self._failed if self._state.is_dirty(cluster)}

    def _chain(self, tenant: str) -> Chains:
        """A tenant's links as read so far: a session that grows is not read from its root again."""
        chains = self._chains.get(tenant)
        if chains is None or chains.known > _CACHED_LINKS:
            if len(self._chains) >= _CACHED_TENANTS:
                self._chains.clear()
            chains = self._chains[tenant] = Chains(self._cache.reader(tenant))
        return chains

    def _remember(self, seq: int, o: Observation) -> None:
        self._observations[seq] = o
        while len(self._observations) > _CACHED_OBSERVATIONS:
            self._observations.popitem(last=False)

    def flush(self) -> int:
        """Resolve some of the clusters that wait; how many there were."""
        batch = self._state.dirty(_BATCH + len(self._failed))
        batch = [entry for entry in batch if entry[0] not in self._failed]
        if batch:
            self._flush(batch)
        return len(batch)

    def _flush(self, batch: list[tuple[int, str]]) -> None:
        version = max(self._state.number("version") + 1, time.time_ns())
        contents = Contents(self._state)
        work = [self._worked(*entry, version, contents) for entry in batch]
        done = [one for one in work if one is not None]
        writes: Writes = defaultdict(list)
        for one in done:
            for table, rows in one.writes.items():
                writes[table] += rows
        contents.write(self._cache.reader, version, writes)
        self._intend(done, version, contents)
        try:
            for table in sorted(writes):
                self._sink.insert(table.removesuffix(GONE), writes[table])
        except StoreError as error:
            if error.code != MISFIT:
                raise
            self._without_misfits([(one.cluster, one.tenant) for one in done])
        else:
            self._settle(done, contents)

    def _without_misfits(self, batch: list[tuple[int, str]]) -> None:
        """The clusters one by one, since a row of one of them has a value that no column takes."""
        if len(batch) == 1:
            self._give_up(batch[0][0], "MISFIT")
            return
        for entry in batch:
            self._flush([entry])

    def _worked(self, cluster: int, tenant: str, version: int, contents: Contents) -> Done | None:
        """What a cluster changes; None where our own code fails on it, which costs it alone."""
        observations = self._load(self._state.members(cluster))
        writes: Writes = defaultdict(list)
        try:
            read, chains = self._cache.reader(tenant), self._chain(tenant)
            tables = resolve(tenant, observations, read, chains)
            changed, gone = self._differences(cluster, tenant, tables, version, writes)
            contents.of(cluster, tenant, tables)
        except _ELSEWHERE:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the others must go on
            self._give_up(cluster, type(error).__name__)
            return None
        return Done(cluster, tenant, changed, gone, writes)

    def _give_up(self, cluster: int, why: str) -> None:
        """Leave a cluster as it stands until it changes."""
        self._failed.add(cluster)
        log.error("a group of observations could not be resolved (%s): it waits", why)

    def _intend(self, done: list[Done], version: int, contents: Contents) -> None:
        with self._state.transaction():
            self._state.set_number("version", version)
            for one in done:
                self._state.note(one.cluster, [row._replace(digest=None) for row in one.changed])
            contents.intend()

    def _settle(self, done: list[Done], contents: Contents) -> None:
        with self._state.transaction():
            for one in done:
                self._state.note(one.cluster, one.changed)
                self._state.forget(one.cluster, one.gone)
                self._state.clean(one.cluster)
            contents.settle()

    def _load(self, seqs: list[int]) -> list[Observation]:
        missing = [seq for seq in seqs if seq not in self._observations]
        found: dict[int, Observation] = {}
        at = 0
        while at < len(missing):
            end = at
            while (
                end + 1 < len(missing) and missing[end + 1] - missing[at] < 2 * (end + 1 - at) + 64
            ):
                end += 1
            for row in self._source.rows(missing[at] - 1, missing[end] - missing[at] + 1):
                found[row.seq] = row.observation
            at = end + 1
        out = [self._observations.get(seq) or found[seq] for seq in seqs]
        for seq in missing:
            self._remember(seq, found[seq])
        return out

    def _differences(
        self,
        cluster: int,
        tenant: str,
        tables: Tables,
        version: int,
        writes: Writes,
    ) -> tuple[list[Written], list[bytes]]:
        before = self._state.written(cluster)
        changed: list[Written] = []
        seen: set[bytes] = set()
        for table in TABLES:
            for row in tables.get(table, ()):
                place = f"{table} {row['session_id']} {row['row_key']}"
                name, body = (
                    digest(place),
                    digest(orjson.dumps(row, option=orjson.OPT_SORT_KEYS).decode()),
                )
                seen.add(name)
                old = before.get(name)
                if old is None or old.digest != body:
                    writes[table].append(
                        {"tenant": tenant, **row, "version": version, "deleted": 0}
                    )
                    changed.append(Written(name, place, body))
        gone = [old for name, old in before.items() if name not in seen]
        for old in gone:
            table, session, key = old.place.split(" ", 2)
            writes[f"{table}{GONE}"].append(
                {
                    "tenant": tenant,
                    "session_id": session,
                    "row_key": key,
                    "version": version,
                    "deleted": 1,
                }
            )
        return changed, [old.name for old in gone]


def _keys(o: Observation, chains: Chains) -> Iterable[str]:
    """What an observation shares with others; one that our code fails on stays for itself."""
    try:
        return cluster_keys(o, orjson.loads(o.body), chains)
    except _ELSEWHERE:
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, the others must go on
        log.error("an observation could not be placed (%s)", type(error).__name__)  # noqa: TRY400
        return [f"alone {o.id}"]

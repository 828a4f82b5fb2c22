"""Resolving as observations come in: only the clusters that changed, only the rows that differ."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import orjson

from facta.model.observation import Object, Observation
from facta.resolve.chains import Chains
from facta.resolve.cluster import Tables, resolve
from facta.resolve.contents import CONTENT as CONTENT_TABLES
from facta.resolve.contents import Contents
from facta.resolve.keys import cluster_keys
from facta.resolve.state import GONE, State, Written, digest

TABLES = (
    "evidence.sessions", "evidence.turns", "evidence.context", "evidence.tool_calls", "evidence.effects",
    "evidence.retrievals", "evidence.evaluations", "evidence.state_transitions", "evidence.sightings",
    "evidence.refusals", "ux.summaries",
)  # fmt: skip
CONTENT = tuple(CONTENT_TABLES.values())
_CACHE_BYTES = 64 * 1024 * 1024
_CACHED_OBSERVATIONS = 50_000
_BATCH = 64


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

    @property
    def taken(self) -> int:
        """How many of the ledger's observations have been taken in (each below this place)."""
        return self._state.number("taken")

    @property
    def waits(self) -> bool:
        """Whether clusters wait to be resolved."""
        return self._state.waits()

    def close(self) -> None:
        """Close the resolver's own file."""
        self._state.close()

    def counts(self) -> dict[str, int]:
        """The rows that should stand in each table."""
        rows = {table: self._state.count(table) for table in TABLES}
        return rows | {name: self._state.count_shown(bit) for bit, name in CONTENT_TABLES.items()}

    def take(self, rows: list[Any]) -> None:
        """Take in the ledger's next rows (with `seq` and `observation`), without resolving yet."""
        self._state.begin()
        try:
            chains: dict[str, Chains] = {}
            for row in rows:
                o = row.observation
                chain = chains.setdefault(o.tenant, Chains(self._cache.reader(o.tenant)))
                self._state.add(o.tenant, row.seq, cluster_keys(o, orjson.loads(o.body), chain))
                self._remember(row.seq, o)
            self._state.set_number("taken", rows[-1].seq + 1)
            self._state.commit()
        except BaseException:
            self._state.rollback()
            raise

    def _remember(self, seq: int, o: Observation) -> None:
        self._observations[seq] = o
        while len(self._observations) > _CACHED_OBSERVATIONS:
            self._observations.popitem(last=False)

    def flush(self) -> int:
        """Resolve some of the clusters that wait; how many there were."""
        batch = self._state.dirty(_BATCH)
        if not batch:
            return 0
        version = max(self._state.number("version") + 1, time.time_ns())
        writes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        done: list[tuple[int, list[Written], list[bytes]]] = []
        contents = Contents(self._state)
        for cluster, tenant in batch:
            tables = resolve(
                tenant, self._load(self._state.members(cluster)), self._cache.reader(tenant)
            )
            changed, gone = self._differences(cluster, tenant, tables, version, writes)
            contents.of(cluster, tenant, tables)
            done.append((cluster, changed, gone))
        contents.write(self._cache.reader, version, writes)
        self._intend(done, version, contents)
        for table in sorted(writes):
            self._sink.insert(table.removesuffix(GONE), writes[table])
        self._settle(done, contents)
        return len(batch)

    def _intend(
        self, done: list[tuple[int, list[Written], list[bytes]]], version: int, contents: Contents
    ) -> None:
        self._state.begin()
        self._state.set_number("version", version)
        for cluster, changed, _ in done:
            self._state.note(cluster, [row._replace(digest=None) for row in changed])
        contents.intend()
        self._state.commit()

    def _settle(
        self, done: list[tuple[int, list[Written], list[bytes]]], contents: Contents
    ) -> None:
        self._state.begin()
        for cluster, changed, gone in done:
            self._state.note(cluster, changed)
            self._state.forget(cluster, gone)
            self._state.clean(cluster)
        contents.settle()
        self._state.commit()

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
        writes: dict[str, list[dict[str, Any]]],
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

"""From payload files to resolved tables in process, with dicts as ledger and store."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from facta.conventions import read
from facta.intake import protobuf
from facta.intake.json import decode as decode_json
from facta.intake.limits import Limits
from facta.ledger.interning import Interning
from facta.model.identity import Identity
from facta.model.observation import Append, Object, Observation
from facta.model.records import Batch, Record
from facta.resolve.chains import Chains
from facta.resolve.cluster import resolve
from facta.resolve.engine import CONTENT, TABLES, Resolver
from facta.resolve.keys import cluster_keys
from facta.resolve.union import Union
from facta.sealing import seal

DATA = Path(__file__).parents[1] / "data" / "otlp"
RUNS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
Signal = Literal["traces", "logs"]
IDENTITY = Identity("default", "local")
KEY = b"k" * 32
Row = dict[str, Any]
Tables = dict[str, list[Row]]
_RESOLVED_CLOCK = ("version", "deleted")


def files_of(run: str) -> Iterator[tuple[Signal, Path]]:
    """(signal, file) of a run's requests, in the order in which they were sent."""
    for line in (DATA / run / "headers.jsonl").read_text().splitlines():
        head = json.loads(line)
        file = DATA / run / f"{head['file']}.otlp.json"
        file = file if file.exists() else DATA / run / f"{head['file']}.binpb"
        yield ("logs" if head["path"].endswith("logs") else "traces"), file


def batches_of(run: str) -> list[Batch]:
    """A run's requests, decoded as intake decodes them."""
    out: list[Batch] = []
    for signal, file in files_of(run):
        decode = decode_json if file.name.endswith(".json") else protobuf.decode
        out.append(decode(file.read_bytes(), signal, Limits()))
    assert sum(len(batch.records) for batch in out)
    return out


def append_of(records: Sequence[Record], identity: Identity = IDENTITY, key: bytes = KEY) -> Append:
    """What the ledger is given of some records: sealed, read and interned."""
    interning = Interning(identity, key)
    for record in map(seal, records):
        interning.add(record, read(record))
    return Append(interning.observations, list(interning.objects.values()))


def appends_of(run: str, identity: Identity = IDENTITY, key: bytes = KEY) -> list[Append]:
    """What the ledger is given of a run, one append a request."""
    return [append_of(batch.records, identity, key) for batch in batches_of(run)]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """As facta.ledger.Row, as far as the resolver looks at it."""

    seq: int
    observation: Observation


@dataclass(slots=True)
class Memory:
    """A ledger in memory: each observation once by id, each object once; counts what is read."""

    observations: list[Observation] = field(default_factory=list)
    kept: dict[tuple[str, str], Object] = field(default_factory=dict)
    reads: int = 0
    _ids: set[str] = field(default_factory=set)

    def append(self, append: Append) -> list[LedgerRow]:
        """Keep what is new; its rows."""
        new: list[LedgerRow] = []
        for o in append.observations:
            if o.id not in self._ids:
                self._ids.add(o.id)
                new.append(LedgerRow(len(self.observations), o))
                self.observations.append(o)
        tenant = append.observations[0].tenant if append.observations else ""
        for obj in append.objects:
            self.kept.setdefault((tenant, obj.commit), obj)
        return new

    def rows(self, after_seq: int, limit: int) -> list[LedgerRow]:
        """Observations behind a place, in order."""
        found = self.observations[after_seq + 1 : after_seq + 1 + limit]
        self.reads += len(found)
        return [LedgerRow(after_seq + 1 + n, o) for n, o in enumerate(found)]

    def objects(self, commits: Iterable[str], tenant: str) -> dict[str, Object]:
        """Objects by commitment."""
        wanted = list(commits)
        self.reads += len(wanted)
        return {c: self.kept[tenant, c] for c in wanted if (tenant, c) in self.kept}


@dataclass(slots=True)
class Shelf:
    """A store in memory: of each row the newest version, as ReplacingMergeTree has it."""

    tables: dict[str, dict[tuple[str, ...], Row]] = field(default_factory=lambda: defaultdict(dict))
    written: int = 0

    def insert(self, table: str, rows: list[Row]) -> None:
        """Insert rows; a newer version replaces, a deletion is a version too."""
        names = {tuple(sorted(row)) for row in rows}
        assert len(names) == 1, f"{table}: rows of one insert have one set of columns"
        self.written += len(rows)
        for row in rows:
            key = (row["tenant"], *(row[k] for k in _key_of(table)))
            old = self.tables[table].get(key)
            if old is None or old["version"] <= row["version"]:
                self.tables[table][key] = row

    def final(self) -> Tables:
        """What a reader sees, in order of the rows' keys, without version."""
        return {
            table: [bare(row) for _, row in sorted(rows.items()) if not row["deleted"]]
            for table, rows in sorted(self.tables.items())
            if any(not row["deleted"] for row in rows.values())
        }


def _key_of(table: str) -> tuple[str, ...]:
    return ("commit",) if table in CONTENT else ("session_id", "row_key")


def bare(row: Row) -> Row:
    """A row without what lies outside: its version."""
    return {k: v for k, v in row.items() if k not in _RESOLVED_CLOCK}


class House:
    """Ledger, resolver and store, all in memory."""

    def __init__(self) -> None:
        self.ledger = Memory()
        self.shelf = Shelf()
        self.resolver = Resolver(Path(":memory:"), self.ledger, self.shelf)

    def take(self, append: Append) -> None:
        """Keep an append, without resolving yet."""
        if rows := self.ledger.append(append):
            self.resolver.take(rows)

    def flush(self) -> None:
        """Resolve all that waits."""
        while self.resolver.flush():
            pass
        assert self.resolver.failed == 0, "something could not be resolved"

    def final(self) -> Tables:
        """The tables when nothing waits."""
        self.flush()
        return self.shelf.final()


def tables_of(appends: Iterable[Append]) -> Tables:
    """The resolved tables of some appends, taken in one after the other and resolved once."""
    house = House()
    for append in appends:
        house.take(append)
    return house.final()


def from_scratch(appends: Iterable[Append]) -> Tables:
    """The resolved tables by definition: clusters by their keys, each resolved for itself."""
    ledger = Memory()
    for append in appends:
        ledger.append(append)
    out: dict[str, list[Row]] = defaultdict(list)
    for tenant, cluster in clusters_of(ledger):
        for table, rows in resolve(tenant, cluster, reader_of(ledger, tenant)).items():
            out[table] += [{"tenant": tenant, **row} for row in rows]
    return {
        table: sorted(rows, key=lambda r: (r["tenant"], r["session_id"], r["row_key"]))
        for table, rows in sorted(out.items())
        if rows
    }


def reader_of(ledger: Memory, tenant: str) -> Callable[[list[str]], dict[str, Object]]:
    """A reader of one tenant's objects."""
    return lambda commits: ledger.objects(commits, tenant)


def clusters_of(ledger: Memory) -> list[tuple[str, list[Observation]]]:
    """The observations that share a key, directly or through others, with their tenant."""
    union = Union()
    named: dict[str, list[Observation]] = defaultdict(list)
    for o in ledger.observations:
        chains = Chains(reader_of(ledger, o.tenant))
        for key in cluster_keys(o, orjson.loads(o.body), chains):
            union.join(f"o {o.tenant} {o.id}", f"k {o.tenant} {key}")
    for o in ledger.observations:
        named[union.find(f"o {o.tenant} {o.id}")].append(o)
    return [(members[0].tenant, members) for _, members in sorted(named.items())]


def resolved_only(tables: Tables) -> Tables:
    """The tables without contents."""
    return {table: rows for table, rows in tables.items() if table in TABLES}


def exact(tables: Tables) -> bytes:
    """Tables as bytes, to be compared."""
    return orjson.dumps(tables, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)


def digest(tables: Tables) -> str:
    """A short name for what tables hold."""
    return hashlib.sha256(exact(tables)).hexdigest()[:16]


def with_service(batches: list[Batch], service: str) -> list[Batch]:
    """The same requests from a service of another name."""
    for batch in batches:
        for record in batch.records:
            resource = [(k, v) for k, v in record.scope.resource if k != "service.name"]
            scope = replace(record.scope, resource=[*resource, ("service.name", service)])
            record.scope = scope
    return batches


def single(appends: Iterable[Append]) -> list[Append]:
    """Each observation in an append of its own."""
    return [Append([o], append.objects) for append in appends for o in append.observations]


def shuffled(appends: list[Append], seed: int) -> list[Append]:
    """Single observations in another order, some of them twice."""
    draw = random.Random(seed)
    out = single(appends)
    out += draw.sample(out, len(out) // 3)
    draw.shuffle(out)
    return out

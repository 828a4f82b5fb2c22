"""The content tables: each text once, in the lanes that all clusters together give it.

A text that any cluster knows as a summary is kept in the ux lane and no longer as message text; a
tool's argument or result is evidence whatever else says the same. What no row names any more is
taken out again, so that the tables do not depend on what was known at first.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from facta.model.observation import Object
from facta.resolve.rows import Row
from facta.resolve.state import GONE, Shown, State

TEXT, UX, DEED = 1, 2, 4
CONTENT = {1: "evidence.content", 2: "ux.content"}
_EVIDENCE, _UX = CONTENT
Name = tuple[str, str]
Reader = Callable[[list[str]], dict[str, Object]]


def named(tables: dict[str, list[Row]]) -> dict[str, int]:
    """The commitments that rows name, each with how they name it (a sum of TEXT, UX, DEED)."""
    out: dict[str, int] = defaultdict(int)
    for row in tables.get("evidence.context", ()):
        for part in orjson.loads(row["parts"]):
            if part["kind"] in ("call", "result"):
                out[part.get("commit", "")] |= DEED
            else:
                # A text with holes is kept whole with the summaries; its row has the rest.
                out[part.get("commit", "")] |= UX if part.get("ux") or part.get("holes") else TEXT
    for row in tables.get("ux.summaries", ()):
        out[row["ux_commit"]] |= UX
    for row in tables.get("evidence.turns", ()):
        for commit in (row["instructions_commit"], row["tools_commit"], *row["attributes_commit"]):
            out[commit] |= DEED
    for row in tables.get("evidence.tool_calls", ()):
        out[row["arguments_commit"]] |= DEED
        out[row["result_commit"]] |= DEED
    out.pop("", None)
    return dict(out)


def lanes(how: int) -> int:
    """The tables (a sum of the keys of CONTENT) for a text that is named so."""
    evidence = how & DEED or (how & TEXT and not how & UX)
    return (_EVIDENCE if evidence else 0) | (_UX if how & UX else 0)


@dataclass(slots=True)
class Contents:
    """What one batch of clusters changes in the content tables."""

    state: State
    _before: dict[int, dict[str, int]] = field(default_factory=dict)
    _now: dict[int, dict[str, int]] = field(default_factory=dict)
    _tenants: dict[int, str] = field(default_factory=dict)
    _wanted: dict[Name, int] = field(default_factory=dict)
    _known: dict[Name, Shown] = field(default_factory=dict)

    def of(self, cluster: int, tenant: str, tables: dict[str, list[Row]]) -> None:
        """Look at a cluster's new rows."""
        self._tenants[cluster] = tenant
        self._before[cluster] = self.state.contents(cluster)
        self._now[cluster] = named(tables)

    def write(
        self,
        reader: Callable[[str], Reader],
        version: int,
        writes: dict[str, list[dict[str, Any]]],
    ) -> None:
        """Add the rows to write, after all clusters of the batch were looked at."""
        for tenant, commit in sorted(self._affected()):
            name = (tenant, commit)
            want, shown = lanes(self._how(name)), self.state.shown(tenant, commit)
            if shown.sure and shown.tables == want:
                continue
            found = reader(tenant)([commit]).get(commit)
            if found is None:
                continue  # erased: its tombstone took the rows with it
            self._wanted[name], self._known[name] = want, shown
            row = {"tenant": tenant, "commit": commit, "version": version}
            for bit, table in CONTENT.items():
                if want & bit and not (shown.sure and shown.tables & bit):
                    writes[table].append({**row, **_content(found), "deleted": 0})
                elif shown.tables & bit and not want & bit:
                    writes[f"{table}{GONE}"].append({**row, "deleted": 1})

    def _affected(self) -> set[Name]:
        out: set[Name] = set()
        for cluster, tenant in self._tenants.items():
            before, now = self._before[cluster], self._now[cluster]
            names = before.keys() | now.keys()
            out |= {(tenant, name) for name in names if before.get(name) != now.get(name)}
        return out

    def _how(self, name: Name) -> int:
        """How all clusters together name a text: those of this batch as they are now."""
        tenant, commit = name
        how = 0
        for cluster, told in self.state.namings(tenant, commit):
            how |= 0 if cluster in self._now else told
        for cluster, now in self._now.items():
            how |= now.get(commit, 0) if self._tenants[cluster] == tenant else 0
        return how

    def intend(self) -> None:
        """Note what may stand in the store after the writes, or after a crash within them."""
        for name, want in self._wanted.items():
            self.state.show(*name, Shown(want | self._known[name].tables, sure=False))
        for cluster, now in self._now.items():
            new = dict.fromkeys(now.keys() - self._before[cluster].keys(), 0)
            self.state.name(cluster, self._tenants[cluster], new)

    def settle(self) -> None:
        """Note what stands there now."""
        for name, want in self._wanted.items():
            self.state.show(*name, Shown(want, sure=True))
        for cluster, now in self._now.items():
            before = self._before[cluster]
            changed = {name: how for name, how in now.items() if before.get(name) != how}
            self.state.name(cluster, self._tenants[cluster], changed)
            self.state.unname(cluster, before.keys() - now.keys())


def _content(found: Object) -> dict[str, Any]:
    text = found.data.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode()
    return {"salt": found.salt, "sha256": found.sha256, "size": len(found.data), "text": text}

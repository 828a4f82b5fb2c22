"""Item lists as chains of links: walking them, and hashing what a list says apart from how.

A *context* is a hash over the atoms of a list (texts by role, calls by tool and canonical arguments,
results), reasoning and instructions left out. It is the same for a response and for the request that
carries it back, though libraries write the two differently.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import orjson

from facta.ledger.interning import link_hash
from facta.model.observation import Object

Shape = dict[str, Any]
Reader = Callable[[list[str]], dict[str, Object]]
EMPTY = "0" * 64
_SKIPPED_ROLES = {"system", "developer"}


class Link(NamedTuple):
    """One place of a list: its position, its parent link, and the item that stands there."""

    name: str
    parent: str
    depth: int
    item_name: str
    item: Shape
    context: str


@dataclass(slots=True)
class Chains:
    """Reads one tenant's objects: each link and item once, texts as often as they are asked for."""

    read: Reader
    keys: dict[str, Any] = field(default_factory=dict)
    _links: dict[str, Link] = field(default_factory=dict)

    def data(self, commit: str) -> bytes | None:
        """The bytes of an object; None where it is gone (erased, or dropped with its segment)."""
        found = self.read([commit]).get(commit)
        return found.data if found is not None else None

    @property
    def known(self) -> int:
        """How many links have been read, and how many observations' keys (see `resolve.keys`)."""
        return len(self._links) + len(self.keys)

    def text(self, commit: str) -> str | None:
        """A text by its commitment; "" for the empty commitment, None where it is gone."""
        if not commit:
            return ""
        data = self.data(commit)
        return None if data is None else data.decode("utf-8", "surrogatepass")

    def link(self, name: str) -> Link | None:
        """A link with its depth and context; None for the root or where the chain is broken."""
        path: list[tuple[str, str, str]] = []
        here = name
        while here and here not in self._links:
            data = self.data(here)
            if data is None or len(data) not in (32, 64):
                return None
            parent = data[:-32].hex()
            path.append((here, parent, data[-32:].hex()))
            here = parent
        for below, parent, item in reversed(path):
            self._links[below] = self._made(below, parent, item)
        return self._links.get(name)

    def _made(self, name: str, parent: str, item: str) -> Link:
        before = self._links.get(parent)
        shape = cast("Shape", orjson.loads(self.data(item) or b'{"role":"","parts":[]}'))
        context = extend(before.context if before else EMPTY, shape)
        return Link(name, parent, before.depth + 1 if before else 0, item, shape, context)

    def back(
        self, head: str, most: int | None = None, stop: Callable[[str], bool] | None = None
    ) -> list[Link]:
        """Links from `head` back towards the root, at most `most`, ending before one that stops."""
        out: list[Link] = []
        here = head
        while here and (most is None or len(out) < most) and not (stop and stop(here)):
            link = self.link(here)
            if link is None:
                break
            out.append(link)
            here = link.parent
        return out

    def joined(self, heads: list[str]) -> str:
        """The head of one list made of several, for messages that came as events of their own."""
        head = ""
        for link in (entry for part in heads for entry in self.items(part)):
            parent, head = head, link_hash(head, link.item_name)
            self._links[head] = self._made(head, parent, link.item_name)
        return head

    def items(self, head: str) -> list[Link]:
        """A whole list, in order."""
        return self.back(head)[::-1]


def atoms(item: Shape) -> list[str]:
    """What an item says, one text an atom."""
    role = item["role"]
    if role in _SKIPPED_ROLES:
        return []
    out: list[str] = []
    for part in item["parts"]:
        if part["k"] == "text" and part.get("t"):
            out.append(f"t {role} {part['t']}")
        elif part["k"] == "call":
            out.append(f"c {part.get('o', '')} {part.get('a', '')}")
        elif part["k"] == "result":
            out.append(f"r {part.get('t', '')}")
    return out


def extend(context: str, item: Shape) -> str:
    """A context with one more item behind it."""
    for atom in atoms(item):
        context = hashlib.sha256(
            f"{context}\x00{atom}".encode("utf-8", "surrogatepass")
        ).hexdigest()
    return context

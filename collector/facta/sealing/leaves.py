"""The leaves of a record: every string and bytes in it, where it stands, and how to put one back."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from facta.model.records import Attributes, Record, Value
from facta.model.sealed import Marks
from facta.sealing import layers, places, shapes
from facta.sealing.judging import Spot, scan, scan_bytes
from facta.sealing.places import Node, Place, Zone

Path = tuple[Any, ...]
HEAD = 16  # characters: as much of a sealed value as may stand nowhere


@dataclass(slots=True)
class Leaf:
    """One string or bytes of a record: how to reach it, and what was found in it."""

    path: Path
    text: str | bytes
    place: Place
    is_key: bool = False
    spots: list[Spot] = field(default_factory=list)

    def look(self) -> None:
        if isinstance(self.text, str):
            self.spots = scan(self.text, self.place)
            return
        readable = _readable(self.text)
        if readable is not None:
            self.text = readable
            self.spots = scan(readable, self.place)
            return
        spot = scan_bytes(self.text, self.place)
        self.spots = [spot] if spot else []


def _readable(data: bytes) -> str | None:
    """Text that came as bytes (a body, base64 as bytes)."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "{" in text[:64] else None


def is_quiet(text: str | bytes, key: str) -> bool:
    """Whether a leaf can be passed over at once: nothing in it looks sealed, nor does its key."""
    if key and places.is_sealed_key(key):
        return not text
    return layers.is_quiet(text) if isinstance(text, str) else len(text) < shapes.SHORTEST


@lru_cache(maxsize=4096)
def _is_quiet_name(name: str) -> bool:
    return layers.is_quiet(name) and not places.is_sealed_key(name.rpartition(".")[2])


def _is_quiet_value(value: Value) -> bool:
    todo: list[Value] = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            if not layers.is_quiet(value):
                return False
        elif isinstance(value, dict):
            if not all(map(_is_quiet_name, value)):
                return False
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, bytes) and len(value) >= shapes.SHORTEST:
            return False
    return True


def _are_quiet(attributes: Attributes) -> bool:
    for name, value in attributes:
        if not _is_quiet_name(name):
            return False
        kind = type(value)
        if kind is str:
            if len(value) >= layers.SHORTEST_TEXT and not layers.is_quiet(value):  # type: ignore[arg-type]
                return False
        elif kind in _HOLDING and not _is_quiet_value(value):
            return False
    return True


_HOLDING = (list, dict, bytes)


def is_silent(record: Record) -> bool:
    """Whether nothing in the record can be sealed: true of most, so it has to be quick."""
    scope = record.scope
    texts = (record.name, record.status_message, scope.name, scope.version, scope.schema_url)
    return (
        _are_quiet(record.attributes)
        and (record.body is None or _is_quiet_value(record.body))
        and all(map(layers.is_quiet, texts))
        and all(layers.is_quiet(e.name) and _are_quiet(e.attributes) for e in record.events)
        and _are_quiet(scope.resource)
        and _are_quiet(scope.attributes)
        and all(layers.is_quiet(side) for link in record.links for side in link)
    )


@dataclass(slots=True)
class Walk:
    """The leaves of a record that a gate lets through, in order."""

    passes_over: Callable[[str | bytes, str], bool]

    def value(self, value: Value, key: str, node: Node, root: Zone, path: Path) -> Iterator[Leaf]:
        todo: list[tuple[Value, str, Node, Path]] = [(value, key, node, path)]
        while todo:
            value, key, node, path = todo.pop()
            if isinstance(value, str | bytes):
                if not self.passes_over(value, key or node.key):
                    yield Leaf(path, value, Place(key, node, root))
            elif isinstance(value, dict):
                inside = Node(key, node, places.labels_of(value))
                for name, item in reversed(value.items()):
                    todo.append((item, name, inside, (*path, name)))
                    if not self.passes_over(name, ""):
                        yield Leaf((*path, name), name, Place("", inside, root), is_key=True)
            elif isinstance(value, list):
                inside = Node(key, node)
                todo += [(item, "", inside, (*path, at)) for at, item in enumerate(value)][::-1]

    def attributes(self, attributes: Attributes, path: Path, *, tool: bool) -> Iterator[Leaf]:
        known: dict[str, Value] | None = None
        for at, (name, value) in enumerate(attributes):
            if not self.passes_over(name, ""):
                yield Leaf((*path, at, 0), name, Place("", Node(), "other"))
            if not isinstance(value, str | bytes | list | dict):
                continue
            last = name.rpartition(".")[2]
            if isinstance(value, str | bytes) and self.passes_over(value, last):
                continue
            known = dict(attributes) if known is None else known
            zone = places.zone_of(name)
            key, node = attribute_node(name, known)
            root: Zone = "tool" if tool and zone == "model" else zone
            yield from self.value(value, key, node, root, (*path, at, 1))

    def record(self, record: Record) -> Iterator[Leaf]:
        tool = places.is_tool_span(dict(record.attributes))
        yield from self.attributes(record.attributes, ("attributes",), tool=tool)
        yield from self.value(record.body, "", Node("body"), "model", ("body",))
        for at, event in enumerate(record.events):
            of_tool = tool or event.name.startswith("gen_ai.tool")
            yield from self.value(event.name, "", Node(), "other", ("events", at, "name"))
            path = ("events", at, "attributes")
            yield from self.attributes(event.attributes, path, tool=of_tool)
        for name in ("name", "status_message"):
            yield from self.value(getattr(record, name), "", Node(), "other", (name,))
        for at, link in enumerate(record.links):
            for side in (0, 1):
                yield from self.value(link[side], "", Node(), "other", ("links", at, side))
        for name in ("resource", "attributes"):
            yield from self.attributes(getattr(record.scope, name), ("scope", name), tool=False)
        for name in ("name", "version", "schema_url"):
            yield from self.value(getattr(record.scope, name), "", Node(), "other", ("scope", name))


_MOST_STEPS = 16


def attribute_node(name: str, known: dict[str, Value]) -> tuple[str, Node]:
    """Key and surroundings of an attribute: a dotted name is a flattened path (OpenInference)."""
    node = Node()
    steps = name.split(".")
    if len(steps) > _MOST_STEPS:
        return steps[-1], node
    prefix = ""
    for step in steps[:-1]:
        prefix = f"{prefix}.{step}" if prefix else step
        said = {what: known.get(f"{prefix}.{what}") for what in ("type", "role", "tool_call_id")}
        labels = {what: text for what, text in said.items() if isinstance(text, str)}
        node = Node(step, node, labels)
    return steps[-1], node


_RENAMED = object()  # in a tree of changes: the new names of keys


def _tree(changes: Iterable[tuple[Leaf, str]]) -> dict[Any, Any]:
    tree: dict[Any, Any] = {}
    for leaf, text in changes:
        at = tree
        for step in leaf.path[:-1]:
            at = at.setdefault(step, {})
        if leaf.is_key:
            at = at.setdefault(_RENAMED, {})
        at[leaf.path[-1]] = text
    return tree


def _changed(value: Any, tree: dict[Any, Any] | str) -> Any:
    """A copy of the value with the changes of the tree; what is not changed is shared."""
    if isinstance(tree, str):
        return tree
    if isinstance(value, list | tuple):
        items = list(value)
        for at, change in tree.items():
            items[at] = _changed(items[at], change)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        names = tree.get(_RENAMED, {})
        copy = {}
        for key, item in value.items():
            copy[names.get(key, key)] = _changed(item, tree[key]) if key in tree else item
        return copy
    fields = {}
    for name, change in tree.items():
        fields[name] = _changed(getattr(value, name), change)
    return replace(value, **fields)


def rebuilt(record: Record, marks: Marks, changes: Iterable[tuple[Leaf, str]]) -> Record:
    """The record with other texts for some leaves; the given record stays as it is."""
    changed = _changed(record, _tree(changes))
    return replace(changed, marks=marks) if isinstance(changed, Record) else record

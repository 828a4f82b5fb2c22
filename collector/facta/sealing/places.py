"""Where a value stands, and what its place says about it: the table of sealed_places.yaml, read."""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import yaml

from facta.assets import SCHEMA

Zone = Literal["model", "other", "tool"]
_TABLE: dict[str, Any] = yaml.safe_load(
    (SCHEMA / "conventions" / "sealed_places.yaml").read_text("utf-8")
)
_LONGEST_NAME = 64
_SQUASH = str.maketrans("", "", "_- ")


@lru_cache(maxsize=4096)
def _squash(name: str) -> str:
    return name.lower().translate(_SQUASH)


def plain(name: str) -> str:
    """A name without case, "_" and "-": encrypted_content and encryptedContent are one name."""
    return _squash(name) if len(name) <= _LONGEST_NAME else ""


def _names(key: str) -> frozenset[str]:
    return frozenset(plain(str(name)) for name in _TABLE[key])


@dataclass(slots=True)
class Node:
    """An object or list around a value: the key it stands under, and what is said inside it."""

    key: str = ""
    parent: "Node | None" = None
    labels: dict[str, str] = field(default_factory=dict)

    def chain(self) -> Iterator["Node"]:
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def type(self) -> str:
        return plain(self.labels.get("type") or self.labels.get("part_kind") or "")


# Keys whose text says what an object is; of the others only the presence counts.
INDEXES = frozenset(("index", "content_index", "contentBlockIndex", "output_index"))
_TELLING = frozenset(("type", "part_kind", "role", "format"))
_PRESENT = frozenset(
    (
        "thinking",
        "reasoning",
        "redacted_thinking",
        "toolUseId",
        "toolCallId",
        *_TABLE["tool_labels"],
    )
)
LABELS = _TELLING | _PRESENT | INDEXES


def labels_of(mapping: Mapping[str, object]) -> dict[str, str]:
    """What a decoded object says about itself."""
    return {
        key: label(key, str(mapping[key]))
        for key in LABELS
        if key in mapping and isinstance(mapping[key], str | int | dict)
    }


def label(key: str, text: str) -> str:
    return text if key not in _PRESENT and len(text) <= _LONGEST_NAME else ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table (its comment explains the fields)."""

    kind: str
    types: frozenset[str]
    under: frozenset[str]
    beside: frozenset[str]
    zones: frozenset[str]

    @property
    def confidence(self) -> float:
        return 1.0 if self.types or self.under else 0.9

    def holds(self, key_node: Node, ancestors: frozenset[str]) -> bool:
        if self.types and not self.types & {key_node.type(), plain(key_node.key)}:
            return False
        if self.under and not self.under & ancestors:
            return False
        return not self.beside or not self.beside.isdisjoint(key_node.labels)


def _rules() -> dict[str, list[Rule]]:
    rules: dict[str, list[Rule]] = {}
    for row in _TABLE["places"]:
        sets = [frozenset(map(plain, row.get(name, ()))) for name in ("types", "under")]
        rule = Rule(
            row["kind"],
            sets[0],
            sets[1],
            frozenset(row.get("beside", ())),
            frozenset(row.get("zones", ())),
        )
        for key in row["keys"]:
            rules.setdefault(plain(key), []).append(rule)
    return rules


_RULES = _rules()
_REASONING_TYPES = frozenset(map(plain, _TABLE["reasoning"]["types"]))
_REASONING_KEYS = frozenset(map(plain, _TABLE["reasoning"]["keys"]))
_MAPS = _names("maps")
_TOOL_TYPES, _TOOL_KEYS = _names("tool_types"), _names("tool_keys")
_NEAR = 4  # steps above a value in which a vendor's name is about it
_VENDORS = {
    str(provider): tuple(map(plain, words)) for provider, words in _TABLE["provider_names"].items()
}
_TOOL_LABELS = frozenset(("toolUseId", "toolCallId", *_TABLE["tool_labels"]))


def is_sealed_key(key: str) -> bool:
    """Whether a value under this key may be sealed by its place (its object decides)."""
    return plain(key) in _RULES


@dataclass(frozen=True, slots=True)
class Place:
    """One value's place: its own key, the object around it, the zone of its attribute."""

    key: str
    node: Node
    root: Zone

    def zone(self) -> Zone:
        """The attribute's zone, or "tool" inside a call, a result or another carrier of data."""
        if self.root != "model" or plain(self.key) in _TOOL_KEYS:
            return "tool" if self.root == "model" else self.root
        for node in self.node.chain():
            if node.type() in _TOOL_TYPES or plain(node.key) in _TOOL_KEYS:
                return "tool"
            if node.labels.get("role") == "tool" or not _TOOL_LABELS.isdisjoint(node.labels):
                return "tool"
        return "model"

    def rule(self) -> Rule | None:
        """What the table says of this place; None where it is no sealed place."""
        key, node = self.key, self.node
        if node.key and (not key or plain(node.key) in _MAPS):  # an item stands for its list's key
            key, node = node.key, node.parent or node
        rules = _RULES.get(plain(key))
        if rules is None:
            return None
        ancestors = frozenset(plain(above.key) for above in node.chain() if above.key)
        for rule in rules:
            if rule.holds(node, ancestors) and (not rule.zones or self.zone() in rule.zones):
                return rule
        return None

    def vendor(self) -> str:
        """The vendor that stands beside or around the value (OpenRouter's format, AI SDK), or ""."""
        said = [self.node.labels.get("format", ""), *(node.key for node in self.node.chain())]
        for words in said[:_NEAR]:
            for provider, names in _VENDORS.items():
                if plain(words).startswith(names):
                    return provider
        return ""

    def is_reasoning(self) -> bool:
        """Whether this is the text of a reasoning part, by its label."""
        return self.node.type() in _REASONING_TYPES or plain(self.key) in _REASONING_KEYS

    def is_delta(self) -> bool:
        """Whether the value is a piece of a stream."""
        return any(
            plain(node.key).endswith("delta") or node.type().endswith("delta")
            for node in self.node.chain()
        )

    def stream(self) -> tuple[str, ...]:
        """What the pieces of one streamed value have in common: their path and index."""
        steps = [plain(self.key)]
        for node in self.node.chain():
            name = "" if node.key.isdecimal() else node.key
            steps += [name, *(node.labels[key] for key in INDEXES if key in node.labels)]
        return tuple(steps)


def _globs(key: str) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(glob) for glob in _TABLE[key]))


_MODEL, _TOOL = _globs("model_attributes"), _globs("tool_attributes")


@lru_cache(maxsize=4096)
def zone_of(attribute: str) -> Zone:
    """The zone of an attribute by its name."""
    name = attribute[:256]
    if _TOOL.match(name):
        return "tool"
    return "model" if _MODEL.match(name) else "other"


_TOOL_SPANS: dict[str, list[str]] = _TABLE["tool_spans"]


def is_tool_span(attributes: Mapping[str, object]) -> bool:
    return any(attributes.get(key) in values for key, values in _TOOL_SPANS.items())


def provider_of(attributes: Mapping[str, object]) -> str:
    """The vendor that the telemetry names (a key of `providers`), or ""."""
    for key in _TABLE["provider_attributes"]:
        said = attributes.get(key)
        if isinstance(said, str) and len(said) <= _LONGEST_NAME:
            for provider, words in _TABLE["provider_names"].items():
                if any(word in said.lower() for word in words):
                    return str(provider)
    return ""


def by_provider(kind: str, provider: str) -> str:
    """The kind, made narrower by what the telemetry says of the vendor."""
    return str(_TABLE["providers"].get(provider, {}).get(kind, kind))


@dataclass(frozen=True, slots=True)
class ProseName:
    """A name that stands before a value in running text."""

    pattern: re.Pattern[str]
    kind: str
    zones: frozenset[str]


_PROSE = [
    ProseName(
        re.compile(row["name"] + r"[\"'\\]*\s*[:=]\s*[\"'\\b]*$", re.IGNORECASE),
        row["kind"],
        frozenset(row.get("zones", ())),
    )
    for row in _TABLE["prose"]
]
_LOOK_BACK = 64


def prose_kind(text: str, start: int, zone: Zone) -> str:
    """The kind that the words just before a value give it, or ""."""
    before = text[max(0, start - _LOOK_BACK) : start]
    for name in _PROSE:
        if name.pattern.search(before) and (not name.zones or zone in name.zones):
            return name.kind
    return ""


SENTINELS: tuple[str, ...] = tuple(_TABLE["sentinels"])
MAGIC: tuple[bytes, ...] = tuple(bytes.fromhex(head) for head in _TABLE["magic"].values())

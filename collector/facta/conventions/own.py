"""Facta's own attributes, which anybody may set: sightings that were hashed in the agent's process.

`facta.sealed.sightings` and `facta.ux.reasoning_summary` are JSON arrays as the read API names
them; an entry that is not of that form is passed over.
"""

import re
from typing import cast

from facta.conventions.genai import fact
from facta.conventions.values import Attrs, count, load_list, text_of
from facta.model.facts import Aside, Entry, Fact, Part, UxKind
from facta.model.records import Record, Value
from facta.model.sealed import Sealed, State

SIGHTINGS = "facta.sealed.sightings"
SUMMARIES = "facta.ux.reasoning_summary"
_STATES = {"whole", "truncated", "withheld", "redacted"}
_UX = {"provider_summary", "thinking", "raw_reasoning", "may_be_summary", "unknown"}
_HEX = re.compile(r"[0-9a-f]{64}")


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key.startswith("facta.")


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """One aside with every sighting and summary that the record's own attributes tell."""
    aside = Aside()
    for entry in load_list(attrs.get(SIGHTINGS))[0]:
        if isinstance(entry, dict) and (sealed := _sighting(entry)) is not None:
            aside.entries.append(_entry(Part("sealed", sealed=[sealed]), entry, SIGHTINGS))
    for entry in load_list(attrs.get(SUMMARIES))[0]:
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            kind = text_of(entry.get("ux_kind"))
            ux = cast("UxKind", kind) if kind in _UX else "unknown"
            part = Part("reasoning", record.marks.render(text_of(entry["text"])), ux_kind=ux)
            aside.entries.append(_entry(part, entry, SUMMARIES))
    return [fact(aside, "tap", record)] if aside.entries else []


def _entry(part: Part, told: dict[str, Value], place: str) -> Entry:
    direction = text_of(told.get("direction"))
    direction = {"request": "request", "response": "response"}.get(direction, "response")
    return Entry(part, direction, text_of(told.get("position"))[:32], place)


def _sighting(told: dict[str, Value]) -> Sealed | None:
    state, size = text_of(told.get("state")) or "whole", count(told.get("size"))
    text, decoded = text_of(told.get("sha256")), text_of(told.get("sha256_decoded"))
    if (
        state not in _STATES
        or size is None
        or not all(_HEX.fullmatch(h) for h in (text, decoded) if h)
    ):
        return None
    return Sealed(
        kind=text_of(told.get("kind"))[:64] or "unknown",
        state=cast("State", state),
        size=int(size),
        sha256=text,
        sha256_decoded=decoded,
        alphabet=text_of(told.get("alphabet"))[:16],
        sealed_by="place",
        confidence=1.0,
    )

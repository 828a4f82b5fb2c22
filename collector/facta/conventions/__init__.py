"""Reading telemetry: every convention turns a record into the same facts.

`read` picks the convention that a record speaks, adds what any record may tell (effects, Facta's
own attributes), and keeps the attributes that no fact took, without summaries.
"""

from facta.conventions import (
    claude_code,
    codex,
    effects,
    gemini_cli,
    genai,
    openinference,
    own,
    vercel,
)
from facta.conventions.leftover import leftover
from facta.conventions.table import agent_of, session_of
from facta.conventions.values import attributes_of, text_of
from facta.model.facts import Aside, Body, Call, Entry, Fact, Part, Reading, Turn
from facta.model.records import Record
from facta.model.sealed import Sealed

# In order: a host's own convention before a library's, a library's before the common one.
CONVENTIONS = (claude_code, codex, gemini_cli, openinference, vercel, genai)

__all__ = ["CONVENTIONS", "read"]


def read(record: Record) -> Reading:
    """All that one record says; never raises for any content (a reading that fails is said)."""
    attrs = attributes_of(record.attributes)
    resource = attributes_of(record.scope.resource)
    render = record.marks.render
    spoken = next((c for c in CONVENTIONS if c.applies(record, attrs)), None)
    reading = Reading(
        convention=spoken.NAME
        if spoken
        else effects.NAME
        if record.signal == "span"
        else "otel.log",
        session=render(session_of(attrs)),
        service=render(text_of(resource.get("service.name"))),
        agent=render(agent_of(attrs)),
    )
    if spoken is not None:
        reading.facts += spoken.facts(record, attrs)
    if (
        not any(isinstance(f.body, (Turn, Call)) for f in reading.facts)
        or "facta.effect.operation" in attrs
        or any(event.name == "facta.effect" for event in record.events)
    ):
        reading.facts += effects.facts(record, attrs)
    reading.facts += own.facts(record, attrs)
    aside, reading.attributes = leftover(
        record,
        spoken.consumed if spoken else own.consumed,
        messages_read=spoken in (genai, gemini_cli),
    )
    reading.facts += aside
    reading.facts += _unplaced(record, reading)
    return reading


def _unplaced(record: Record, reading: Reading) -> list[Fact]:
    """Sealed values that no item or aside holds (in a tool's arguments, say) are sightings too.

    The same bytes in another alphabet are the same place told again: they join the part that holds
    them, with a hash of their own.
    """
    held = {_identity(sealed) for fact in reading.facts for sealed in _sealed(fact.body)}
    parts = [part for fact in reading.facts for part in _parts(fact.body)]
    aside = Aside()
    for sealed in record.marks.sealed:
        if _identity(sealed) in held:
            continue
        held.add(_identity(sealed))
        same = [p for p in parts if any(_same_bytes(s, sealed) for s in p.sealed)]
        for part in same:
            part.sealed.append(sealed)
        if not same:
            aside.entries.append(Entry(Part("sealed", sealed=[sealed])))
    return [genai.fact(aside, "response", record)] if aside.entries else []


def _same_bytes(one: Sealed, other: Sealed) -> bool:
    return bool(one.sha256_decoded) and one.sha256_decoded == other.sha256_decoded


def _identity(sealed: Sealed) -> tuple[str, str, int]:
    return (sealed.sha256, "", 0) if sealed.sha256 else (sealed.kind, sealed.state, sealed.size)


def _sealed(body: Body) -> list[Sealed]:
    return [sealed for part in _parts(body) for sealed in part.sealed]


def _parts(body: Body) -> list[Part]:
    if isinstance(body, Turn):
        items = [*(body.input or []), *(body.output or [])]
        return [part for item in items for part in item.parts]
    return [entry.part for entry in body.entries] if isinstance(body, Aside) else []

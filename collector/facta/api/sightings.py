"""The list of sightings: every one, with what each turn carries again unfolded from the deltas."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from facta.api.access import Reader
from facta.api.parameters import SightingFilter
from facta.store import Row
from facta.store.unfold import Chain
from facta.store.views import CursorError, Page, make_cursor, read_cursor

_CURSOR = ["String", "String", "UInt32"]
_LOOKS = ("kind", "state", "sealed_by", "sha256", "sha256_decoded")
_SESSIONS_AT_ONCE = 100


def page_of_sightings(reader: Reader, query: SightingFilter) -> Page:
    """One page in order of session, turn and place; raises CursorError.

    The cursor names session, turn and how many rows of that turn were given out.
    """
    session_id, turn_id, offset = "", "", 0
    if query.cursor:
        session_id, turn_id, offset = read_cursor(query.cursor, "sightings", _CURSOR)
    found = list(islice(_from(reader, query, session_id, turn_id, offset), query.limit + 1))
    items = [row for _, row in found[: query.limit]]
    if len(found) <= query.limit:
        return Page(items, None)
    return Page(items, make_cursor("sightings", found[query.limit - 1][0]))


def chain_of(reader: Reader, session_id: str) -> Chain:
    """The stored sightings of a session with the turns that carry them."""
    return Chain.of(
        reader.rows("chain_of_turns", session_id=session_id),
        reader.rows("sightings_of_sessions", session_id=session_id),
    )


def _from(
    reader: Reader, query: SightingFilter, session_id: str, turn_id: str, offset: int
) -> Iterator[tuple[list[Any], Row]]:
    """(cursor after the row, row) from a place on."""
    for session in _sessions(reader, query, session_id):
        chain = chain_of(reader, session)
        ids = chain.ids()
        start = 0
        if session == session_id:
            if turn_id not in ids:
                raise CursorError
            start = ids.index(turn_id)
        for turn in ids[start:]:
            if not _turn_wanted(query, chain, turn):
                continue
            given = offset if session == session_id and turn == turn_id else 0
            matching = [row for row in chain.sightings(turn) if _wanted(query, row)]
            for number, row in enumerate(matching[given:], start=given + 1):
                yield [session, turn, number], row


def _sessions(reader: Reader, query: SightingFilter, first: str) -> Iterator[str]:
    """Ids of the sessions that hold what is looked for, from `first` on."""
    given = query.given()
    while True:
        found = reader.rows(
            "sessions_with_sightings",
            **given,
            first_page=not first,
            after_session_id=first,
            limit=_SESSIONS_AT_ONCE + 1,
        )
        yield from (row["session_id"] for row in found[:_SESSIONS_AT_ONCE])
        if len(found) <= _SESSIONS_AT_ONCE:
            return
        first = found[_SESSIONS_AT_ONCE]["session_id"]


def _turn_wanted(query: SightingFilter, chain: Chain, turn_id: str) -> bool:
    if query.turn_id and query.turn_id != turn_id:
        return False
    if not query.since and not query.until:
        return True
    started = chain.turns[turn_id]["started_ns"] if turn_id in chain.turns else 0
    return started >= query.since and (not query.until or started < query.until)


def _wanted(query: SightingFilter, row: Row) -> bool:
    if query.direction and query.direction != row["direction"]:
        return False
    if query.any_hash and query.any_hash not in (row["sha256"], row["sha256_decoded"]):
        return False
    return all(not (value := getattr(query, name)) or value == row[name] for name in _LOOKS)

"""The lists of the read API. Each binds the tenant of the token; none joins the lanes."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from facta.api import models, timeline
from facta.api.access import EvidenceReader, Reader, UxReader
from facta.api.parameters import (
    CallFilter,
    ContextFilter,
    ControlFilter,
    EffectFilter,
    EvaluationFilter,
    Paged,
    RefusalFilter,
    RetrievalFilter,
    SessionFilter,
    SightingFilter,
    TransitionFilter,
    TurnFilter,
    UxFilter,
)
from facta.api.sightings import chain_of, page_of_sightings
from facta.store import Row
from facta.store.views import Page

router = APIRouter(prefix="/api/v1")


def page(reader: Reader, view: str, query: Paged) -> dict[str, Any]:
    """One page of a view. A session may be named by an id that was merged into another."""
    given = query.given()
    session_id = given.get("session_id", "")
    if session_id:
        given["session_id"] = canonical(reader, session_id)
    return answer(reader.page(view, given, query.limit, query.cursor))


def answer(found: Page) -> dict[str, Any]:
    """A page as the API gives it."""
    return {"items": found.items, "next_cursor": found.next_cursor}


def canonical(reader: Reader, session_id: str) -> str:
    """The session's id now: itself, or that of the session which it was merged into."""
    if reader.rows("sessions", session_id=session_id, limit=1):
        return session_id
    merged = reader.rows("session_of_alias", alias=session_id)
    return str(merged[0]["session_id"]) if merged else session_id


@router.get("/sessions", response_model=models.Page[models.Session])
def sessions(reader: EvidenceReader, query: Annotated[SessionFilter, Query()]) -> Any:
    """Sessions, newest first."""
    return page(reader, "sessions", query)


@router.get("/turns", response_model=models.Page[models.Turn])
def turns(reader: EvidenceReader, query: Annotated[TurnFilter, Query()]) -> Any:
    """Model requests with their responses, in order within each session."""
    return page(reader, "turns", query)


@router.get("/context", response_model=models.Page[models.ContextItem])
def context(reader: EvidenceReader, query: Annotated[ContextFilter, Query()]) -> Any:
    """What each turn added to its context: the new items of its request, all of its response."""
    return page(reader, "context", query)


@router.get("/tool-calls", response_model=models.Page[models.ToolCall])
def tool_calls(reader: EvidenceReader, query: Annotated[CallFilter, Query()]) -> Any:
    """Tool calls with arguments and results, one row per call."""
    return page(reader, "tool_calls", query)


@router.get("/effects", response_model=models.Page[models.Effect])
def effects(reader: EvidenceReader, query: Annotated[EffectFilter, Query()]) -> Any:
    """What was done to the world outside, and how that is known."""
    return page(reader, "effects", query)


@router.get("/retrievals", response_model=models.Page[models.Retrieval])
def retrievals(reader: EvidenceReader, query: Annotated[RetrievalFilter, Query()]) -> Any:
    """Look-ups in stores of documents."""
    return page(reader, "retrievals", query)


@router.get("/evaluations", response_model=models.Page[models.Evaluation])
def evaluations(reader: EvidenceReader, query: Annotated[EvaluationFilter, Query()]) -> Any:
    """Scores that somebody gave."""
    return page(reader, "evaluations", query)


@router.get("/state-transitions", response_model=models.Page[models.StateTransition])
def state_transitions(reader: EvidenceReader, query: Annotated[TransitionFilter, Query()]) -> Any:
    """Changes of state that a framework reported."""
    return page(reader, "state_transitions", query)


@router.get("/refusals", response_model=models.Page[models.Refusal])
def refusals(reader: EvidenceReader, query: Annotated[RefusalFilter, Query()]) -> Any:
    """What could not be read: visible gaps."""
    return page(reader, "refusals", query)


@router.get("/controls", response_model=models.Page[models.Control])
def controls(reader: EvidenceReader, query: Annotated[ControlFilter, Query()]) -> Any:
    """What a scan of controls found."""
    return page(reader, "controls", query)


@router.get("/sightings", response_model=models.Page[models.Sighting])
def sightings(reader: EvidenceReader, query: Annotated[SightingFilter, Query()]) -> Any:
    """Every sealed value at every place where a turn showed it, carried history included."""
    if query.session_id:
        named = {"session_id": canonical(reader, query.session_id)}
        query = query.model_copy(update=named)
    return answer(page_of_sightings(reader, query))


@router.get("/ux", response_model=models.Page[models.UxSummary])
def ux(reader: UxReader, query: Annotated[UxFilter, Query()]) -> Any:
    """NOT EVIDENCE: summaries and thinking. Needs the scope ux; the reading is recorded."""
    reader.record_ux_read("/ux", query.session_id)
    return page(reader, "ux", query)


@router.get("/content/{commit}", response_model=models.Content)
def content(reader: EvidenceReader, commit: str) -> Any:
    """All of a text by its commitment. One of the ux lane needs the scope ux."""
    for row in reader.rows("content", commit=commit):
        return row | {"lane": "evidence"}
    for row in reader.rows("ux_content", commit=commit):
        reader.need("ux")
        reader.record_ux_read("/content", "")
        return row | {"lane": "ux"}
    raise HTTPException(404, "no content has this commitment")


@router.get(
    "/sessions/{session_id:path}/timeline",
    response_model=models.Timeline,
    responses={308: {"description": "The id was merged into another session."}},
)
def session_timeline(
    request: Request, reader: EvidenceReader, session_id: str, *, ux: bool = False
) -> Any:
    """A session's steps in causal order: evidence, and with `ux` the summaries beside it."""
    if ux:
        reader.need("ux")
    found = _session(request, reader, session_id, "/timeline")
    if isinstance(found, Response):
        return found
    if ux:
        reader.record_ux_read("/sessions/timeline", session_id)
    rows = {view: reader.rows(view, session_id=session_id) for view in timeline.VIEWS}
    summaries = reader.rows("ux", session_id=session_id) if ux else []
    steps = timeline.steps(found, rows, chain_of(reader, session_id), summaries)
    return {"session": found, "steps": steps}


@router.get(
    "/sessions/{session_id:path}",
    response_model=models.Session,
    responses={308: {"description": "The id was merged into another session."}},
)
def session(request: Request, reader: EvidenceReader, session_id: str) -> Any:
    """One session. An id that was merged into another answers with where that is."""
    return _session(request, reader, session_id, "")


def _session(request: Request, reader: Reader, session_id: str, rest: str) -> Row | Response:
    """The session's row, or the redirect to the session that it was merged into; or 404."""
    for row in reader.rows("sessions", session_id=session_id, limit=1) if session_id else []:
        return row
    for merged in reader.rows("session_of_alias", alias=session_id) if session_id else []:
        there = f"{router.prefix}/sessions/{quote(merged['session_id'], safe='')}{rest}"
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(there + query, status_code=308)
    raise HTTPException(404, "no session has this id")

"""What Facta says of itself: health, readiness, counters, how far the store is, and its routes."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

import facta
from facta.api import models
from facta.api.access import Access, Operator
from facta.model.metrics import CONTENT_TYPE

router = APIRouter()


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """Where the ledger and its projection are.

    `ledger_rows` and `projected_rows` count observations; `resolved` says that what was projected
    is in the resolved tables; `repeats` and `refused` count since the process began.
    """

    ledger_rows: int
    projected_rows: int
    resolved: bool
    repeats: int = 0
    refused: int = 0


ReadStatus = Callable[[], LedgerStatus]


@router.get("/health")
def health() -> dict[str, str]:
    """Whether the process answers at all."""
    return {"service": "facta", "status": "ok", "version": facta.__version__}


@router.get("/ready", responses={503: {"description": "The store answers no query."}})
def ready(request: Request) -> Response:
    """Whether the store answers a query now."""
    access: Access = request.app.state.access
    if access.store.ready():
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "the store answers no query"}, 503, {"Retry-After": "5"})


@router.get("/metrics", response_class=Response)
def metrics(request: Request, _reader: Operator) -> Response:
    """Counters in Prometheus' text format."""
    access: Access = request.app.state.access
    status: LedgerStatus = request.app.state.ledger_status()
    access.metrics.ledger_rows.set(status.ledger_rows)
    access.metrics.projected_rows.set(status.projected_rows)
    access.metrics.store_ready.set(access.store.ready())
    return Response(access.metrics.render(), media_type=CONTENT_TYPE)


@router.get("/api/v1/status", response_model=models.Status)
def status(request: Request, _reader: Operator) -> Any:
    """How far the store is behind the ledger."""
    now: LedgerStatus = request.app.state.ledger_status()
    backlog = max(0, now.ledger_rows - now.projected_rows)
    return models.Status(
        ledger_rows=now.ledger_rows,
        projected_rows=now.projected_rows,
        backlog=backlog,
        resolved=now.resolved and not backlog,
        repeats=now.repeats,
        refused=now.refused,
        last_checkpoint=None,
        version=facta.__version__,
    )


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """The routes as a plain page: no script, nothing loaded from anywhere."""
    schema = request.app.openapi()
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{escape(told.get('description', ''))}</td><td>{escape(_parameters(told))}</td></tr>"
        for path, methods in schema["paths"].items()
        for method, told in methods.items()
    ]
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Facta: read API</title>"
        "<h1>Facta: read API</h1><p>The same for programs: <a href=openapi.json>openapi.json</a>."
        f"<table>{''.join(rows)}</table></html>"
    )
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _parameters(told: dict[str, Any]) -> str:
    return ", ".join(parameter["name"] for parameter in told.get("parameters", []))

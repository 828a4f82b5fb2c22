"""The read API as an application: no state of its own, everything is handed in."""

from fastapi import Depends, FastAPI, Response

import facta
from facta.api import doctor, errors, models, own, routes
from facta.api.access import Access
from facta.api.own import ReadStatus
from facta.api.tokens import Tokens
from facta.model.metrics import Metrics
from facta.settings import Settings
from facta.store import Store

_PROBLEMS: dict[int | str, dict[str, object]] = {
    status: {"model": models.Problem, "description": what}
    for status, what in {
        401: "No token, or one that is not known.",
        403: "The token lacks a scope.",
        404: "Not here, or not this tenant's.",
        422: "The request is not understood.",
        503: "The store cannot answer now.",
    }.items()
}


def create_app(
    store: Store,
    ledger_status: ReadStatus,
    tokens: Tokens | None,
    settings: Settings,
    metrics: Metrics | None = None,
) -> FastAPI:
    """The application that reads `store`. Without `tokens` everything is open.

    There is no page that loads scripts, no CORS, and no error that repeats what was sent.
    """
    app = FastAPI(
        title="Facta",
        version=facta.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.access = Access(store, tokens, settings, metrics or Metrics())
    app.state.ledger_status = ledger_status
    errors.install(app)
    app.include_router(own.router)
    for lists in (routes.router, doctor.router):
        app.include_router(lists, responses=_PROBLEMS, dependencies=[Depends(_not_to_be_kept)])
    return app


def _not_to_be_kept(response: Response) -> None:
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"

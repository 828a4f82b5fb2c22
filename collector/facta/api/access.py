"""Who asks, and what they may: every route takes its tenant from here and nowhere else."""

import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from facta.api.tokens import OPEN, Tokens
from facta.model.identity import Denied, Identity
from facta.model.metrics import Metrics
from facta.settings import Settings
from facta.store import Row, Store, views


@dataclass(frozen=True, slots=True)
class Access:
    """What the application was made with; lies in `app.state.access`."""

    store: Store
    tokens: Tokens | None
    settings: Settings
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Reader:
    """One request's view of the store: the rows of its token's tenant and no others."""

    store: Store
    identity: Identity
    token_id: str

    def may(self, scope: str) -> bool:
        """Whether the token has the scope."""
        return scope in self.identity.scopes

    def need(self, *scopes: str) -> None:
        """Raise Denied unless the token has all of the scopes."""
        for scope in scopes:
            if not self.may(scope):
                raise Denied(403, f"this token lacks the scope {scope}")

    def page(self, view: str, given: dict[str, Any], limit: int, cursor: str) -> views.Page:
        """One page of a view; raises views.CursorError."""
        return views.page(self.store, view, self.identity.tenant, given, limit, cursor)

    def rows(self, view: str, **given: Any) -> list[Row]:
        """All rows of a view."""
        return views.rows(self.store, view, self.identity.tenant, given)

    def record_ux_read(self, route: str, session_id: str) -> None:
        """Keep who is about to read the ux lane; an open Facta has nobody to name."""
        if not self.token_id:
            return
        row = {
            "tenant": self.identity.tenant,
            "read_at": time.time_ns(),
            "reader": self.token_id,
            "route": route,
            "session_id": session_id,
        }
        self.store.insert("evidence.reads", [row])


def reader_of(request: Request) -> Reader:
    """Who asks; raises Denied. A token in the query string is refused, for it ends in logs."""
    access: Access = request.app.state.access
    if "token" in request.query_params or "access_token" in request.query_params:
        raise Denied(401, "a token in the query string is not accepted: use the header")
    if access.tokens is None:
        return Reader(access.store, OPEN, "")
    token = access.tokens.find(request.headers.get("authorization", ""))
    return Reader(access.store, token.identity(), token.id)


def evidence_reader(reader: Annotated[Reader, Depends(reader_of)]) -> Reader:
    """Who asks, with the scope evidence; raises Denied."""
    reader.need("evidence")
    return reader


def ux_reader(reader: Annotated[Reader, Depends(reader_of)]) -> Reader:
    """Who asks, with the scope ux; raises Denied."""
    reader.need("ux")
    return reader


def operator(reader: Annotated[Reader, Depends(reader_of)]) -> Reader:
    """Who asks, with the scope evidence or admin; raises Denied."""
    if not reader.may("admin"):
        reader.need("evidence")
    return reader


EvidenceReader = Annotated[Reader, Depends(evidence_reader)]
UxReader = Annotated[Reader, Depends(ux_reader)]
Operator = Annotated[Reader, Depends(operator)]

"""Answers to what goes wrong: our own words, never a value of the request, a row or an exception."""

import logging
import secrets
import traceback
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facta.model.identity import Denied
from facta.store import StoreError
from facta.store.views import CursorError

logger = logging.getLogger(__name__)

_STATUS = {404: "there is nothing here", 405: "this route does not take that method"}


def install(app: FastAPI) -> None:
    """Add the handlers of every error that has an answer, and the guard for all others."""
    app.add_exception_handler(Denied, _denied)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(CursorError, _bad_cursor)
    app.add_exception_handler(StoreError, _store_failed)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_middleware(Guard)


class Guard:
    """Answers 500 for an unforeseen error and logs where it happened, without its text.

    An exception's text may hold a payload, and the server would print it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:  # noqa: BLE001  the last guard before the server's own log
            number = secrets.token_hex(4)
            places = "".join(traceback.format_tb(error.__traceback__))
            logger.error("error %s: %s at\n%s", number, type(error).__name__, places)  # noqa: TRY400
            if not begun:
                body = f"something went wrong here; the log has it as error {number}"
                await _problem(500, body)(scope, receive, send)


def _problem(
    status: int, error: str, fields: Sequence[str] = (), headers: dict[str, str] | None = None
) -> JSONResponse:
    content: dict[str, Any] = {"error": error, "fields": list(fields)}
    return JSONResponse(content, status, headers)


async def _denied(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Denied)  # noqa: S101  registered for this class
    wanted = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None  # noqa: PLR2004
    return _problem(error.status, error.message, headers=wanted)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for this class
    return _problem(422, "the request is not understood", [_field(e) for e in error.errors()])


def _field(problem: dict[str, Any]) -> str:
    """Where and what; the name of an unknown parameter is the sender's text and is left out."""
    if problem["type"] == "extra_forbidden":
        return "query: a parameter that this list does not have"
    place = ".".join(part for part in problem["loc"] if isinstance(part, str))
    return f"{place}: {str(problem['msg']).removeprefix('Value error, ')}"


async def _bad_cursor(_request: Request, _error: Exception) -> JSONResponse:
    return _problem(422, "the request is not understood", ["query.cursor: not one of this list's"])


async def _store_failed(_request: Request, error: Exception) -> JSONResponse:
    logger.warning("%s", error)
    return _problem(503, str(error), headers={"Retry-After": "5"})


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StarletteHTTPException)  # noqa: S101  registered for this class
    ours = isinstance(error, HTTPException)
    text = str(error.detail) if ours else _STATUS.get(error.status_code, "this cannot be done")
    return _problem(error.status_code, text, headers=dict(error.headers or {}))

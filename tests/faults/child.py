"""A process that forks collectors for the fault tests: started once, so that each costs no imports.

Reads one JSON line per collector from standard input and forks it: `facta up` as it ships, in a
process of its own, with real listeners and the embedded store. Here alone faults are put in: it
kills itself with SIGKILL at the n-th time of a named point. Says `pid N`, `ready HTTP GRPC` and
`end CODE` on standard output.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.evidence.chdb import rows_of
from tests.evidence.harness import Shelf, exact, resolved_only

from facta.api.app import create_app
from facta.app import serve
from facta.app.service import Facta
from facta.ledger import Ledger
from facta.resolve.engine import CONTENT, Resolver
from facta.settings import load
from facta.store import Store

_CHECK_SECONDS = 90


def say(text: str) -> None:
    # One short write to a pipe is whole or not at all.
    os.write(1, f"{text}\n".encode())


class Fault:
    """To be called at named points; kills at the n-th time of one, counted from when it is armed."""

    def __init__(self, point: str, times: int, *, armed: bool) -> None:
        self.point, self.left, self.armed = point, times, armed

    def __call__(self, name: str) -> None:
        if name == self.point and self.armed:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Answers:
    """Points before and after a sender is answered."""

    def __init__(self, app: ASGIApp, hook: Fault) -> None:
        self.app, self.hook = app, hook

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            ours = scope.get("path") == "/v1/traces"
            if ours and message["type"] == "http.response.start":
                self.hook("before_answer")
            await send(message)
            if ours and message["type"] == "http.response.body":
                self.hook("after_answer")

        await self.app(scope, receive, told)


def put_in(hook: Fault) -> None:
    """Let the collector call `hook` at the points, and answer /check and /arm."""
    open_ledger, open_facta = Ledger.open, Facta.open

    def ledger(path: Path, **options: Any) -> Ledger:
        return open_ledger(path, on_point=hook, **options)

    def facta(*arguments: Any) -> Facta:
        made: Facta = open_facta(*arguments)
        insert = made.store.insert

        def inserted(table: str, rows: Sequence[Mapping[str, Any]]) -> None:
            hook("before_insert")
            insert(table, rows)
            hook("after_insert")

        made.store.insert = inserted  # type: ignore[method-assign]
        put_in_check(made)
        return made

    def put_in_check(made: Facta) -> None:
        def create(*arguments: Any) -> FastAPI:
            app = create_app(*arguments)
            app.add_middleware(Answers, hook=hook)
            app.add_route("/check", lambda request: check(made, request))
            app.add_route("/arm", lambda _request: arm(hook))
            return app

        vars(serve)["create_app"] = create

    for owner, opening in ((Ledger, ledger), (Facta, facta)):
        setattr(owner, "open", opening)  # noqa: B010  mypy would want a class method


def arm(fault: Fault) -> JSONResponse:
    """Let the fault count from now on."""
    fault.armed = True
    return JSONResponse({})


def check(facta: Facta, request: Request) -> JSONResponse:
    """What does not hold, once all is projected, and how often each trace is in the ledger."""
    patience = time.monotonic() + _CHECK_SECONDS
    while not facta.status().resolved and time.monotonic() < patience:
        time.sleep(0.005)
    status = facta.status()
    found = [] if status.resolved else ["the projection does not come to its end"]
    found += facta.ledger.verify()
    rows = facta.ledger.rows(-1, 10_000_000)
    kept = sorted(row.observation.id for row in rows)
    if len(set(kept)) != len(kept):
        found.append("an observation is in the ledger twice")
    if not len(kept) == status.ledger_rows == status.projected_rows == facta.ledger.projected:
        found.append("the counts of rows differ")
    if sorted(stored(facta.store)) != kept:
        found.append("the store's observations are not those of the ledger")
    if "resolved" in request.query_params:
        found += compare(facta)
    traces = Counter(row.observation.trace_id for row in rows)
    repeats = facta.ledger.stats().repeats
    return JSONResponse({"found": found, "traces": traces, "repeats": repeats})


def stored(store: Store) -> list[str]:
    sql = "SELECT id FROM evidence.observations FINAL"
    return [row["id"] for row in store.query(sql)]


def compare(facta: Facta) -> list[str]:
    """The tables that are not what a resolver makes that sees everything for the first time."""
    shelf = Shelf()
    resolver = Resolver(Path(":memory:"), facta.ledger, shelf)
    if rows := facta.ledger.rows(-1, 10_000_000):
        resolver.take(rows)
    while resolver.flush():
        pass
    want, got = shelf.final(), rows_of(facta, "default")
    tables = {*want, *got, *CONTENT}
    assert not rows or resolved_only(want)
    different = [
        t for t in sorted(tables) if exact({t: want.get(t, [])}) != exact({t: got.get(t, [])})
    ]
    return [
        f"{table}: {len(got.get(table, []))} rows, and from scratch {len(want.get(table, []))}"
        for table in different
    ]


def run(plan: dict[str, Any]) -> int:
    """One collector, until it ends or dies."""
    os.environ.update(plan["env"])
    log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    put_in(Fault(plan["point"], plan["times"], armed=plan["armed"]))
    return serve.up(
        load(), dashboard=False, then=lambda at: say(f"ready {at.http_port} {at.grpc_port}")
    )


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = run(json.loads(line))
            os._exit(code)
        say(f"pid {child}")
        _, status = os.waitpid(child, 0)
        say(f"end {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()

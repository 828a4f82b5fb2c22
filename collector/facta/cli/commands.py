"""The commands and their exit codes: 0 clean, 1 findings, 2 usage or input, 3 could not finish.

What a command needs is imported when it runs, so that help is quick and extras stay optional.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from facta.cli import missing
from facta.cli.output import Format, Row, as_json, say, write
from facta.settings import Settings, SettingsError, load

CLEAN, FINDINGS, USAGE, UNFINISHED = 0, 1, 2, 3
_INTERRUPTED = 130

app = typer.Typer(
    name="facta",
    help="A flight recorder for AI agents: what they did, apart from what they said.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
tokens = typer.Typer(help="Who may send or read what.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(tokens, name="tokens")

SESSION_COLUMNS = ["session_id", "service", "models", "turns", "calls", "effects", "sealed", "gaps"]
SIGHTING_COLUMNS = [
    "session_id", "turn_id", "direction", "position", "kind", "state", "size", "sha256"
]  # fmt: skip

FormatOption = Annotated[Format, typer.Option("--format", help="How the list is printed.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Rows at most.")]


class Stop(Exception):  # noqa: N818  it stops a command, with a reason
    """End the command with this exit code and this line."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code."""
    try:
        code = app(list(arguments), standalone_mode=False, prog_name="facta")
    except TyperException as error:
        say(f"facta: {error.format_message()} (facta --help lists what there is)")
        return USAGE
    except (Stop, SettingsError) as error:
        say(f"facta: {error}")
        return error.code if isinstance(error, Stop) else USAGE
    except ModuleNotFoundError as error:
        say(f"facta: {missing(error)}")
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    return code if isinstance(code, int) else CLEAN


@app.command()
def up(
    *,
    no_dashboard: Annotated[
        bool, typer.Option("--no-dashboard", help="Collector and store only.")
    ] = False,
) -> int:
    """Start the collector, the store and the dashboard."""
    from facta.app import up as serve

    return serve(load(), dashboard=not no_dashboard)


@app.command()
def demo(
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Free ports, a temporary folder; print and end.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the data in FACTA_DATA.")] = False,
) -> int:
    """Send bundled agent runs through real OTLP and show what was recorded."""
    from facta.app import demo as play

    return play(load(), _show, once=once, keep=keep)


def _show(url: str) -> None:
    """What a collector at `url` has: its sessions, one timeline, what was sealed."""
    settings = load().model_copy(update={"url": url})
    _reading(_shown, settings)


def _shown(client: Any) -> int:
    from facta.cli.timeline import lines

    found = list(client.every("/sessions"))
    _headed("facta sessions")
    write(found, SESSION_COLUMNS, Format.table, sys.stdout)
    for session in sorted(found, key=lambda row: -int(row["effects"]))[:1]:
        _headed(f"facta timeline {session['session_id']}")
        sys.stdout.writelines(f"{line}\n" for line in lines(client.timeline(session["session_id"])))
    _headed("facta sightings")
    write(client.every("/sightings"), SIGHTING_COLUMNS, Format.table, sys.stdout)
    return CLEAN


def _headed(command: str) -> None:
    sys.stdout.write(f"\n$ {command}\n")


@app.command()
def sessions(
    *,
    service: Annotated[str, typer.Option(help="This service only.")] = "",
    model: Annotated[str, typer.Option(help="Sessions that used this model.")] = "",
    since: Annotated[str, typer.Option(help="From this time on (RFC 3339).")] = "",
    until: Annotated[str, typer.Option(help="Before this time (RFC 3339).")] = "",
    limit: LimitOption = 100,
    form: FormatOption = Format.table,
) -> int:
    """List sessions, newest first."""
    params = {"service": service, "model": model, "since": since, "until": until}
    return _list("/sessions", params, SESSION_COLUMNS, limit, form)


@app.command()
def timeline(
    session: Annotated[str, typer.Argument(help="The session's id.", show_default=False)],
    *,
    ux: Annotated[bool, typer.Option("--ux", help="Also what was said. NOT EVIDENCE.")] = False,
    form: FormatOption = Format.table,
) -> int:
    """One session, step by step: evidence first."""
    from facta.cli.timeline import lines

    if form is Format.csv:
        raise Stop(USAGE, "a timeline has no one set of columns: use table, json or jsonl")

    def show(client: Any) -> int:
        answer = client.timeline(session, ux=ux)
        if form is Format.table:
            sys.stdout.writelines(f"{line}\n" for line in lines(answer, ux=ux))
        elif form is Format.json:
            sys.stdout.write(as_json(answer, indent=2) + "\n")
        else:
            write(answer["steps"], [], form, sys.stdout)
        return CLEAN

    return _reading(show)


@app.command()
def sightings(
    *,
    blob: Annotated[
        str, typer.Option(help="- : the sealed value on standard input, hashed and forgotten.")
    ] = "",
    session: Annotated[str, typer.Option(help="This session only.")] = "",
    service: Annotated[str, typer.Option(help="This service only.")] = "",
    kind: Annotated[str, typer.Option(help="For example openai.reasoning.")] = "",
    sealed_by: Annotated[str, typer.Option(help="place, known, structure or shape.")] = "",
    sha256: Annotated[str, typer.Option(help="Hash of the text or of the decoded bytes.")] = "",
    limit: LimitOption = 100,
    form: FormatOption = Format.table,
) -> int:
    """List sealed values where they were seen; with --blob: whose is this one?"""
    shown = SIGHTING_COLUMNS
    params = {"session_id": session, "service": service, "kind": kind, "sealed_by": sealed_by}
    if not blob:
        return _list("/sightings", {**params, "any_hash": sha256}, shown, limit, form)
    found = [{**params, "any_hash": digest} for digest in _digests(blob)]

    def show(client: Any) -> int:
        rows: list[Row] = []
        for given in found:
            rows = rows or list(_first(client.every("/sightings", **given), limit))
        if not rows:
            say("facta: nobody here has shown this value")
        write(rows, shown, form, sys.stdout)
        return CLEAN

    return _reading(show)


def _digests(blob: str) -> list[str]:
    from facta.cli.blob import BlobError, hashes

    if blob != "-":
        raise Stop(USAGE, "--blob takes - alone: a value on a command line ends in its history")
    try:
        return hashes(sys.stdin.buffer)
    except BlobError as error:
        raise Stop(USAGE, str(error)) from None


@app.command()
def doctor(*, form: FormatOption = Format.table) -> int:
    """Say what is wrong with what arrives, and what to do. Exit code 1 when anything is."""

    def show(client: Any) -> int:
        found = client.get("/doctor")["items"]
        if form is Format.table:
            for finding in found:
                about = f" ({finding['subject']})" if finding["subject"] else ""
                _print(f"{finding['check']}{about}: {finding['what']}")
                _print(f"    {finding['hint']}")
            if not found:
                say("facta: nothing is wrong")
        else:
            write(found, ["check", "subject", "count", "what", "hint"], form, sys.stdout)
        return FINDINGS if found else CLEAN

    return _reading(show)


@tokens.command("create")
def create_token(
    scope: Annotated[list[str], typer.Option(help="ingest, evidence, ux, admin; repeat it.")],
    *,
    tenant: Annotated[str, typer.Option(help="Whose data it is.")] = "default",
    producer: Annotated[str, typer.Option(help="Who sends with it; its id when empty.")] = "",
) -> int:
    """Make a token and print it: it is shown this once."""
    sys.stdout.write(_with_tokens(lambda file: file.create(scope, tenant, producer)) + "\n")
    say("facta: shown once; only its hash is kept")
    return CLEAN


@tokens.command("list")
def list_tokens(*, form: FormatOption = Format.table) -> int:
    """List the tokens, without the tokens."""
    shown = ["id", "tenant", "producer", "scopes", "created"]
    rows = _with_tokens(lambda file: [token.model_dump(exclude={"hash"}) for token in file.all()])
    write(rows, shown, form, sys.stdout)
    return CLEAN


@tokens.command("revoke")
def revoke_token(number: Annotated[str, typer.Argument(metavar="ID", show_default=False)]) -> int:
    """Forget a token; a running Facta refuses it at once."""
    _with_tokens(lambda file: file.revoke(number))
    return CLEAN


def _with_tokens(work: Callable[[Any], Any]) -> Any:
    from facta.api.tokens import TokenError, Tokens

    path = load().tokens
    if path is None:
        raise Stop(USAGE, "set FACTA_TOKENS to the file that keeps the tokens")
    try:
        return work(Tokens(path))
    except TokenError as error:
        raise Stop(USAGE, str(error)) from None
    except OSError as error:
        raise Stop(UNFINISHED, f"FACTA_TOKENS: {error.strerror}") from None


def _list(path: str, params: dict[str, str], shown: list[str], limit: int, form: Format) -> int:
    def show(client: Any) -> int:
        write(_first(client.every(path, **params), limit), shown, form, sys.stdout)
        return CLEAN

    return _reading(show)


def _first(rows: Iterable[Row], limit: int) -> Iterable[Row]:
    """At most `limit` rows; says when there are more."""
    for number, row in enumerate(rows):
        if number == limit:
            say(f"facta: there are more than these {limit}: --limit shows more")
            return
        yield row


def _reading(work: Callable[[Any], int], settings: Settings | None = None) -> int:
    """Run `work` with a client of the API."""
    from facta.api.client import ApiError, connect

    try:
        with connect(settings or load()) as client:
            code = work(client)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        raise Stop(UNFINISHED, "nobody reads any more what this prints") from None
    except ApiError as error:
        unusable = error.status in {401, 403, 404, 422}
        raise Stop(USAGE if unusable else UNFINISHED, str(error)) from None


def _print(text: str) -> None:
    from facta.dashboard.text import line

    sys.stdout.write(line(text) + "\n")

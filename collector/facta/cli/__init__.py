"""The commands: each reads the API and prints. Data goes to stdout, talk to stderr."""

import sys

EXTRAS = {"typer": "server", "httpx": "server", "fastapi": "server", "chdb": "server"}


def main() -> None:
    """Run `facta`; the only place that ends the process."""
    try:
        from facta.cli.commands import run
    except ModuleNotFoundError as error:
        sys.stderr.write(f"facta: {missing(error)}\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))


def missing(error: ModuleNotFoundError) -> str:
    """Which extra brings the module that is not there."""
    extra = EXTRAS.get((error.name or "").partition(".")[0], "server")
    return f"this command needs more than the tap: pip install 'facta[{extra}]'"

"""Documents that are made by a program: writes them, or with --check says which are stale.

The module of each row prints its document to standard output.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

GENERATED = {
    "docs/conventions.md": ["docs/conventions_table.py"],
    "docs/settings.md": ["-m", "facta.settings"],
    "queries/README.md": ["-m", "facta.store.views"],
}


def render(command: list[str]) -> str:
    """The document that `python COMMAND` prints now; raises CalledProcessError when it fails."""
    done = subprocess.run(  # noqa: S603  the commands are the table above
        [sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return done.stdout


def is_fresh(path: str) -> bool:
    """Whether the file at `path` is exactly what its command prints."""
    file = ROOT / path
    return file.is_file() and file.read_text(encoding="utf-8") == render(GENERATED[path])


def main(arguments: list[str]) -> int:
    """Write every document, or with --check write none; 1 when one is stale."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generated.py [--check]\n")
        return 2
    if not arguments:
        for path, command in GENERATED.items():
            (ROOT / path).write_text(render(command), encoding="utf-8")
        return 0
    stale = [path for path in GENERATED if not is_fresh(path)]
    for path in stale:
        sys.stderr.write(f"{path} is stale: run `make generated`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

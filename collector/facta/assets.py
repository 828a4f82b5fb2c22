"""Where the folders of files lie that Facta reads or runs: `schema`, `queries`, `dashboard`.

A checkout has them beside `collector/`; the wheel carries them inside the package.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

ROOT = _PACKAGE / "_assets" if (_PACKAGE / "_assets").is_dir() else _PACKAGE.parents[1]
SCHEMA = ROOT / "schema"
QUERIES = ROOT / "queries"
DASHBOARD = ROOT / "dashboard"

"""The tree itself: what may stand in its files, and which documents agree with the code."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import facta

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGE = ROOT / "collector" / "facta"

# The rooms in the order in which data flows: each imports from those before it. `model` and the
# leaves (which import nothing but `model`) are open to all, `app` wires everything.
ROOMS = [
    ["intake"],
    ["sealing"],
    ["conventions"],
    ["ledger"],
    ["store"],
    ["resolve"],
    ["carriage", "audits", "receipts"],
    ["api"],
    ["dashboard"],
    ["cli"],
]
LEAVES = ["model", "assets", "settings"]
WIRING = ["app"]

# Never in any file: hosts of package registries and the files that name them.
REGISTRIES = r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|proxy\.golang\.org|crates\.io"
REGISTRY_OPTIONS = r"--(?:extra-)?index-url|--find-links|UV_(?:DEFAULT_)?INDEX"
# Never outside made-up data: paths of one machine.
MACHINE_PATHS = r"(?<![\w.~$}/-])/(?:root|work|home/\w+|Users/\w+|opt/\w+|private/tmp)/"
# Words of a workplace, which say nothing about Facta.
WORKPLACE = (
    r"\b(?:TODO|FIXME|XXX|WIP|sub-?agent|co-?worker|the brief|the lead|team lead|handover"
    r"|done-when|design section|issue \d+|issues show|sprint|shared/(?:otlp|design|reference"
    r"|scenarios|bench)|scanbench)\b"
    r"|(?<![/\w])(?:facta|contract|carriage|integrity|telemetry|style|peers|performance)\.md\b"
)
# What Facta never says of itself.
OVERSTATED = r"\b(?:immutable|tamper-?\s?proof)\b"


def tracked() -> list[Path]:
    """Every file that is, or would be, in a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name}
    return [path for name in sorted(names) if (path := ROOT / name).is_file()]


FILES = tracked()
DATA = ROOT / "tests" / "data"
PYTHON = [path for path in FILES if path.suffix == ".py"]


def matches(pattern: str, files: list[Path], flags: re.RegexFlag = re.NOFLAG) -> list[str]:
    """`path:line: match` for each match of `pattern` in the text files, this one left out."""
    found = []
    for path in files:
        content = path.read_bytes()
        if path == Path(__file__) or b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            found += [
                f"{path.relative_to(ROOT)}:{number}: {match.group()}"
                for match in re.finditer(pattern, line, flags)
            ]
    return found


def test_the_tree_is_seen() -> None:
    seen = {path.relative_to(ROOT).as_posix() for path in FILES}
    assert {"pyproject.toml", "Makefile", ".ci/run", "collector/facta/__init__.py"} <= seen


def test_no_python_file_is_over_500_lines() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in PYTHON
        if (count := len(path.read_bytes().splitlines())) > 500
    }
    assert long == {}


def test_no_file_names_a_package_registry() -> None:
    assert matches(f"{REGISTRIES}|{REGISTRY_OPTIONS}", FILES) == []


def test_no_lock_file_that_names_its_registry() -> None:
    names = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "uv.toml"}
    assert [path.name for path in FILES if path.name in names] == []


def test_no_file_names_a_path_of_a_machine() -> None:
    ours = [path for path in FILES if not path.is_relative_to(ROOT / "tests")]
    assert matches(MACHINE_PATHS, ours) == []
    here = f"{re.escape(str(ROOT))}|{re.escape(str(Path.home()))}/"
    assert matches(here, FILES) == []


def test_no_file_speaks_of_how_it_was_made() -> None:
    assert matches(WORKPLACE, [path for path in FILES if not path.is_relative_to(DATA)]) == []


def test_no_text_overstates_what_is_proved() -> None:
    texts = [path for path in FILES if not path.is_relative_to(ROOT / "tests")]
    assert matches(OVERSTATED, texts, re.IGNORECASE) == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("see https://pypi.org/simple", REGISTRIES),
        ("--index-url https://mirror", REGISTRY_OPTIONS),
        ("in /home/ada/facta", MACHINE_PATHS),
        ('"/root/.cache"', MACHINE_PATHS),
        ("see shared/otlp for it", WORKPLACE),
        ("an immutable ledger", OVERSTATED),
        ("tamper-proof", OVERSTATED),
    ],
)
def test_the_patterns_find_what_they_are_for(text: str, pattern: str) -> None:
    assert re.search(pattern, text)


def imported_modules(path: Path) -> set[str]:
    """The full names that a module imports; of `from a import b` both `a` and `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_rooms(path: Path) -> set[str]:
    """The second part of every `facta.…` that a module imports."""
    names = {name for name in imported_modules(path) if name.startswith("facta.")}
    return {name.split(".")[1] for name in names} - {"__version__"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def allowed_imports(room: str) -> set[str]:
    """What a module of `room` may import from."""
    order = [name for rank in ROOMS for name in rank]
    if room in WIRING:
        return {*order, *LEAVES, *WIRING}
    if room in LEAVES:
        return {room, "model"}
    rank = next((index for index, names in enumerate(ROOMS) if room in names), None)
    assert rank is not None, f"collector/facta/{room} has no place in ROOMS"
    left = {name for names in ROOMS[:rank] for name in names}
    behind_the_wiring = set(WIRING) if room in {"api", "cli"} else set()
    return left | {room} | set(LEAVES) | behind_the_wiring


MODULES = [path for path in PYTHON if path.is_relative_to(PACKAGE) and path.parent != PACKAGE]
TOP_MODULES = [path for path in PYTHON if path.parent == PACKAGE and path.stem != "__init__"]


@pytest.mark.parametrize(
    "path", MODULES + TOP_MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_each_room_imports_only_from_those_before_it(path: Path) -> None:
    assert imported_rooms(path) - allowed_imports(room_of(path)) == set()


def test_the_readme_maps_the_folders_that_exist() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"## Folders\n.*?```text\n(.*?)```", readme, re.DOTALL)
    assert block, "README.md has no map of the folders"
    mapped = {line.split()[0].rstrip("/") for line in block[1].splitlines() if line.strip()}
    folders = {path.relative_to(ROOT).parts[0] for path in FILES if path.parent != ROOT}
    rooms = {
        f"collector/facta/{room_of(path)}"
        for path in FILES
        if path.is_relative_to(PACKAGE) and path.parent != PACKAGE
    }
    assert mapped == (folders - {"collector"}) | rooms


def direct_dependencies() -> dict[str, Requirement]:
    groups = [
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    requirements = [Requirement(line) for group in groups for line in group]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def test_every_direct_dependency_has_its_line() -> None:
    document = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \|$", document, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(direct_dependencies())
    assert [name for name, reason in rows if len(reason.strip()) < 10] == []


def imported_distributions(folders: list[str]) -> set[str]:
    """The distributions whose modules the Python files of these folders import."""
    providers = packages_distributions()
    modules = {
        name
        for path in PYTHON
        if path.relative_to(ROOT).parts[0] in folders
        for name in imported_modules(path)
        if name.split(".")[0] not in sys.stdlib_module_names
    }
    found: set[str] = set()
    for module in modules:
        names = providers.get(module.split(".")[0], [])
        if len(names) > 1:
            # A namespace, as opentelemetry's: what only one of them provides tells which it is.
            names = [name for name in names if provides(name, module)]
            names = names if len(names) == 1 else []
        found |= {str(canonicalize_name(name)) for name in names}
    return found - {"facta"}


def provides(name: str, module: str) -> bool:
    """Whether this distribution has a file of this module."""
    stem = module.replace(".", "/")
    return any(
        str(file).startswith((f"{stem}/", f"{stem}.")) for file in distribution(name).files or []
    )


def declared(*groups: list[str]) -> set[str]:
    return {str(canonicalize_name(Requirement(line).name)) for group in groups for line in group}


# Brought by a package that is declared: the SDK's API, the exporters' encoders, pytest's packaging.
PART_OF_ANOTHER = {"opentelemetry-api", "opentelemetry-exporter-otlp-proto-common", "packaging"}

# Used by another package or as a command, and so imported nowhere.
INDIRECT = {
    "chdb",
    "hatchling",
    "httptools",
    "httpx2",
    "mypy",
    "pytest-timeout",
    "pytest-xdist",
    "ruff",
    "types-protobuf",
    "types-pyyaml",
    "uv",
    "uvloop",
}


def test_what_is_imported_is_declared_and_what_is_declared_is_used() -> None:
    runtime = declared(
        PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()
    )
    development = declared(*PROJECT["dependency-groups"].values())
    shipped = imported_distributions(["collector", "dashboard"])
    everything = shipped | imported_distributions(["tests", "benchmarks", "docs"])
    assert shipped - runtime - PART_OF_ANOTHER == set()
    assert everything - runtime - development - PART_OF_ANOTHER == set()
    assert (runtime | development) - everything - INDIRECT == set()


def test_every_pin_has_a_hash_and_no_address() -> None:
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text("utf-8")
        pins = re.findall(r"^[a-z0-9][^\n]*==[^\n]*\\\n    --hash=sha256:", text, re.MULTILINE)
        named = re.findall(r"^[a-zA-Z0-9]", text, re.MULTILINE)
        assert len(pins) == len(named) > 0, path.name
        assert "://" not in text, path.name


def test_the_pins_satisfy_the_project() -> None:
    text = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    pins: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][\w.-]*)==([^\s;\\]+)", text, re.MULTILINE):
        pins.setdefault(canonicalize_name(name), []).append(version)
    unmet = [
        str(requirement)
        for name, requirement in direct_dependencies().items()
        if not any(requirement.specifier.contains(version) for version in pins.get(name, []))
    ]
    assert unmet == []


def test_the_version_stands_in_three_places() -> None:
    version = PROJECT["project"]["version"]
    assert facta.__version__ == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


GENERATED = runpy.run_path(str(ROOT / "docs" / "generated.py"))


@pytest.mark.parametrize("path", sorted(GENERATED["GENERATED"]))
def test_generated_documents_are_fresh(path: str) -> None:
    assert GENERATED["is_fresh"](path), f"{path} is stale: run `make generated`"


def test_the_documents_name_files_that_exist() -> None:
    missing = []
    for name in ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"]:
        text = (ROOT / name).read_text("utf-8")
        named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", text)
        named += re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        missing += [
            f"{name}: {path}"
            for path in named
            if not any((base / path).exists() for base in (ROOT, PACKAGE, (ROOT / name).parent))
        ]
    assert missing == []


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    declared = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert declared
    listed = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert sorted(listed) == sorted(declared[1].replace("\\", " ").split())

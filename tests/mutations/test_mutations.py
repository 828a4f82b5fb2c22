"""Broken copies of the code: each mutation in mutations.yaml turns its named test red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MUTATIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "mutations.yaml").read_text()
)
FILES = ("schema", "queries", "dashboard")
NAMES = [mutation["name"] for mutation in MUTATIONS]
PASSED, FAILED = 0, 1


def test_there_are_at_least_twelve_and_each_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(MUTATIONS) >= 12


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_what_is_replaced_stands_there_once(mutation: dict[str, Any]) -> None:
    text = (ROOT / "collector" / "facta" / mutation["file"]).read_text()
    assert text.count(_as_written(mutation["original"])) == 1
    file, _, name = mutation["test"].partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()


def _as_written(text: str) -> str:
    """YAML knows no Python escapes: a NUL stands in the source as its escape."""
    return text.replace("\x00", "\\x00")


def _copy(path: Path, mutation: dict[str, Any] | None) -> Path:
    """The package with the files that it reads, mutated or not."""
    shutil.copytree(
        ROOT / "collector", path / "collector", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in FILES:
        (path / name).symlink_to(ROOT / name)
    if mutation is not None:
        file = path / "collector" / "facta" / mutation["file"]
        original, replaced = _as_written(mutation["original"]), _as_written(mutation["replaced"])
        file.write_text(file.read_text().replace(original, replaced))
    return path / "collector"


def _outcome(collector: Path, nodes: list[str]) -> int:
    """pytest's exit status for some tests, run on another copy of the package."""
    options = ["-q", "-x", "-m", "", "-p", "no:cacheprovider", "--timeout", "600"]
    environment = os.environ | {"PYTHONPATH": str(collector), "PYTHONDONTWRITEBYTECODE": "1"}
    check = f"import facta, sys; sys.exit(not facta.__file__.startswith({str(collector)!r}))"
    subprocess.run([sys.executable, "-c", check], env=environment, cwd=ROOT, check=True)
    command = [sys.executable, "-m", "pytest", *options, *nodes]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, check=False
    ).returncode


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_a_mutation_turns_its_test_red(mutation: dict[str, Any], tmp_path: Path) -> None:
    assert _outcome(_copy(tmp_path, mutation), [mutation["test"]]) == FAILED


@pytest.mark.full
def test_without_a_mutation_the_same_tests_are_green(tmp_path: Path) -> None:
    nodes = sorted({mutation["test"] for mutation in MUTATIONS})
    assert _outcome(_copy(tmp_path, None), nodes) == PASSED

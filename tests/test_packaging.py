"""The wheel: what it carries, and what each way of installing it can do."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements" / "dev.txt"
UV = Path(sys.executable).with_name("uv")
ASSETS = ["schema", "queries", "dashboard"]
# What uv says when a host cannot be reached, which is no fault of the wheel.
UNREACHABLE = (
    "Failed to fetch",
    "error sending request",
    "network was disabled",
    "Network connectivity is disabled",
)


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """A fresh environment with the wheel, its extra, and the pinned versions; its bin folder."""
    made = run(UV, "venv", "--no-config", "--python", sys.executable, folder / "venv", cwd=folder)
    assert made.returncode == 0, made.stderr
    target = f"facta[{extra}] @ {wheel.as_uri()}" if extra else f"facta @ {wheel.as_uri()}"
    bin_folder = folder / "venv" / "bin"
    python = bin_folder / "python"
    options = ["--no-config", "--no-build", "--python", str(python), "--constraint", str(PINS)]
    done = run(UV, "pip", "install", *options, target, cwd=folder)
    if done.returncode and any(phrase in done.stderr for phrase in UNREACHABLE):
        pytest.skip(f"NO NETWORK: the wheel was not installed as facta[{extra}]")
    assert done.returncode == 0, done.stderr
    return bin_folder


def names_below(folder: str) -> set[str]:
    """The files of one asset folder that git would clone."""
    listed = run(
        "git", "ls-files", "-co", "--exclude-standard", "--deduplicate", "--", folder, cwd=ROOT
    )
    return {line for line in listed.stdout.splitlines() if (ROOT / line).is_file()}


def test_the_wheel_claims_one_import_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"facta"}


@pytest.mark.parametrize("folder", ASSETS)
def test_the_wheel_carries_each_folder_of_files(wheel: Path, folder: str) -> None:
    prefix = f"facta/_assets/{folder}/"
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if name.startswith(prefix)}
    assert {name.removeprefix("facta/_assets/") for name in carried} == names_below(folder)


def test_the_wheel_carries_every_module_and_its_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    modules = {name.removeprefix("collector/") for name in names_below("collector/facta")}
    assert "facta/py.typed" in modules
    assert modules <= carried


def test_the_base_asks_for_opentelemetry_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [line.split(">")[0] for line in project["dependencies"]]
    assert names == ["opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"]


@pytest.mark.parametrize("extra", ["", "probe", "scan"])
def test_without_the_server_a_command_says_what_is_missing(
    wheel: Path, tmp_path: Path, extra: str
) -> None:
    bin_folder = install(wheel, extra, tmp_path)
    imported = run(bin_folder / "python", "-c", "import facta; facta.__version__", cwd=tmp_path)
    assert (imported.returncode, imported.stderr) == (0, "")

    ran = run(bin_folder / "facta", "sessions", cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert "facta[server]" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""


def test_with_the_server_the_commands_run_and_find_their_files(wheel: Path, tmp_path: Path) -> None:
    bin_folder = install(wheel, "server", tmp_path)
    helped = run(bin_folder / "facta", "--help", cwd=tmp_path)
    assert helped.returncode == 0, helped.stderr
    assert "sessions" in helped.stdout
    assert helped.stderr == ""

    script = (
        "from facta import assets; assert '_assets' in assets.ROOT.parts;"
        "print(*sorted(p.name for p in (assets.SCHEMA / 'migrations').iterdir()))"
    )
    found = run(bin_folder / "python", "-c", script, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    migrations = {Path(name).name for name in names_below("schema/migrations")}
    assert set(found.stdout.split()) == migrations != set()

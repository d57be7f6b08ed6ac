"""The unit files, checked statically. `test_user_manager.py` runs them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from punchlist_apps.cli.installing.systemd_units import (
    HARDENING,
    MCP_SERVICE,
    MCP_SOCKET,
    SERVICE,
    SOCKET,
    WEB_SERVICE,
    WEB_SOCKET,
    Places,
    render_units,
)
from punchlist_testing.optional import needs

ROOT = Path(__file__).resolve().parents[3] / "systemd"
EXPOSURE = 7
"""Upper limit for the exposure that systemd-analyze reports, in tenths."""

needs_analyze = needs("systemd-analyze")


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A copy of the units in a home directory, with the program at the expected path."""
    shutil.copytree(ROOT, tmp_path / "units")
    program = tmp_path / ".local" / "bin" / "punchlistd"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    for name in ("punch", "python"):
        program.with_name(name).symlink_to("/bin/true")
    return tmp_path / "units"


def analyze(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(directory.parent), "XDG_RUNTIME_DIR": str(directory.parent)}
    command = ["systemd-analyze", "--user", "--no-pager", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)


@needs_analyze
def test_shipped_units_verify_without_warnings(shipped: Path) -> None:
    units = [str(shipped / name) for name in (SOCKET, SERVICE, WEB_SOCKET, WEB_SERVICE, MCP_SOCKET, MCP_SERVICE)]
    done = analyze(shipped, "--man=no", "verify", *units)
    assert (done.returncode, done.stderr) == (0, "")


@needs_analyze
def test_misspelled_setting_is_reported(shipped: Path) -> None:
    unit = shipped / SERVICE
    unit.write_text(unit.read_text().replace("WatchdogSec", "WatchdogSecs"))
    assert "WatchdogSecs" in analyze(shipped, "--man=no", "verify", str(unit)).stderr


@needs_analyze
@pytest.mark.parametrize("name", ["plain", "with space", 'with "quotes" and \\', "100% $HOME", "ünï"])
def test_units_with_any_paths_verify_without_warnings(tmp_path: Path, name: str) -> None:
    python = tmp_path / name.translate({ord('"'): "-", ord("\\"): "-"}) / "python"
    python.parent.mkdir()
    python.symlink_to("/bin/true")
    units = tmp_path / "units"
    places = Places(str(tmp_path / name / "s"), str(tmp_path / name), str(tmp_path / "run"), python=str(python))
    places = places._replace(worker=str(tmp_path / name / "w"))
    for unit, text in render_units(places, web=True).items():
        (units / unit).parent.mkdir(exist_ok=True)
        (units / unit).write_text(text)
    done = analyze(
        units, "--man=no", "verify", *(str(units / unit) for unit in (SOCKET, SERVICE, MCP_SOCKET, MCP_SERVICE))
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_analyze
def test_exposure_of_the_units_is_low(shipped: Path) -> None:
    words = ("security", "--offline=true")
    assert analyze(shipped, *words, f"--threshold={EXPOSURE}", str(shipped / SERVICE)).returncode == 0
    shutil.rmtree((shipped / HARDENING).parent)
    told = re.findall(r"exposure level for .*: ([\d.]+)", analyze(shipped, *words, str(shipped / SERVICE)).stdout)
    assert float(told[0]) < 6.5


def test_units_use_no_version_dependent_directories() -> None:
    text = "".join(path.read_text() for path in ROOT.rglob("*") if path.is_file())
    assert not re.search(r"^(State|Cache|Logs|Configuration)Directory=", text, re.MULTILINE)

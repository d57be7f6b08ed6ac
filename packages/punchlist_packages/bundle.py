"""punchlist and everything that it needs in one directory, which serves several versions of Python.

Compiled modules have the Python they are for in their names (`_core.cpython-311-x86_64-linux-gnu.so`), so those of all
versions lie beside each other.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from punchlist_packages.hatch_build import ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
GLIBC = "2.28"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machine as Linux calls it → as Debian does."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_REQUIREMENTS = ("--requirement", "requirements/dist.txt", "--constraint", "requirements/dev.txt")


def make(site: Path, own_wheel: Path, machine: str, wheels: Path) -> None:
    """Fill the directory `site` for a machine, from wheels that are fetched into `wheels`."""
    wheels.mkdir(parents=True, exist_ok=True)
    for stale in wheels.iterdir():
        stale.unlink()
    for python in PYTHONS:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--dest", str(wheels)),
                *("--no-deps", "--only-binary", ":all:", "--implementation", "cp", "--python-version", python),
                *(word for platform in _PLATFORMS for word in ("--platform", f"{platform}_{machine}")),
                *(*_REQUIREMENTS, "--constraint", "requirements/mcp.txt"),
            ],
            cwd=ROOT,
            check=True,
        )
    for wheel in (*sorted(wheels.glob("*.whl")), own_wheel):
        unpack(wheel, site)


def unpack(wheel: Path, site: Path) -> None:
    """Unpack the modules of a wheel. What it has for other places is left out; ours has all it needs in its package."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data, _, rest = name.partition(".data/")
            if not rest or "/" in data:
                archive.extract(name, site)
            elif rest.startswith(("purelib/", "platlib/")):
                raise ValueError(f"{wheel.name} has modules in {name}, which nothing here puts in their place")

"""Puts punchlist and its dependencies into one directory that works with several versions of Python.

The file name of a compiled module contains its Python version (`_core.cpython-311-x86_64-linux-gnu.so`), so the modules
for all versions fit into the same directory.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from punchlist_packages.hatch_build import ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
GLIBC = "2.28"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Linux's name of an architecture → Debian's."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_REQUIREMENTS = ("--requirement", "requirements/dist.txt", "--constraint", "requirements/dev.txt")


def make(site: Path, own_wheel: Path, machine: str, wheels: Path) -> None:
    """Fill the directory `site` for an architecture, from wheels downloaded into `wheels`."""
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
    """Unpack the modules of a wheel.

    Files that the wheel installs elsewhere are skipped. This project's wheel keeps everything it needs in its packages.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data, _, rest = name.partition(".data/")
            if not rest or "/" in data:
                archive.extract(name, site)
            elif rest.startswith(("purelib/", "platlib/")):
                raise ValueError(f"{wheel.name} has modules in {name}, which this script can't install")

"""Installs the pinned version of each peer into a directory of its own, build/compare/peers/NAME."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from punchlist_bench.harness import ROOT
from punchlist_compare.peers import Peer
from punchlist_compare.place import UnmeasuredError, shorten

VERSIONS = ROOT / "requirements/compare.toml"
PEERS = ROOT / "build/compare/peers"
STAMP = ".version"
"""File in a peer's directory with the version that was installed."""


def install(peer: Peer) -> Path:
    """Install a peer unless its pinned version is there, and return its directory.

    Raises:
        UnmeasuredError: The registry can't be reached, or lacks this version.
    """
    place = PEERS / peer.name
    version = find_version(peer)
    stamp = place / STAMP
    # The checkout's sources may have changed, so it is installed again each time, as its users do.
    if peer.registry != "checkout" and stamp.exists() and stamp.read_text() == version:
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    _INSTALLERS[peer.registry](place, peer.package, version)
    stamp.write_text(version)
    return place


def find_version(peer: Peer) -> str:
    """Return the pinned version of a peer, or this checkout's commit."""
    if peer.registry == "checkout":
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=8"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return tomllib.loads(VERSIONS.read_text("utf-8"))[peer.registry][peer.package]


def _install_debian(place: Path, package: str, version: str) -> None:
    # Unpacked instead of installed: this needs no root and changes nothing else.
    _run(["apt-get", "download", f"{package}={version}"], place)
    (archive,) = place.glob("*.deb")
    _run(["dpkg-deb", "--extract", archive.name, "."], place)


def _install_npm(place: Path, package: str, version: str) -> None:
    options = ["--prefix", str(place), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(["npm", "install", *options, f"{package}@{version}"], place)


def _install_pypi(place: Path, package: str, version: str) -> None:
    _make_environment(place, [f"{package}=={version}"])


def _install_checkout(place: Path, _package: str, _version: str) -> None:
    pins = [word for name in ("dev", "mcp") for word in ("--constraint", str(ROOT / f"requirements/{name}.txt"))]
    _make_environment(place, [*pins, f"{ROOT}[mcp]"])


_INSTALLERS: dict[str, Callable[[Path, str, str], None]] = {
    "checkout": _install_checkout,
    "debian": _install_debian,
    "npm": _install_npm,
    "pypi": _install_pypi,
}


def _make_environment(place: Path, packages: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", str(place)], place)
    _run([str(place / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *packages], place)


def _run(command: Sequence[str], place: Path) -> None:
    if not shutil.which(command[0]):
        raise UnmeasuredError(f"not installed: needs {command[0]}")
    done = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UnmeasuredError(f"not installed: {shorten(done.stderr or done.stdout)}")

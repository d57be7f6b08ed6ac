"""`make dist`: builds everything that users install, in dist/."""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipapp
import zipfile
from pathlib import Path

from punchlist_packages import bundle, debian, shops
from punchlist_packages.hatch_build import MACHINE, ROOT, compile_program, stamped

_FALLBACK_EPOCH = 1_577_836_800
"""Modification time of the files if git has no commit to take it from: the start of 2020."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", choices=bundle.MACHINES, default=platform.machine())
    machine: str = parser.parse_args().machine
    stamp, epoch = stamped(), _epoch()
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    dist, work = ROOT / "dist", ROOT / "build/dist"
    shutil.rmtree(dist, ignore_errors=True)
    _build(dist, "any")
    (wheel,) = dist.glob("*.whl")
    work.mkdir(parents=True, exist_ok=True)
    if compile_program(work / "punch", machine):
        _build(dist, machine, "-t", "wheel")
    else:
        print(f"`punch` was not compiled: there is no static C compiler for {machine}; it runs without a warm process")
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    bundle.make(site, wheel, machine, work / "wheels")
    public = stamp.partition("+")[0]
    program = dist / f"punchlist-{public}-linux-{machine}.pyz"
    single_file(program, site, machine, stamp)
    mcp_bundle(program.with_suffix(".mcpb"), program)
    package = f"punchlist_{debian.version(public)}_{bundle.MACHINES[machine]}.deb"
    if shutil.which("dpkg-deb"):
        debian.make(dist / package, work / "deb", site, machine, stamp, epoch)
    else:
        print(f"{package} was not built: dpkg-deb is not installed")
    for made in sorted(dist.iterdir()):
        print(f"{made.stat().st_size / 1e6:6.1f} MB  dist/{made.name}")


def _build(dist: Path, machine: str, *options: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(dist), *options]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env={**os.environ, MACHINE: machine})


def single_file(target: Path, site: Path, machine: str, stamp: str) -> None:
    carried = (
        f"Python {bundle.PYTHONS[0]} to {bundle.PYTHONS[-1]} on Linux {machine} with glibc {bundle.GLIBC} or newer"
    )
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        with zipfile.ZipFile(plain, "w") as archive:
            launcher = Path(__file__).with_name("launcher.py").read_bytes()
            _add(archive, "__main__.py", launcher)
            for path in sorted(path for path in site.rglob("*") if path.is_file()):
                _add(archive, name := f"site/{path.relative_to(site)}", content := path.read_bytes())
                digest.update(f"{name} {len(content)}\n".encode() + content)
            _add(archive, "about", f"{stamp}-{digest.hexdigest()[:8]}\n{carried}".encode())
        zipapp.create_archive(plain, target, interpreter="/usr/bin/env python3")
    target.chmod(0o755)


def mcp_bundle(target: Path, program: Path) -> None:
    """Pack the single file with its manifest, as hosts with a bundle format install it."""
    with zipfile.ZipFile(target, "w") as archive:
        _add(archive, "manifest.json", (ROOT / "plugins/mcpb/manifest.json").read_bytes())
        _add(archive, shops.BUNDLED, program.read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date, so that the same sources always produce the same file.
    archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED, 9)


def _epoch() -> int:
    said = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return int(said) if said.isdigit() else _FALLBACK_EPOCH


if __name__ == "__main__":
    main()

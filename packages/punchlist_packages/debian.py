"""Builds the Debian package: punchlist with all its dependencies in /usr/lib/punchlist.

Debian's own packages can't be used: Debian 12 has no msgspec, and its anyio is too old.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from punchlist_packages import bundle, man
from punchlist_packages.hatch_build import COMPLETIONS, ROOT, SHIPPED, compile_program

PRIVATE = "usr/lib/punchlist"
_SCRIPT = "#!/{private}/bin/python -P\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
_PROGRAMS = {"punch": "punchlist_apps.cli", "punchlist": "punchlist_apps.cli", "punchlistd": "punchlistd.__main__"}

_CONTROL = """\
Package: punchlist
Version: {version}
Architecture: {architecture}
Maintainer: The punchlist authors <punchlist@localhost>
Installed-Size: {kilobytes}
Depends: python3 (>= {oldest}), python3 (<< {too_new}), libc6 (>= {glibc}), libgcc-s1
Recommends: systemd
Section: utils
Priority: optional
Description: task lists for AI agents and the people who work with them
 A daemon for each user keeps tasks in an append-only log and pushes every
 change to its clients: the command punch, a full screen, a web page, and
 tools for agents over the Model Context Protocol.
 .
 The Python packages that it needs are inside, in /usr/lib/punchlist; their
 licenses are next to them.
"""

# A failure is ignored: modules that are not compiled only start more slowly.
_POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    /{private}/bin/python -m compileall -q -j 0 /{library} >/dev/null 2>&1 || true
fi
"""
_PRERM = """\
#!/bin/sh
set -e
find /{library} -name __pycache__ -type d -prune -exec rm -rf {{}} +
"""


def version(public: str) -> str:
    """Return the version in the form that Debian sorts correctly, with a pre-release before its release."""
    return re.sub(r"(?<=\d)(a|b|rc|\.dev)(?=\d)", lambda found: "~" + found[1].lstrip("."), public)


def make(target: Path, root: Path, site: Path, machine: str, stamped: str, epoch: int) -> None:
    shutil.rmtree(root, ignore_errors=True)
    library = f"{PRIVATE}/lib/python{bundle.PYTHONS[0]}"
    shutil.copytree(site, root / library / "site-packages")
    for python in bundle.PYTHONS[1:]:
        (root / PRIVATE / "lib" / f"python{python}").symlink_to(f"python{bundle.PYTHONS[0]}")
    _environment(root)
    compile_program(root / PRIVATE / "bin/punch", machine)  # replaces the plain one
    _shared(root, site, stamped, epoch)
    public = stamped.partition("+")[0]
    names = {"private": PRIVATE, "library": library}
    size = sum(path.stat().st_size for path in _regular(root))
    _write(
        root / "DEBIAN/control",
        _CONTROL.format(
            version=version(public),
            architecture=bundle.MACHINES[machine],
            kilobytes=-(-size // 1024),
            oldest=bundle.PYTHONS[0],
            too_new=f"3.{int(bundle.PYTHONS[-1].partition('.')[2]) + 1}",
            glibc=bundle.GLIBC,
        ),
    )
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in _regular(root)]  # noqa: S324
    _write(root / "DEBIAN/md5sums", "".join(sums))
    _write(root / "DEBIAN/postinst", _POSTINST.format(**names), mode=0o755)
    _write(root / "DEBIAN/prerm", _PRERM.format(**names), mode=0o755)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(target)],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _environment(root: Path) -> None:
    """Add a virtual environment over the system's Python.

    It works with any supported version, and its `sys.executable` can import punchlistd.
    """
    home = root / PRIVATE
    _write(home / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    (home / "bin").mkdir()
    (home / "bin/python").symlink_to("/usr/bin/python3")
    (root / "usr/bin").mkdir(parents=True)
    for name, module in _PROGRAMS.items():
        _write(home / "bin" / name, _SCRIPT.format(private=PRIVATE, module=module), mode=0o755)
        (root / "usr/bin" / name).symlink_to(f"../lib/punchlist/bin/{name}")


def _shared(root: Path, site: Path, stamped: str, epoch: int) -> None:
    _write(root / "usr/share/doc/punchlist/README.md", (ROOT / "README.md").read_text("utf-8"))
    for script, place in COMPLETIONS.items():
        # Debian's zsh looks in a different directory than upstream zsh does.
        target = root / "usr/share" / place.replace("site-functions", "vendor-completions")
        _write(target, (site / SHIPPED / "completions" / script).read_text("utf-8"))
    (root / "usr/share/bash-completion/completions/punchlist").symlink_to("punch")
    # The path of the MCP worker's socket depends on the user's data directory, so only a command can write its units.
    for unit in sorted(path for path in (ROOT / "systemd").iterdir() if path.is_file() and "mcp" not in path.name):
        text = unit.read_text("utf-8").replace("ExecStart=%h/.local/bin/", "ExecStart=/usr/bin/")
        _write(root / "usr/lib/systemd/user" / unit.name, text)
    for name, page in man.pages(stamped).items():
        _compressed(root / f"usr/share/man/man1/{name}.1.gz", page)
    (root / "usr/share/man/man1/punchlist.1.gz").symlink_to("punch.1.gz")
    _compressed(root / "usr/share/doc/punchlist/changelog.gz", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    licence = (ROOT / "LICENSE").read_text("utf-8")
    others = "The Python packages in /usr/lib/punchlist have their own licenses: *.dist-info/licenses there.\n"
    _write(root / "usr/share/doc/punchlist/copyright", f"{licence}\n{others}")
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) and path.parent.name == "bin" else 0o644)
            os.utime(path, (epoch, epoch))


def _regular(root: Path) -> Iterator[Path]:
    yield from sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and path.relative_to(root).parts[0] != "DEBIAN"
    )


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)


def _compressed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))

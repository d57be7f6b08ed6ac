"""`__main__` of the single file: unpacks it once for this Python, then runs the unpacked punch.

Compiled modules can't be imported from an archive. The unpacked files form a virtual environment, so that
`sys.executable` can import punchlistd. The daemon, the systemd units and the hosts' settings all start programs with
it. (shiv would set PYTHONPATH instead, which every command of `punch run` would inherit.) This module imports little,
because it runs at each start, and it must run on an old Python to report that the version is too old.
"""

import binascii
import os
import sys
import zipimport

_CONFIGURATION = 78

_PUNCH = """\
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -P -m punchlist "$@"
"""


def main() -> None:
    """Run punch, or punchlistd if that is the name of the file."""
    archive = os.path.abspath(sys.path[0])
    stamp, carried = zipimport.zipimporter(archive).get_data("about").decode().splitlines()
    base = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    data = os.environ.get("XDG_DATA_HOME", "")
    data = data if data.startswith("/") else os.path.expanduser("~/.local/share")
    digest = binascii.crc32(os.fsencode(base))
    home = f"{data}/punchlist-programs/{stamp}-{sys.implementation.cache_tag}-{digest:08x}"
    python = f"{home}/bin/python"
    if not os.path.exists(python):
        try:
            _unpack(archive, home, base, carried)
        except OSError as error:
            _end(
                f"it can't be unpacked into {home}: {error.strerror or error}", "make room there, or set XDG_DATA_HOME"
            )
    module = "punchlistd" if os.path.basename(archive).startswith("punchlistd") else "punchlist"
    os.execv(python, [python, "-P", "-m", module, *sys.argv[1:]])


def _unpack(archive: str, home: str, base: str, carried: str) -> None:
    """Unpack into a temporary directory and rename it.

    No process then sees an incomplete directory, and two processes can unpack at the same time.
    """
    import shutil
    import tempfile
    import zipfile
    from importlib.machinery import EXTENSION_SUFFIXES

    with zipfile.ZipFile(archive) as packed:
        names = [name for name in packed.namelist() if name.startswith("site/")]
        ours = [name for name in names if not name.endswith(".so") or name.endswith(tuple(EXTENSION_SUFFIXES))]
        if sys.version_info < (3, 11) or not any(name.endswith(EXTENSION_SUFFIXES[0]) for name in ours):
            version = ".".join(map(str, sys.version_info[:2]))
            _end(f"this is Python {version} ({EXTENSION_SUFFIXES[0]}); the file needs {carried}")
        os.makedirs(os.path.dirname(home), mode=0o700, exist_ok=True)
        made = tempfile.mkdtemp(prefix=".unpacking-", dir=os.path.dirname(home))
        try:
            library = f"{made}/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
            packed.extractall(library, ours)
            os.rename(f"{library}/site", f"{library}/site-packages")
            os.mkdir(f"{made}/bin")
            os.symlink(base, f"{made}/bin/python")
            with open(f"{made}/pyvenv.cfg", "w", encoding="utf-8") as file:
                file.write(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
            with open(f"{made}/bin/punch", "w", encoding="utf-8") as file:
                file.write(_PUNCH)
            os.chmod(f"{made}/bin/punch", 0o755)
            os.rename(made, home)
        except OSError:
            if not os.path.exists(f"{home}/bin/python"):
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _end(message: str, advice: str = "") -> None:
    sys.stderr.write(f"error: {message}\n" + (f"  {advice}\n" if advice else ""))
    sys.exit(_CONFIGURATION)


if __name__ == "__main__":
    main()

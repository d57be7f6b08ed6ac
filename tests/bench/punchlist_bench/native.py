"""Compiles the load generators and the floor, which are written in C so that the server is the bottleneck."""

import os
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def compiler() -> str | None:
    """Return the path of the C compiler, or None."""
    return shutil.which(os.environ.get("CC", "cc"))


def build(directory: Path) -> None:
    """Compile programs that are missing or older than their sources.

    Raises:
        RuntimeError: No compiler was found, or it failed.
    """
    cc = compiler()
    if cc is None:
        raise RuntimeError("the load comes from a small C program, and there is no C compiler: apt-get install gcc")
    directory.mkdir(parents=True, exist_ok=True)
    newest_header = max(path.stat().st_mtime for path in SOURCES.glob("*.h"))
    for source in sorted(SOURCES.glob("*.c")):
        program = directory / source.stem
        if program.exists() and program.stat().st_mtime > max(source.stat().st_mtime, newest_header):
            continue
        compiled = subprocess.run([cc, *FLAGS, "-o", program, source], capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise RuntimeError(f"{cc} refused {source.name}:\n{compiled.stderr}")

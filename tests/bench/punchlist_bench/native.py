"""The load generators and the floor, in C so that what is measured is the server; compiled when first needed."""

import os
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def compiler() -> str | None:
    """The C compiler's path, or None where there is none."""
    return shutil.which(os.environ.get("CC", "cc"))


def build(directory: Path) -> None:
    """Compile what is missing or older than its source.

    Raises:
        RuntimeError: there is no compiler, or it refused; the message says why.
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
        made = subprocess.run([cc, *FLAGS, "-o", program, source], capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(f"{cc} refused {source.name}:\n{made.stderr}")

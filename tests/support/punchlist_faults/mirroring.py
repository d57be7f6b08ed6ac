"""`punch mirror run` in a process of its own, beside a harness's daemon."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from punchlist_faults.hands import LIST, PUNCH, environment
from punchlist_faults.options import need
from punchlist_faults.process import PATIENCE_S, Daemon, eventually


@contextmanager
def mirrored(daemon: Daemon, directory: Path) -> Generator[Path]:
    """`punch mirror run` over a directory; the list's file."""
    directory.mkdir(exist_ok=True)
    data = ["--data-dir", str(daemon.data), "--socket", daemon.socket, "--no-autostart"]
    subprocess.run(
        [*PUNCH, "mirror", "add", str(directory), "-c", LIST, *data],
        env=environment(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    with open(daemon.directory / "mirror.log", "wb") as log:
        running = subprocess.Popen([*PUNCH, "mirror", "run", *data], env=environment(), stderr=log)
        try:
            file = directory / ".agents" / "tasks" / f"{LIST}.json"
            eventually(file.exists, PATIENCE_S, "the mirror is written")
            yield file
            need(running.poll() is None, f"the mirror ended: {(daemon.directory / 'mirror.log').read_text()}")
        finally:
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(5)
            running.kill()
            running.wait()

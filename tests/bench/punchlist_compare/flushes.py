"""Counts how often one add makes the disk store data, with strace."""

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

from punchlist_bench.table import progress
from punchlist_compare.comparison import Comparison
from punchlist_compare.peers import Peer
from punchlist_compare.place import Place, UnmeasuredError
from punchlist_compare.session import Session

ADDS = 5
SYSTEM_CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
_BEGIN = re.compile(rf"\b({'|'.join(SYSTEM_CALLS)})\(")
_TRACE = ("-f", "-e", f"trace={','.join(SYSTEM_CALLS)}", "-o")


def measure(comparison: Comparison) -> None:
    progress("flushes")
    with comparison.open_places(comparison.sizes[0]) as places:
        for peer, place in places:
            if "add" not in peer.commands and "add" not in peer.tools:
                continue
            with comparison.explaining(peer, "flushes"), tempfile.TemporaryDirectory(prefix="compare-") as logs:
                _add(peer, place, Path(logs))
                texts = [log.read_text("utf-8", "replace") for log in Path(logs).iterdir()]
                comparison.results.add("flushes", peer.name, sum(len(_BEGIN.findall(text)) for text in texts) / ADDS)


def _add(peer: Peer, place: Place, logs: Path) -> None:
    """Add tasks by commands, or else by MCP calls, while strace logs the peer's processes.

    Raises:
        UnmeasuredError: strace isn't installed or may not attach.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise UnmeasuredError("strace is not installed")
    if words := peer.commands.get("add"):
        place.time(place.fill_words(words, title=place.next_title()))  # starts what runs in the background
        with _attached(strace, place, logs / "running"):
            for number in range(ADDS):
                command = place.fill_words(words, title=place.next_title())
                place.run([strace, *_TRACE, str(logs / f"command-{number}"), *command])
    else:
        with Session(place) as session, _attached(strace, place, logs / "running"):
            for _ in range(ADDS):
                session.call(*peer.tools["add"].fill(place, place.next_title()))


@contextlib.contextmanager
def _attached(strace: str, place: Place, log: Path) -> Generator[None]:
    """Trace the place's running processes during the block."""
    pids = place.find_processes()
    if not pids:
        yield
        return
    options = [word for pid in pids for word in ("-p", str(pid))]
    with subprocess.Popen([strace, *_TRACE, str(log), *options], stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        try:
            for _ in pids:
                line = tracer.stderr.readline()
                if "attached" not in line:
                    raise UnmeasuredError(line.strip() or "strace ended")
            yield
        finally:
            tracer.terminate()  # strace detaches; a shell may have made it ignore SIGINT
            tracer.communicate()

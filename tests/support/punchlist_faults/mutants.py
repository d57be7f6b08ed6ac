"""Plants each known bug in a copy of the tree and runs the tests that must turn red then.

MUTANT names a part of one's description. JOBS is how many run at once.
"""

import os
import queue
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.planted import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("daemon", "client", "schemas", "tests", "systemd", "requirements")
FILES = ("pyproject.toml", "README.md", "Makefile")
SERVER = "build/nats-server"
"""Where `make nats-server` puts one: without it tests that need it are skipped, and their bugs survive."""

PATIENCE_S = 240
"""How long the tests of one bug may take, in seconds."""

SOUND_S = 1800
"""How long those of all bugs together may take while nothing is planted, in seconds."""


class Verdict(NamedTuple):
    """What became of a mutant: the test that killed it, "" if it survived."""

    mutant: Mutant
    killer: str
    seconds: float


def copy_tree(place: Path) -> Path:
    """A copy of what the tests need."""
    for folder in FOLDERS:
        if (ROOT / folder).exists():
            shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__", "*.sock"))
    for file in FILES:
        shutil.copyfile(ROOT / file, place / file)
    if (ROOT / SERVER).exists():
        (place / SERVER).parent.mkdir()
        (place / SERVER).symlink_to(ROOT / SERVER)
    return place


def planted(mutant: Mutant, text: str) -> str:
    """The text of the file with the bug in it.

    Raises:
        Violation: what it changes is not there, or more than once.
    """
    found = text.count(mutant.old)
    need(found == 1, f"{mutant.guard}: {mutant.file} has {found} times {mutant.old!r}")
    return text.replace(mutant.old, mutant.new)


def _pytest(tree: Path, tests: Sequence[str], patience_s: float = PATIENCE_S) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    env = {name: value for name, value in os.environ.items() if name not in ("SEED", "SIZE")}
    # Programs that tests start are those of the tree as well, and not those that are installed.
    env["PYTHONPATH"] = os.pathsep.join(str(tree / folder) for folder in ("daemon", "client", "schemas"))
    ended = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=patience_s, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def _forget_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def try_one(tree: Path, mutant: Mutant) -> Verdict:
    """Plant one bug, run its tests, and take it out again."""
    path = tree / mutant.file
    sound = path.read_text()
    began = time.monotonic()
    path.write_text(planted(mutant, sound))
    _forget_compiled(path)
    try:
        code, said = _pytest(tree, mutant.tests)
    except subprocess.TimeoutExpired:
        code, said = 1, "FAILED (it hangs)"
    finally:
        path.write_text(sound)
        _forget_compiled(path)
    need(code in (0, 1), f"{mutant.guard}: pytest ended with {code}: {said[-2000:]}")
    killer = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", said, re.MULTILINE)
    return Verdict(mutant, killer[1] if code and killer else "", time.monotonic() - began)


def run(_options: Options) -> Figures:
    """Try all, and say who survived."""
    wanted = os.environ.get("MUTANT") or ""
    chosen = [mutant for mutant in MUTANTS if wanted in mutant.guard]
    jobs = int(os.environ.get("JOBS") or 2)
    with workplace() as place, ThreadPoolExecutor(jobs) as pool:
        trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            trees.put(copy_tree(place / f"tree{number}"))
        _sound_first(trees, sorted({test for mutant in chosen for test in mutant.tests}))

        def attempt(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                verdict = try_one(tree, mutant)
            finally:
                trees.put(tree)
            by = verdict.killer.rpartition("::")[2] or "SURVIVED"
            print(f"  {verdict.seconds:5.1f} s  {mutant.guard:<56} {by}", flush=True)
            return verdict

        verdicts = list(pool.map(attempt, chosen))
    survivors = [verdict.mutant.guard for verdict in verdicts if not verdict.killer]
    if survivors:
        raise Violation(f"no test noticed that these were gone: {'; '.join(survivors)}")
    return {"mutants": len(verdicts), "killed": len(verdicts), "survived": 0}


def _sound_first(trees: "queue.SimpleQueue[Path]", tests: Sequence[str]) -> None:
    """The tests pass while nothing is planted."""
    tree = trees.get()
    code, said = _pytest(tree, tests, SOUND_S)
    trees.put(tree)
    need(code == 0, f"the tests fail without a bug: {said[-3000:]}")


if __name__ == "__main__":
    main("mutants", run, 1)

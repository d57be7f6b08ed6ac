"""Mutation testing: makes small changes in domain, engine and store, and lists those that no test notices.

Runs on a copy of the tree under build/mutants, with cosmic-ray. A module's own test file runs first, then the tests of
its room. An interrupted run continues where it stopped: results are kept for each combination of sources, tests and
options. A survivor is a missing test, code that nothing needs, or a change that no user could notice.

MODULE is a file or folder below daemon/punchlistd. SIZE is the number of mutants, chosen by SEED; 0 tests all.
"""

import hashlib
import linecache
import os
import random
import re
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem, WorkResult

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/mutants"
PACKAGE = Path("daemon/punchlistd")
ROOMS = ("domain", "engine", "store")

TIMEOUT_S = 600
"""Upper limit for the tests of one mutant."""

# `|` stands mostly in type annotations, and small numbers and short names are the same object if they are equal.
EQUIVALENT = re.compile(r"ReplaceBinaryOperator_BitOr_|_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$")


def copy_tree() -> str:
    """Copy the files that git knows, and return a digest of them."""
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, check=True
    ).stdout
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.decode().split("\0"))):
        source = ROOT / name
        if source.is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, tree / name)
            if name.endswith((".py", ".toml")):
                digest.update(name.encode() + source.read_bytes())
    os.chdir(tree)
    return digest.hexdigest()


def is_noise(mutation: MutationSpec) -> bool:
    """Return whether a mutation changes nothing that a test should notice, such as `frozen` or `gc` of a class."""
    line = linecache.getline(str(mutation.module_path), mutation.start_pos[0])
    return line.startswith("class ") or EQUIVALENT.search(mutation.operator_name) is not None


def choose(db: WorkDB, seed: str, size: int) -> None:
    """Keep one mutation of each place, and of those a sample."""

    def place(item: WorkItem) -> tuple[str, tuple[int, int], tuple[int, int]]:
        (mutation,) = item.mutations
        return str(mutation.module_path), mutation.start_pos, mutation.end_pos

    chance = random.Random(seed)
    items = [item for item in db.work_items if not is_noise(item.mutations[0])]
    # Job ids are random: sort by what a mutation does, so that a seed chooses the same ones again.
    items.sort(key=lambda item: (place(item), item.mutations[0].operator_name))
    chosen = [chance.choice(list(group)) for _, group in groupby(items, place)]
    db.clear()
    db.add_work_items(chance.sample(chosen, min(size, len(chosen))) if size else chosen)


def commands(module: Path) -> list[str]:
    """Return the commands that test a module: its own tests, then those of its room."""
    room, *rest = module.relative_to(PACKAGE).parts
    own = Path("tests/unit/daemon", room, *rest).with_name(f"test_{module.name}")
    pytest = f"{ROOT}/.venv/bin/python -m pytest -qx -p no:cacheprovider -m 'not long' --timeout 60 "
    return [pytest + str(tests) for tests in (own, Path("tests/unit/daemon", room)) if tests.exists()]


def try_mutant(mutations: tuple[MutationSpec, ...]) -> WorkResult:
    result = None
    for command in commands(mutations[0].module_path):
        result = mutate_and_test(mutations, command, TIMEOUT_S)
        if result.test_outcome is not TestOutcome.SURVIVED:
            break
    assert result is not None
    return result


def main() -> None:
    """Create or continue a session, and print its survivors."""
    seed, size, module = os.environ["SEED"], int(os.environ["SIZE"]), os.environ["MODULE"]
    options = f"{copy_tree()} {seed} {size} {module}"
    # The programs that tests start must be those of the copy.
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path.cwd() / name) for name in ("daemon", "client", "schemas"))
    chosen = [Path(module)] if module else [PACKAGE / room for room in ROOMS]
    paths = [path for place in chosen for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    session, new = BUILD / f"{hashlib.sha256(options.encode()).hexdigest()[:12]}.sqlite", BUILD / "new.sqlite"
    if not session.exists():
        new.unlink(missing_ok=True)
        with use_db(new) as db:
            init(paths, db, {})
            choose(db, seed, size)
        new.rename(session)  # a session has its sample, whenever this is interrupted
    with use_db(session) as db:
        pending = db.pending_work_items
        print(f"{db.num_work_items} mutants, {len(pending)} to test, SEED={seed}", flush=True)
        for command in sorted({command for item in pending for command in commands(item.mutations[0].module_path)}):
            # They pass without a mutant. This compiles them, too: cosmic-ray's own runs leave nothing behind.
            subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
        for item in pending:
            result = try_mutant(item.mutations)
            db.set_result(item.job_id, result)
            print("." if result.is_killed else "S", end="", flush=True)
        survivors = [(item, result) for item, result in db.completed_work_items if not result.is_killed]
    for item, result in sorted(survivors, key=lambda each: each[0].mutations[0].start_pos):
        (mutation,) = item.mutations
        print(f"\n{mutation.module_path}:{mutation.start_pos[0]}: {mutation.operator_name.removeprefix('core/')}")
        print("\n".join(line for line in (result.diff or "").splitlines()[3:] if line.startswith(("+", "-"))))
    print(f"\n{len(survivors)} survived")


if __name__ == "__main__":
    main()

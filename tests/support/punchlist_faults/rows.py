"""Long runs of the tests for the view `rows`: SIZE random calls, and a third as many cuts of a `punch web` stream."""

import os
import subprocess
import sys

from punchlist_faults.options import ROOT, Figures, Options, need


def run_tests(file: str, *words: str, **env: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--no-header", "-p", "no:cacheprovider", "--timeout", "0"]
    done = subprocess.run([*command, file, *words], cwd=ROOT, env={**os.environ, **env}, check=False)
    need(done.returncode == 0, f"{file} failed")


def run(options: Options) -> Figures:
    calls, cuts = options.size, max(1, options.size // 3)
    run_tests(
        "tests/unit/daemon/engine/watching/test_views.py",
        "-k",
        "random_calls",
        CALLS=str(calls),
        SEED=str(options.seed),
    )
    run_tests(
        "tests/unit/client/punchlist_apps/web/test_feed.py",
        "-k",
        "cuts_anywhere",
        CUTS=str(cuts),
        SEED=str(options.seed),
    )
    return {"calls": calls, "cuts": cuts}

"""Modules of the extension that don't need VS Code, run by Node's test runner with a real daemon."""

import os
import subprocess
import sys

import pytest

from punchlist_testing.optional import NODE
from punchlist_testing.vscode import EXTENSION


@pytest.mark.timeout(300)
def test_node_tests_pass() -> None:
    done = subprocess.run(
        [NODE, "--test", "--test-reporter=tap", "test/*.test.ts"],
        cwd=EXTENSION,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "# fail 0" in done.stdout

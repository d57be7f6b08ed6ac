"""A daemon without a space has nothing of this room in memory."""

import subprocess
import sys

PROGRAM = """
import sys
import punchlistd.__main__, punchlistd.app, punchlistd.run
print(*sorted(name for name in sys.modules if name.startswith(("punchlistd.shared", "nats", "nkeys"))))
"""
CHEAP = {"punchlistd.shared", "punchlistd.shared.spaces"}
"""What may be asked whether there is a space."""


def test_a_daemon_without_a_space_imports_nothing_that_a_space_needs() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert set(ended.stdout.split()) <= CHEAP

"""A daemon without a space has nothing of this room in memory."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import punchlistd.__main__, punchlistd.app, punchlistd.run
print(*sorted(name for name in sys.modules if name.startswith(("punchlistd.shared", "nats", "nkeys", "asyncpg"))))
"""
CHEAP = {"punchlistd.shared", "punchlistd.shared.spaces"}
"""What may be asked whether there is a space."""


def test_a_daemon_without_a_space_imports_nothing_that_a_space_needs() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert set(ended.stdout.split()) <= CHEAP


ADAPTER = """
import sys
from punchlistd.machines import _of_nats, _of_postgres
from punchlistd.shared.sharing import Sharing
{0}()
print(*sorted(name for name in sys.modules if "." not in name and name in ("nats", "nkeys", "asyncpg")))
"""


@pytest.mark.parametrize(("adapter", "imported"), [("_of_nats", "nats nkeys"), ("_of_postgres", "asyncpg")])
def test_a_space_imports_what_its_own_kind_needs_and_nothing_of_the_other(adapter: str, imported: str) -> None:
    program = [sys.executable, "-c", ADAPTER.format(adapter)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == imported

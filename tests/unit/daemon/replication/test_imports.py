"""Modules imported by a daemon without a space, and by each adapter."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import punchlistd.__main__, punchlistd.app.app, punchlistd.app.run
print(*sorted(name for name in sys.modules if name.startswith(("punchlistd.replication", "nats", "nkeys", "asyncpg"))))
"""
CHEAP = {"punchlistd.replication", "punchlistd.replication.spaces"}
"""Modules that a daemon imports even without a space."""


def test_daemon_without_space_imports_no_adapter() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert set(ended.stdout.split()) <= CHEAP


ADAPTER = """
import sys
from punchlistd.app.machines import _import_engine
from punchlistd.replication.sharing import Sharing
_import_engine("{0}")
print(*sorted(name for name in sys.modules if "." not in name and name in ("nats", "nkeys", "asyncpg")))
"""


@pytest.mark.parametrize(("engine", "imported"), [("nats", "nats nkeys"), ("postgres", "asyncpg")])
def test_space_imports_only_its_own_adapter(engine: str, imported: str) -> None:
    program = [sys.executable, "-c", ADAPTER.format(engine)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == imported


MISSING = """
import asyncio, sys
sys.modules.update(dict.fromkeys(("nats", "nkeys", "asyncpg")))
from punchlistd.app import machines
from punchlistd.replication.posts.refusals import Rejected
from punchlistd.replication.spaces import Space
try:
    asyncio.run(machines._adapter().prepare(Space("team", ({0!r},)), "ann"))
except Rejected as rejected:
    refused = rejected.why
print(refused.kind, refused.data["reason"], refused.message)
"""


@pytest.mark.parametrize(("url", "extra"), [("tls://h:1", "shared"), ("postgres://ann@h:1/d", "postgres")])
def test_missing_extra_is_reported_with_command(url: str, extra: str) -> None:
    program = [sys.executable, "-c", MISSING.format(url)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.startswith(f"unreachable no_extra Lists on several machines need punchlist's extra {extra}.")
    assert "(punch doctor prints the command)" in ended.stdout

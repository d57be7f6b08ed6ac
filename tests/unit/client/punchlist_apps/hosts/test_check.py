import os
import time
from pathlib import Path

import pytest

from punchlist_apps.hosts import check
from punchlist_apps.hosts.check import ServerError, list_tools
from punchlist_testing.played import SERVER, program

DEAF = """
import os, sys
sys.stdin.readline()
os.close(0)
print('{"jsonrpc":"2.0","id":1,"result":{}}')
print('hello')
"""
"""A server that answers one message, prints a line that isn't JSON, and exits."""


def test_tools_of_working_server_are_listed(tmp_path: Path) -> None:
    path = program(tmp_path, "server", SERVER + f"\nopen({str(tmp_path / 'ended')!r}, 'w').close()\n")
    assert list_tools([str(path)], os.environ) == ["plan"]
    assert (tmp_path / "ended").exists()


def test_it_is_started_without_a_daemon(tmp_path: Path) -> None:
    said = f"import os\nopen({str(tmp_path / 'said')!r}, 'w').write(os.environ['PUNCHLIST_AUTOSTART'])\n"
    list_tools([str(program(tmp_path, "server", said + SERVER))], os.environ)
    assert (tmp_path / "said").read_text() == "0"


@pytest.mark.parametrize(
    ("source", "told", "timeout_s"),
    [
        (SERVER.replace('[{"name": "plan"}]', "[]"), "it offers no tools", 20),
        (SERVER.replace('"result": result', '"error": {"message": "no"}'), "it returns the error no", 20),
        ("import sys; sys.exit(5)", "exits with code 5", 20),
        ("import sys\nfor line in sys.stdin: print('3')", "it does not respond in time", 0.2),
        (DEAF, "it prints 'hello' to standard output", 20),
    ],
)
def test_failing_server_is_reported_with_reason(tmp_path: Path, source: str, told: str, timeout_s: float) -> None:
    with pytest.raises(ServerError, match=told):
        list_tools([str(program(tmp_path, "server", source))], os.environ, timeout_s)


def test_hanging_server_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_STOP_S", 0.1)
    path = tmp_path / "server"
    path.write_text(f"#!/bin/sh\necho $$ > '{tmp_path / 'pid'}'\nexec sleep 60\n")
    path.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(ServerError, match="in time"):
        list_tools([str(path)], os.environ, 0.5)
    assert time.monotonic() - began < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)

import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.printing import exit_codes
from punchlist_apps.common import extras
from punchlist_testing.optional import require_package
from punchlist_testing.terminal import spawned, terminal


def test_an_unknown_dialect_is_a_usage_error(run: Any) -> None:
    outcome = run("agent", "mcp", "--dialect", "klingon")
    assert outcome.code == 2
    assert "available: native" in outcome.err


def test_an_unknown_tool_is_a_usage_error(run: Any) -> None:
    outcome = run("agent", "mcp", "--dialect", "todo", "--tools", "list_todo_tasks,add_task")
    assert outcome.code == 2
    assert "'add_task' in todo: it is a tool of queue and todo-v1" in outcome.err


@pytest.mark.parametrize("module", ["mcp", "uvicorn"])
def test_missing_extra_is_reported_with_command(run: Any, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    outcome = run("agent", "mcp", "--own")
    assert outcome.code == 78
    assert outcome.err == f"error: {extras.MISSING}\n  {extras.build_install_command()}\n"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("words", "code"), [((), exit_codes.INTERRUPTED), (("--own",), -signal.SIGINT)])
def test_interrupt_ends_server_with_open_input(words: tuple[str, ...], code: int) -> None:
    require_package("mcp")
    with terminal("agent", "mcp", *words) as screen:
        screen.type('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        screen.wait_for('"result"')
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(10) == code


def test_an_unusable_token_is_reported(home: Path) -> None:
    require_package("mcp")
    token = home / "token"
    token.touch(0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with spawned("agent", "mcp", "--http", "--port", port, "--token-file", str(token)) as server:
        assert server.stderr is not None
        assert server.stderr.readline() == (
            f"punch: all clients are rejected: other users may read or write {token}; chmod 600 {token}\n"
        )


def test_port_in_use_is_reported_with_advice(run: Any) -> None:
    require_package("mcp")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("agent", "mcp", "--http", "--port", str(port))
    assert outcome.code == 1
    assert f"error: port {port}: in use by another program; use another with --port\n" in outcome.err

import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist_apps.common import extras
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import terminal


def test_missing_extra_is_reported_with_command(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    outcome = run("ui")
    assert outcome.code == 78
    assert outcome.err == f"error: {extras.UI_MISSING}\n  {extras.build_install_command('ui')}\n"


def test_missing_terminal_is_reported_with_advice(run: Any) -> None:
    outcome = run("ui")
    assert outcome.code == 2
    assert "to see a list anywhere: punch watch" in outcome.err


@pytest.mark.usefixtures("home")
def test_dumb_terminal_is_rejected() -> None:
    with terminal("ui", env={"TERM": "dumb"}) as screen:
        screen.wait_for("to see a list anywhere: punch watch")
        assert screen.finish() == 2


def test_screen_is_drawn_and_q_quits(home: Path, daemon: Running) -> None:
    (home / "keys.toml").write_text('quit = "Q"\n')
    client: Client
    with connect(name="tester") as client:
        client.conversation("plan").add("Read \x1b]0;title\x07")
    with terminal("ui", "-c", "plan", "--keys", "keys.toml", columns=100) as screen:
        screen.wait_for("Read")
        assert "\\x1b]0;title\\x07" in screen.wait_for("\\x07")
        screen.type("Q")
        assert screen.finish() == 0


@pytest.mark.usefixtures("daemon")
def test_invalid_key_file_is_rejected_with_reason(home: Path) -> None:
    (home / "keys.toml").write_text('strat = "S"\n')
    with terminal("ui", "--keys", "keys.toml") as screen:
        screen.wait_for("unknown action 'strat'; did you mean start?")
        assert screen.finish() == 2

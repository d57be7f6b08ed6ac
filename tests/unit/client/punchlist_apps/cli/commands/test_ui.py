import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist_apps.common import extras
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import terminal


def test_without_the_extra_it_says_what_to_install(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    told = run("ui")
    assert told.code == 78
    assert told.err == f"error: {extras.UI_MISSING}\n  {extras.build_install_command('ui')}\n"


def test_without_a_terminal_it_names_the_command_that_needs_none(run: Any) -> None:
    told = run("ui")
    assert told.code == 2
    assert "punch watch shows a list anywhere" in told.err


@pytest.mark.usefixtures("home")
def test_a_dumb_terminal_is_refused() -> None:
    with terminal("ui", env={"TERM": "dumb"}) as shown:
        shown.wait_for("punch watch shows a list anywhere")
        assert shown.finish() == 2


def test_it_is_drawn_on_a_terminal_and_ends_with_q(home: Path, daemon: Running) -> None:
    (home / "keys.toml").write_text('quit = "Q"\n')
    client: Client
    with connect(name="tester") as client:
        client.conversation("plan").add("Read \x1b]0;title\x07")
    with terminal("ui", "-c", "plan", "--keys", "keys.toml", columns=100) as shown:
        shown.wait_for("Read")
        assert "\\x1b]0;title\\x07" in shown.wait_for("\\x07")
        shown.type("Q")
        assert shown.finish() == 0


@pytest.mark.usefixtures("daemon")
def test_a_file_of_keys_that_can_not_be_used_is_refused_with_the_reason(home: Path) -> None:
    (home / "keys.toml").write_text('strat = "S"\n')
    with terminal("ui", "--keys", "keys.toml") as shown:
        shown.wait_for("there is no action 'strat'; did you mean start?")
        assert shown.finish() == 2

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist.cli import extra
from punchlist.hosts.catalog import HOSTS


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (home / "project").mkdir()
    monkeypatch.chdir(home / "project")


def tree(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", [host.name for host in HOSTS])
def test_setting_up_and_removing_leaves_everything_as_it_was(run: Any, home: Path, host: str, scope: str) -> None:
    before = tree(home)
    done = run("setup", host, "--scope", scope)
    assert done.code == 0
    assert f"take it back: punch setup {host} --scope {scope} --remove" in done.out
    after = tree(home)
    assert len(after) > len(before)
    assert run("setup", host, "--scope", scope).lines[-1].endswith("nothing to change")
    assert tree(home) == after
    assert run("setup", host, "--scope", scope, "--remove").code == 0
    assert tree(home) == before
    assert {path.name for path in home.iterdir()} <= {"project", "data"}


@pytest.mark.parametrize("installed", [True, False])
def test_it_warns_where_the_server_that_it_configures_could_not_run(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    for module in ("mcp", "mcp_types", "uvicorn"):
        if installed:
            (tmp_path / "modules" / module).mkdir(parents=True)
        else:
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "modules"), *sys.path])
    warning = "" if installed else f"warning: {extra.MISSING}: {extra.INSTALL}\n"
    assert run("setup", "codex", "--print").err == warning
    assert run("setup", "codex").err == warning
    assert run("setup", "codex", "--remove").err == ""


def test_print_changes_nothing(run: Any, home: Path) -> None:
    before = tree(home)
    shown = run("setup", "codex", "--print", "-c", "website")
    assert '+args = ["mcp", "--dialect", "native", "--conversation", "website"]' in shown.lines
    assert tree(home) == before


def test_nothing_is_written_when_one_of_the_files_is_broken(run: Any, home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{\n  "hooks": {,\n}')
    before = tree(home)
    refused = run("setup", "claude-code")
    assert refused.code == 1
    assert "settings.json:2: expected a name" in refused.err
    assert tree(home) == before


def test_a_shared_file_names_the_command_and_not_its_place(run: Any, home: Path) -> None:
    run("setup", "claude-code", "--scope", "project")
    assert json.loads((home / "project" / ".mcp.json").read_text())["mcpServers"]["punchlist"]["command"] == "punch"


def test_programs_are_told_what_changed(run: Any, home: Path) -> None:
    told = run("setup", "cursor", "--json").json
    assert told == {"host": "cursor", "files": [f"{home}/.cursor/mcp.json"], "changed": [f"{home}/.cursor/mcp.json"]}

import json
import os
from pathlib import Path

import pytest

from punchlist_apps.hosts.catalog import HOSTS, Host, Place, get_host
from punchlist_apps.hosts.configure import Configurator
from punchlist_apps.hosts.health import ConfiguredCommand, check_command, find_commands
from punchlist_testing.played import SERVER, program


def found(home: Path) -> list[ConfiguredCommand]:
    return list(find_commands({"HOME": str(home), "PATH": os.environ["PATH"]}, str(home / "project")))


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_commands_of_a_setup_work(tmp_path: Path, host: Host) -> None:
    (tmp_path / "project").mkdir()
    punch = str(program(tmp_path / "a b", "punch", SERVER))
    for scope in ("user", "project") if host.project else ("user",):
        place = Place(scope, str(tmp_path / "project"), {"HOME": str(tmp_path)}, punch, "website")
        Configurator(str(tmp_path / "data")).edit(host.list_edits(place))
    ours = found(tmp_path)
    assert {one.host for one in ours} == {host.name}
    assert {one.scope for one in ours} == ({"user", "project"} if host.project else {"user"})
    assert [check_command(one, os.environ) for one in ours] == [("", "")] * len(ours)


def test_missing_command_and_unquoted_hook_are_reported(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    punch = program(tmp_path, "punch", SERVER)
    hook = {"hooks": [{"type": "command", "command": f"{punch} prime --hook -c $(touch PWN)"}]}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"Stop": [hook], "SessionStart": [hook]}}))
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"punchlist": {"command": "/gone/punch"}}}')
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{,")
    place = Place("user", "/p", {"HOME": str(tmp_path)}, "/gone/punch")
    Configurator(str(tmp_path / "data")).edit(get_host("opencode").list_edits(place)[1:])
    told = {one.host: check_command(one, os.environ)[0] for one in found(tmp_path)}
    assert told["claude-code"].startswith("not quoted for the shell: ")
    assert told["cursor"].startswith("/gone/punch: no such program")
    assert "settings.json" in told["gemini"]
    assert told["opencode"].startswith("/gone/punch: no such program")
    assert not (tmp_path / "PWN").exists()

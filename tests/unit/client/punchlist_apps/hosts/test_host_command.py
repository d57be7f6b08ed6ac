import os
from pathlib import Path

import pytest

from punchlist_apps.hosts.catalog import HOSTS, Host, Place, get_host
from punchlist_apps.hosts.host_command import HostCommand
from punchlist_testing.played import program


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("user", "/p", {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}, "/a b/punch", "website")


NAMED = [host for host in HOSTS if host.command]


@pytest.mark.parametrize("host", NAMED, ids=lambda host: host.name)
def test_own_command_gets_each_word_as_argument(tmp_path: Path, place: Place, host: Host) -> None:
    assert host.command is not None
    said = "import os, sys; open(os.environ['HOME'] + '/said', 'a').write(repr(sys.argv[1:]) + '\\n')"
    program(tmp_path / "bin", host.command.program, said)
    own = HostCommand(host, place)
    assert own.can_change(None, remove=False)
    assert own.run(is_present=True, remove=False) == ""
    *removed, added = (tmp_path / "said").read_text().splitlines()
    assert "/a b/punch" in added
    assert "website" in added
    assert removed == ([repr(list(host.command.remove))] if host.command.remove else [])
    assert host.command.program in own.format(remove=False)


def test_command_is_used_only_if_safe(tmp_path: Path, place: Place) -> None:
    assert not HostCommand(get_host("claude-code"), place).can_change(None, remove=False)
    assert not HostCommand(get_host("cursor"), place).can_change(None, remove=False)
    for name in ("claude", "codex", "code"):
        program(tmp_path / "bin", name, "")
    assert HostCommand(get_host("claude-code"), place).can_change(b"{}", remove=True)
    assert not HostCommand(get_host("claude-code"), place._replace(scope="project")).can_change(b"", remove=False)
    assert HostCommand(get_host("codex"), place).can_change(b"a = 1\n", remove=False)
    assert not HostCommand(get_host("codex"), place).can_change(b"a = 1 # mine\n", remove=False)
    assert not HostCommand(get_host("vscode"), place).can_change(None, remove=True)


def test_error_of_own_command_is_reported(tmp_path: Path, place: Place) -> None:
    own = HostCommand(get_host("codex"), place)
    assert own.run(is_present=False, remove=False).startswith("codex mcp add: ")
    program(tmp_path / "bin", "codex", "import sys; sys.exit('one\\ntwo')")
    assert own.run(is_present=False, remove=False) == "codex mcp add: two"
    program(tmp_path / "bin", "codex", "import sys; sys.exit(3)")
    assert own.run(is_present=True, remove=True) == "codex mcp remove: exit code 3"


def test_it_runs_in_the_home_directory(tmp_path: Path, place: Place) -> None:
    program(tmp_path / "bin", "codex", "import os; open('here', 'w').write(os.getcwd())")
    assert HostCommand(get_host("codex"), place).run(is_present=False, remove=False) == ""
    assert (tmp_path / "here").read_text() == os.path.realpath(tmp_path)

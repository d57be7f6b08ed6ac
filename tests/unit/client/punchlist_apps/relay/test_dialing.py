import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_apps import relay
from punchlist_apps.relay.dialing import Dialing, find_option
from punchlist_testing.terminal import environment

HEAVY = "argparse asyncio enum json msgspec re socket subprocess threading typing"
SHOW = f"""
import sys
from punchlist_apps.relay import dialing
import punchlist_apps.cli, punchlist.base.host_variables
print([name for name in {HEAVY.split()!r} if name in sys.modules])
"""


def test_relay_loads_nothing_heavy() -> None:
    # -S: the site packages of a development environment load modules of their own.
    shown = subprocess.run(
        [sys.executable, "-S", "-c", SHOW], env=environment(), capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["agent", "mcp"], None),
        (["agent", "mcp", "--socket", "/a"], "/a"),
        (["agent", "mcp", "--socket=/a", "--socket", "/b"], "/b"),
        (["agent", "mcp", "--socket"], None),
    ],
)
def test_option_is_found_without_parser(words: list[str], value: str | None) -> None:
    assert find_option(words, "--socket") == value


def test_each_data_directory_has_its_own_worker(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    paths = {Dialing(words, env).path for words in ([], ["--data-dir", "/a"], ["--data-dir=/b"])}
    assert len(paths) == 3
    assert all(path.startswith(f"{tmp_path}/run/punchlist/mcp-") for path in paths)


@pytest.mark.parametrize(
    ("words", "relayed"),
    [
        (["agent", "mcp"], True),
        (["mcp", "--dialect", "claude"], True),
        (["agent", "mcp", "--own"], False),
        (["agent", "mcp", "--http"], False),
        (["agent", "mcp", "--help"], False),
        (["add", "agent", "mcp"], False),
        (["agent", "tools"], False),
    ],
)
def test_only_sessions_of_hosts_are_relayed(words: list[str], relayed: bool) -> None:
    assert relay.is_relayed(words) == relayed


def test_variable_turns_the_relay_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_MCP", "own")
    assert not relay.is_relayed(["agent", "mcp"])

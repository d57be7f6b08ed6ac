import os
import pwd
from pathlib import Path

import pytest

from punchlist_schemas import rendezvous

EVERYTHING = {
    "PUNCHLIST_SOCKET": "/env/socket",
    "PUNCHLIST_DATA_DIR": "/env/data",
    "XDG_RUNTIME_DIR": "/run/xdg",
    "XDG_DATA_HOME": "/xdg/data",
    "HOME": "/home/me",
}


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in EVERYTHING.items() if name not in names}


def test_first_set_data_directory_is_used() -> None:
    assert rendezvous.data_dir(EVERYTHING, "/option") == "/option"
    assert rendezvous.data_dir(EVERYTHING) == "/env/data"
    assert rendezvous.data_dir(without("PUNCHLIST_DATA_DIR")) == "/xdg/data/punchlist"
    assert rendezvous.data_dir({"HOME": "/home/me"}) == "/home/me/.local/share/punchlist"
    assert rendezvous.data_dir({}) == os.path.expanduser("~") + "/.local/share/punchlist"


def test_first_set_socket_is_used() -> None:
    assert rendezvous.socket_path(EVERYTHING, "/option") == "/option"
    assert rendezvous.socket_path(EVERYTHING) == "/env/socket"
    assert rendezvous.socket_path(without("PUNCHLIST_SOCKET")) == "/run/xdg/punchlist/daemon.sock"


def test_own_runtime_directory_is_used_if_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    owner = os.getuid()

    def stat(path: str) -> os.stat_result:
        asked.append(path)
        if owner is None:
            raise FileNotFoundError(path)
        return os.stat_result((0o40700, 1, 1, 1, owner, 0, 0, 0, 0, 0))

    monkeypatch.setattr(rendezvous.os, "stat", stat)
    ours = f"/run/user/{os.getuid()}"
    env = without("PUNCHLIST_SOCKET", "XDG_RUNTIME_DIR")
    assert rendezvous.socket_path(env) == f"{ours}/punchlist/daemon.sock"
    assert asked == [ours]
    owner += 1
    assert rendezvous.socket_path(env) == "/env/data/run/daemon.sock"
    owner = None
    assert rendezvous.socket_path(env) == "/env/data/run/daemon.sock"
    assert rendezvous.socket_path(env, data_dir_option="/option") == "/option/run/daemon.sock"


def test_empty_and_relative_environment_directories_are_ignored() -> None:
    empty = dict.fromkeys(EVERYTHING, "") | {"HOME": "/home/me"}
    assert rendezvous.data_dir(empty) == "/home/me/.local/share/punchlist"
    assert rendezvous.data_dir({"XDG_DATA_HOME": "data", "HOME": "/home/me"}) == "/home/me/.local/share/punchlist"
    assert not rendezvous.socket_path({"XDG_RUNTIME_DIR": "run", "HOME": "/home/me"}).startswith("run")


def test_a_chosen_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rendezvous.socket_path({}, "a/../socket") == f"{tmp_path}/socket"
    assert rendezvous.data_dir({"PUNCHLIST_DATA_DIR": "data"}) == f"{tmp_path}/data"


def test_status_file_is_next_to_the_socket() -> None:
    assert rendezvous.status_path("/run/xdg/punchlist/daemon.sock") == "/run/xdg/punchlist/status"


def test_empty_home_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    mine = pwd.getpwuid(os.getuid()).pw_dir
    assert rendezvous.home({"HOME": ""}) == rendezvous.home({}) == mine
    assert rendezvous.data_dir({"HOME": ""}) == f"{mine.rstrip('/')}/.local/share/punchlist"

    def unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert rendezvous.data_dir({}) == rendezvous.data_dir({"HOME": "/"}) == "/.local/share/punchlist"

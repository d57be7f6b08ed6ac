from pathlib import Path

import pytest

from punchlistd.settings import resolve


def test_options_override_environment_and_defaults(tmp_path: Path) -> None:
    env = {"HOME": "/home/ann", "XDG_RUNTIME_DIR": "/run/user/7", "PUNCHLIST_DATA_DIR": "/data"}
    assert resolve(env, "/s", "/d").socket == "/s"
    assert resolve(env, "/s", "/d").data_dir == "/d"
    assert resolve(env).data_dir == "/data"
    assert resolve(env).socket == "/run/user/7/punchlist/daemon.sock"
    assert resolve({"HOME": "/home/ann"}).data_dir == "/home/ann/.local/share/punchlist"


@pytest.mark.parametrize("runtime", [None, "", "relative/dir"])
def test_socket_is_never_in_a_shared_directory(runtime: str | None) -> None:
    env = {"HOME": "/home/ann"} | ({} if runtime is None else {"XDG_RUNTIME_DIR": runtime})
    assert resolve(env).socket.startswith(("/run/user/", "/home/ann/.local/share/punchlist/run/"))


def test_log_and_lock_are_in_the_data_directory() -> None:
    settings = resolve({}, "/s", "/d")
    assert (settings.log_path, settings.lock_path) == ("/d/log.db", "/d/lock")

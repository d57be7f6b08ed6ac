from pathlib import Path

import pytest

from punchlist_apps.cli.installing import shipped, systemd_units
from punchlist_apps.cli.installing.systemd_units import (
    HARDENING,
    SERVICE,
    SOCKET,
    Places,
    UnitError,
    find_program_paths,
    quote,
    read_shipped_unit,
    render_units,
)
from punchlist_apps.cli.printing.failure import NotShipped

PLACES = Places("/run/user/7/punchlist/daemon.sock", "/home/ann/.local/share/punchlist", "/run/user/7", "/opt/python")


def read_setting(text: str, name: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"{name}=")]
    return line.partition("=")[2]


def test_only_paths_differ_from_the_shipped_units() -> None:
    units = render_units(PLACES, hardened=True)
    assert set(units) == {SOCKET, SERVICE, HARDENING}
    for name, text in units.items():
        changed = set(text.splitlines()) ^ set(read_shipped_unit(name).splitlines())
        assert {line.partition("=")[0] for line in changed} <= {"ExecStart", "BindPaths", "BindReadOnlyPaths"}


def test_the_paths_are_those_of_the_user() -> None:
    units = render_units(PLACES._replace(programs=("/opt", "/opt", "/src")), hardened=True)
    assert read_setting(units[SOCKET], "ListenStream") == "%t/punchlist/daemon.sock"
    command = "/opt/python -P -m punchlistd --data-dir /home/ann/.local/share/punchlist"
    assert read_setting(units[SERVICE], "ExecStart") == command
    needed = "%t/punchlist %t/systemd/notify /home/ann/.local/share/punchlist"
    assert read_setting(units[HARDENING], "BindPaths") == needed
    assert read_setting(units[HARDENING], "BindReadOnlyPaths") == "/opt /src"


@pytest.mark.parametrize("runtime_dir", ["", "/run/user/70", "/run/user/7/punchlist/daemon.sock"])
def test_a_socket_outside_the_runtime_directory_is_absolute(runtime_dir: str) -> None:
    units = render_units(PLACES._replace(runtime_dir=runtime_dir))
    assert read_setting(units[SOCKET], "ListenStream") == PLACES.socket


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("/a/b-c_d.e", "/a/b-c_d.e"),
        ("a b", '"a b"'),
        ("100%", "100%%"),
        ('"', '"\\""'),
        ("a\\b", '"a\\\\b"'),
        ("", '""'),
    ],
)
def test_words_are_quoted_for_systemd(word: str, text: str) -> None:
    assert quote(word) == text


def test_dollars_in_commands_are_escaped() -> None:
    units = render_units(PLACES._replace(data_dir="/home/$ann"))
    assert read_setting(units[SERVICE], "ExecStart").endswith('"/home/$$ann"')


@pytest.mark.parametrize(
    "places",
    [
        PLACES._replace(data_dir="/a\nExecStartPre=/bin/rm"),
        PLACES._replace(socket="/a\n[Service]"),
        PLACES._replace(data_dir="/a:b"),
        PLACES._replace(socket="/a b/s"),
        PLACES._replace(python='/a"b/python'),
        PLACES._replace(python="/a\\b/python"),
    ],
)
def test_unusable_paths_are_rejected(places: Places) -> None:
    with pytest.raises(UnitError):
        render_units(places, hardened=True)


def test_missing_units_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path)
    with pytest.raises(NotShipped, match="not part of this installation"):
        read_shipped_unit("missing.service")


def test_an_incomplete_shipped_unit_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path)
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd" / SOCKET).write_text("[Socket]\n")
    with pytest.raises(UnitError, match="0 lines ListenStream="):
        render_units(PLACES)


def test_the_program_is_where_this_module_is() -> None:
    assert any(systemd_units.__file__.startswith(path + "/") for path in find_program_paths())

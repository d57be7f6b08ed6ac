"""Configuration of spaces: the daemon's file, and variables for containers."""

import os
import stat
from pathlib import Path

import pytest

from punchlistd.replication.spaces import (
    FILE,
    BadAddress,
    SharedList,
    Space,
    Spaces,
    load,
    machine_name,
    normalize_address,
    save,
)
from punchlistd.settings import Misconfigured, resolve

TEAM = Space("team", ("tls://lists.example.org:4222",), creds="/home/ann/team.creds")


def test_saved_configuration_is_loaded_and_private(tmp_path: Path) -> None:
    kept = Spaces((TEAM,), (SharedList("release", "team", 7, "ab"),))
    old = os.umask(0)
    try:
        save(str(tmp_path), kept)
    finally:
        os.umask(old)
    assert load(str(tmp_path), {}) == kept
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [FILE]


def test_daemon_checks_the_files_path(tmp_path: Path) -> None:
    save(str(tmp_path), Spaces((TEAM,)))
    assert Path(resolve({}, data=str(tmp_path)).spaces_path).exists()


def test_without_file_and_variable_nothing_is_configured(tmp_path: Path) -> None:
    assert load(str(tmp_path), {}) == Spaces()


def test_variables_are_never_written_to_the_file(tmp_path: Path) -> None:
    save(str(tmp_path), Spaces((TEAM,), (SharedList("release", "team", 7, "ab"),)))
    env = {
        "PUNCHLIST_SPACE": "tls://a.example.org/team, tls://b.example.org:4333/team",
        "PUNCHLIST_SPACE_CREDS": "/run/secrets/team",
        "PUNCHLIST_SPACE_LISTS": "release,other",
    }
    loaded = load(str(tmp_path), env)
    (space,) = loaded.spaces
    assert space.urls == ("tls://a.example.org:4222", "tls://b.example.org:4333")
    assert (space.creds, space.source) == ("/run/secrets/team", "environment")
    assert loaded.lists == (SharedList("release", "team", 7, "ab"), SharedList("other", "team"))
    save(str(tmp_path), loaded)
    assert load(str(tmp_path), {}) == Spaces((), loaded.lists)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"PUNCHLIST_SPACE": "tls://a.example.org"}, "names no space: write tls://HOST/NAME"),
        ({"PUNCHLIST_SPACE": "tls://a.example.org/Team!"}, "names no space"),
        ({"PUNCHLIST_SPACE": "tls://a/one,tls://b/two"}, "must name one space"),
        ({"PUNCHLIST_SPACE": "nats://a.example.org/team"}, "unencrypted: write tls://a.example.org"),
        ({"PUNCHLIST_SPACE": "tls://a/team", "PUNCHLIST_SPACE_CREDS": "team.creds"}, "must be an absolute path"),
    ],
)
def test_error_names_the_invalid_variable(env: dict[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="PUNCHLIST_SPACE") as refused:
        load(str(tmp_path), env)
    assert told in str(refused.value)


@pytest.mark.parametrize("written", [b"{", b'{"spaces": [{"name": 3}]}', b"\xff"])
def test_damaged_file_is_rejected_unchanged(tmp_path: Path, written: bytes) -> None:
    (tmp_path / FILE).write_bytes(written)
    with pytest.raises(Misconfigured, match="is not a valid configuration"):
        load(str(tmp_path), {})
    assert (tmp_path / FILE).read_bytes() == written


def test_unreadable_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(Misconfigured, match="can't be read"):
        load(str(tmp_path), {})


def test_failed_save_leaves_only_the_old_file(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(OSError, match=FILE):
        save(str(tmp_path), Spaces((TEAM,)))
    assert os.listdir(tmp_path) == [FILE]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("tls://lists.example.org", "tls://lists.example.org:4222"),
        ("tls://lists.example.org:4333/", "tls://lists.example.org:4333"),
        ("tls://[2001:db8::1]:4222", "tls://[2001:db8::1]:4222"),
        ("nats://127.0.0.1", "nats://127.0.0.1:4222"),
        ("nats://localhost", "nats://localhost:4222"),
        ("nats://[::1]", "nats://[::1]:4222"),
    ],
)
def test_an_address_is_stored_with_its_port(given: str, stored: str) -> None:
    assert normalize_address(given) == stored


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("lists.example.org", "write tls://HOST"),
        ("https://lists.example.org", "write tls://HOST"),
        ("ws://lists.example.org", "write tls://HOST"),
        ("tls://", "names no host"),
        ("tls://[::1", "names no host"),
        ("tls://a b", "names no host"),
        ("tls://a:99999", "names no host"),
        ("tls://ann:secret@a.example.org", "--creds"),
        ("tls://a.example.org/x", "more than a host and a port"),
        ("nats://10.0.0.1", "unencrypted"),
        ("nats://127.0.0.1.example.org", "unencrypted"),
    ],
)
def test_invalid_or_unencrypted_address_is_rejected(given: str, told: str) -> None:
    with pytest.raises(BadAddress) as refused:
        normalize_address(given)
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"PUNCHLIST_MACHINE": "ann's laptop"}, "ann-s-laptop"),
        ({"PUNCHLIST_MACHINE": "x" * 50}, "x" * 32),
        ({"PUNCHLIST_MACHINE": "…"}, "machine"),
    ],
)
def test_machine_name_has_letters_digits_and_dashes(env: dict[str, str], name: str) -> None:
    assert machine_name(env) == name


def test_unnamed_machine_has_the_host_name() -> None:
    assert machine_name({})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("postgres://ann@db.example.org/punchlist", "postgres://ann@db.example.org:5432/punchlist"),
        ("postgresql://ann@db:6432/lists", "postgres://ann@db:6432/lists"),
        ("postgres://ann@[::1]/lists", "postgres://ann@[::1]:5432/lists"),
    ],
)
def test_postgresql_address_has_user_and_database(given: str, stored: str) -> None:
    assert normalize_address(given) == normalize_address(stored) == stored
    assert Space("team", (stored,)).engine == "postgres"
    assert TEAM.engine == "nats"


@pytest.mark.parametrize(
    "given",
    [
        "postgres://db.example.org/punchlist",
        "postgres://ann@db.example.org",
        "postgres://ann@db.example.org/a/b",
        "postgres://ann@db.example.org/punchlist?sslmode=disable",
        "postgres://ann@:5432/punchlist",
        "postgres://ann@db:none/punchlist",
        "postgres://an%20n@db/punchlist",
        "postgres://ann:s3cret@db.example.org/punchlist",
        "postgres://ann:s3cret@db.example.org",
    ],
)
def test_invalid_postgresql_address_is_rejected_without_password(given: str, tmp_path: Path) -> None:
    with pytest.raises(BadAddress) as refused:
        normalize_address(given)
    with pytest.raises(Misconfigured) as misconfigured:
        load(str(tmp_path), {"PUNCHLIST_SPACE": f"{given}/team"})
    assert "s3cret" not in f"{refused.value} {misconfigured.value}"

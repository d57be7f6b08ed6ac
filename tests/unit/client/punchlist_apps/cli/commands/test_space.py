"""`punch space`, `share`, `join` and `leave` with a real daemon and NATS server."""

import asyncio
import json
import stat
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from punchlist import ConfirmationRequired, connect
from punchlist_testing.daemon import Running
from punchlist_testing.nats_server import NatsServer, needs_server, running_server
from punchlist_testing.postgres_server import Members, needs_postgres, running_postgres
from punchlist_testing.shared_lists import PATIENCE_S, Machines
from punchlist_testing.terminal import run_half_terminal, terminal

Punch = Callable[..., Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    with running_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


def test_sharing_without_space_is_rejected(punch: Punch) -> None:
    assert "punch space add NAME tls://HOST --creds FILE" in punch("space", "list").out
    assert punch("space", "status", "--json").json == {"spaces": []}
    punch("add", "one")
    outcome = punch("share")
    assert outcome.code != 0 and "no spaces; add one" in outcome.err
    assert punch("space", "remove", "team").code == 1
    assert punch("space", "status", "team").code == 1


@needs_server
def test_list_is_shared_left_and_copied(punch: Punch, server: NatsServer) -> None:
    added = punch("space", "add", "cli", server.url)
    assert added.code == 0
    assert f"added cli: created at {server.url} (NATS 2." in added.out and "--monitor URL" in added.out
    punch("add", "one", "-c", "release")
    shared = punch("share", "release")
    assert "shared release in cli, version 2" in shared.out and "punch join release --space cli" in shared.out
    assert "release  version 2, current" in punch("space", "list").out
    status = punch("space", "status", "cli").out
    assert f"servers       {server.url}" in status and "not checked   sync_interval" in status
    assert punch("space", "status", "cli", "--json").json["spaces"][0]["state"] == "up"
    assert "this machine follows it. First: punch leave release" in punch("space", "remove", "cli").err
    outcome = punch("leave", "release")
    assert outcome.code != 0 and "becomes read-only" in outcome.err and "--keep-as NAME" in outcome.err
    assert "its tasks are in mine" in punch("leave", "release", "--keep-as", "mine").out
    assert "one" in punch("list", "-c", "mine").out
    assert "cli: no longer followed here, changes are refused" in punch("list", "-c", "release").out
    assert "punch join release --space cli" in punch("add", "two", "-c", "release").err
    assert "joined release of cli" in punch("join", "release").out
    assert punch("join", "nothing", "--space", "cli").code == 1
    assert "to erase the copy on this machine, too: punch list rm release" in punch("leave", "release", "--yes").out
    erased = punch("list", "rm", "release", "--yes").lines
    assert erased == ["erased release on this machine only; cli and other machines keep it"]
    assert "release" not in punch("list", "all").out + punch("space", "list").out
    assert "joined release of cli" in punch("join", "release").out
    punch("leave", "release", "--yes")
    gone = punch("space", "remove", "cli")
    assert (
        "removed cli" in gone.out and "release, which was left before, is now a list of this machine only" in gone.out
    )
    assert punch("add", "two", "-c", "release").code == 0


async def post(server: NatsServer, body: bytes, *, in_order: bool) -> str:
    """Post to the list `plan` without a daemon; `in_order` adds the header that daemons send. Return the position."""
    nats = Client()
    await nats.connect(server.url)
    subject = "pl.mended.log.plan"
    asked = json.dumps({"last_by_subj": subject}).encode()
    last = (await nats.request("$JS.API.DIRECT.GET.punch-mended", asked)).headers or {}
    headers = {"Nats-Expected-Last-Subject-Sequence": last["Nats-Sequence"]} if in_order else None
    stored = json.loads((await nats.request(subject, body, headers=headers)).data)
    await nats.close()
    return str(stored["seq"])


@needs_server
def test_keeper_removes_invalid_posts(punch: Punch, server: NatsServer) -> None:
    punch("space", "add", "mended", server.url)
    punch("add", "one", "-c", "plan")
    punch("share", "plan", "--space", "mended")
    sound = punch("space", "repair", "mended", "plan")
    assert sound.code == 0 and "every post of plan in mended can be applied" in sound.out
    position = asyncio.run(post(server, b"x", in_order=False))
    with terminal("watch", "-c", "plan") as screen:
        screen.wait_for("diverged")
    refused = punch("add", "two", "-c", "plan")
    assert refused.code == 1
    doctor = punch("doctor").out
    for message in (refused.err, doctor):
        assert f"The post at position {position} of plan" in message and "punch space repair mended plan" in message
    asked = punch("space", "repair", "mended", "plan")
    assert (
        asked.code != 0
        and f"position {position} of plan" in asked.out
        and "(stored 20" in asked.out
        and "--yes" in asked.err
    )
    for words in (("space", "repair", "mended", "plan"), ("leave", "plan"), ("list", "clear", "-c", "plan")):
        assert "add --yes" in run_half_terminal(*words, shows=True).stderr
    for answer, code in (("n", 1), ("y", 0)):
        with terminal("space", "repair", "mended", "plan") as question:
            question.wait_for("Permanently remove 1 of these posts from mended? [y/N]")
            question.type(f"{answer}\n")
            question.wait_for("nothing was changed" if code else "removed 1 of the posts")
            assert question.finish() == code
    asyncio.run(post(server, b"x", in_order=False))
    mended = punch("space", "repair", "mended", "plan", "--yes")
    assert mended.code == 0 and "removed 1 of the posts of plan from mended" in mended.out
    assert punch("add", "two", "-c", "plan").code == 0
    later: dict[str, object] = {
        "form": 99,
        "level": 1,
        "by": "eve_1",
        "nonce": "n",
        "version": 4,
        "check": "",
        "groups": [],
    }
    position = asyncio.run(post(server, json.dumps(later).encode(), in_order=True))
    kept = punch("space", "repair", "mended", "plan", "--yes")
    assert (
        f"--from {position}" in kept.out
        and len(punch("space", "repair", "mended", "plan", "--json").json["posts"]) == 1
    )
    assert "removed 1" in punch("space", "repair", "mended", "plan", "--from", position, "--yes").out
    assert punch("add", "three", "-c", "plan").code == 0


@needs_server
def test_unusable_address_is_reported_with_advice(punch: Punch) -> None:
    for words, message in (
        (("team", "nats://192.0.2.1"), "write tls://192.0.2.1"),
        (("team", "nats://127.0.0.1:1"), "No server answers at nats://127.0.0.1:1"),
        (("team", "nats://127.0.0.1:1", "--creds", "missing.creds"), "missing.creds can't be read"),
        (("team", "tls://127.0.0.1:1", "--ca", __file__), "has no certificates"),
    ):
        outcome = punch("space", "add", *words)
        assert outcome.code == 1 and message in outcome.err and "Errno" not in outcome.err


def test_server_files_are_private(run: Punch, home: Path) -> None:
    words = ("space", "server", "team", "--host", "lists.example.org", "--member", "ann", "--reader", "ci")
    written = run(*words, "--to", "here")
    assert written.code == 0
    names = {"nats.conf", "ann.creds", "ci.creds"}
    assert {path.name for path in (home / "here").iterdir()} == names
    assert all(stat.S_IMODE((home / "here" / name).stat().st_mode) == 0o600 for name in names)
    assert "sync_interval: always" in (home / "here" / "nats.conf").read_text()
    assert "punch space add team tls://lists.example.org --creds ann.creds" in written.out


def test_three_servers_are_configured_and_two_rejected(run: Punch, home: Path) -> None:
    hosts = [word for name in "abc" for word in ("--host", f"{name}.example.org")]
    assert run("space", "server", "team", *hosts, "--member", "ann").code == 0
    assert (home / "team-server" / "nats-3.conf").exists()
    assert "one --host, or three" in run("space", "server", "two", *hosts[:4], "--member", "ann").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--host lists.example.org"),
        (("--host", "a"), "--member ann"),
        (("--host", "a", "--member", "../ann"), "--member ann"),
        (("--host", "a", "--member", "ann", "--reader", "ann"), "--member ann"),
    ],
)
def test_missing_server_options_are_reported(run: Punch, words: tuple[str, ...], message: str) -> None:
    outcome = run("space", "server", "team", *words)
    assert outcome.code != 0 and message in outcome.err


@needs_server
def test_watch_shows_list_leaving_space(punch: Punch, server: NatsServer) -> None:
    assert punch("space", "add", "seen", server.url).code == 0
    punch("add", "one", "-c", "watched")
    assert punch("share", "watched", "--space", "seen").code == 0
    with terminal("watch", "-c", "watched") as one, terminal("watch", "--all-conversations") as every:
        one.wait_for("one")
        every.wait_for("watched")
        punch("leave", "watched", "--keep-as", "mine")
        one.wait_for("seen: no longer followed here")
        every.wait_for("seen: no longer")  # the terminal cuts the line at its width
    assert "seen: no longer followed here, changes are refused" in punch("list", "all").out


def test_sql_and_creds_are_private(punch: Punch, tmp_path: Path) -> None:
    place = tmp_path / "out"
    words = ("space", "server", "team", "--postgres", "punchlist", "--host", "db.example.org", "--to", str(place))
    outcome = punch(*words, "--member", "ann", "--reader", "bob")
    assert "punch space add team postgres://ann@db.example.org/punchlist --creds ann.creds" in outcome.out
    assert {path.name for path in place.iterdir()} == {"ann.creds", "bob.creds", "postgres.sql"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()} == {0o600}
    assert "--postgres" in punch(*words[:3], "--postgres", "a b", "--host", "db", "--member", "ann").err


@needs_postgres
def test_postgresql_space_is_added_and_shown(punch: Punch, tmp_path: Path) -> None:
    with running_postgres() as server:
        members = Members(tmp_path / "creds", server, "team", ann="member")
        url = members.url("ann")
        added = punch("space", "add", "team", url, "--creds", members.creds("ann"))
        assert f"added team: found at {url} (PostgreSQL " in added.out and "this machine only" in added.out
        assert "not checked" not in added.out
        punch("add", "one", "-c", "release")
        assert "shared release in team, version 2" in punch("share", "release").out
        assert f"team  up at {url}" in punch("space", "list").out
        status = punch("space", "status", "team").out
        assert "version       PostgreSQL " in status and "not checked" not in status
        assert f"{url}, PostgreSQL " in punch("doctor").out
        secret = url.replace("@", ":s3cret@")
        outcome = punch("space", "add", "other", secret)
        assert outcome.code != 0 and "password in a file" in outcome.err and "s3cret" not in outcome.err


@needs_server
def test_erasing_shared_list_needs_its_name(punch: Punch, daemon: Running, server: NatsServer, tmp_path: Path) -> None:
    with Machines(tmp_path).ending() as machines:
        laptop = machines.start("laptop")
        other = ("--socket", laptop.socket, "--data-dir", str(laptop.data_dir))
        for where in ((), other):
            assert punch("space", "add", "ours", server.url, *where).code == 0
        punch("add", "one", "-c", "gone")
        punch("share", "gone", "--space", "ours")
        punch("join", "gone", "--space", "ours", *other)
        seen = until(
            lambda: punch("space", "status", "ours"), lambda outcome: "machine laptop: last seen" in outcome.out
        )
        assert "● machine laptop  last seen " in punch("who").out
        assert ", with gone" in seen.out
        for words in ((), ("--yes",), ("--everywhere", "one")):
            refused = punch("list", "rm", "gone", *words)
            assert refused.code == 2
        assert "--everywhere one is not the list" in refused.err
        warned = punch("list", "rm", "gone", "--yes").err
        assert "on every machine of the space ours: in the last 24 hours 1 other followed it (laptop)" in warned
        assert "add --everywhere gone" in warned
        for answer, code in (("y", 1), ("gone", 0)):
            with terminal("--socket", daemon.socket, "list", "rm", "gone", "--actor", "bob") as screen:
                screen.wait_for("type the list's name:")
                screen.type(f"{answer}\n")
                assert screen.finish() == code
        outcome = until(lambda: punch("list", "-c", "gone", *other), lambda outcome: "no tasks" in outcome.out)
        assert "gone  0/0  deleted by bob on" in outcome.out
        assert "list gone: version 3, deleted by bob on" in punch("space", "status", *other).out
        assert "this started it again" in punch("add", "two", "-c", "gone", *other).err
        until(lambda: punch("list", "-c", "gone"), lambda outcome: "two" in outcome.out)
        done = punch("list", "rm", "gone", "--everywhere", "gone")
        assert "erased gone on all machines of ours" in done.out


@needs_server
def test_confirming_erasure_of_shared_list_needs_name(punch: Punch, daemon: Running, server: NatsServer) -> None:
    assert punch("space", "add", "asked", server.url).code == 0
    punch("add", "one", "-c", "plan")
    punch("share", "plan", "--space", "asked")
    with connect(socket=daemon.socket, autostart=False) as client, pytest.raises(ConfirmationRequired) as asked:
        client.conversation("plan").erase()
    assert (asked.value.space, "no other machine followed it" in asked.value.summary) == ("asked", True)
    outcome = punch("confirm", asked.value.token, "--yes")
    assert outcome.code == 2 and "on every machine of the space asked" in outcome.err
    assert punch("confirm", asked.value.token, "--everywhere", "plan").code == 0


def until(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Repeat a command until its outcome satisfies a condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds(result := ask()):
        assert time.monotonic() < deadline, result
    return result

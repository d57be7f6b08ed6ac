"""The shared log on real PostgreSQL servers: behavior of this adapter, and errors of spaces."""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.authority import Authority, needs_openssl
from punchlist_testing.hearing import PATIENCE_S, Hearing, heard
from punchlist_testing.nats_server import own_address
from punchlist_testing.postgres_server import DATABASE, Members, PostgresServer, needs_postgres, running_postgres
from punchlistd.replication.adapters.postgres import link as postgres_link
from punchlistd.replication.adapters.postgres.check import prepare
from punchlistd.replication.adapters.postgres.link import Address, read_password
from punchlistd.replication.adapters.postgres.log import MAX_POST, PostgresLog
from punchlistd.replication.adapters.postgres.refusals import Refused
from punchlistd.replication.port import Beat, Forbidden, OutcomeUnknown, Unreachable
from punchlistd.replication.posts import posting
from punchlistd.replication.spaces import Space

pytestmark = needs_postgres
ROLES = {"ann": "member", "bob": "reader", "kim": "keeper"}


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running_postgres() as running:
        yield running


@pytest.fixture
def members(server: PostgresServer, tmp_path: Path) -> Members:
    """The members of a new space."""
    return Members(tmp_path / "creds", server, f"s{os.urandom(4).hex()}", **ROLES)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use long timeouts for busy machines, and reconnect without a pause."""
    monkeypatch.setattr("punchlistd.replication.adapters.postgres.link.REQUEST_S", PATIENCE_S)
    monkeypatch.setattr("punchlistd.replication.adapters.postgres.link.CONNECT_S", PATIENCE_S)
    monkeypatch.setattr("punchlistd.replication.adapters.link_keeper.MIN_PAUSE_S", 0.02)
    monkeypatch.setattr("punchlistd.replication.adapters.link_keeper.HURRY_PAUSE_S", 0.02)
    monkeypatch.setattr("punchlistd.replication.posts.posting.PAUSE_S", 0.01)


LOST_S = 0.5
"""Timeout for requests that the server can't answer, in seconds."""


def space_of(members: Members, name: str = "ann", **more: Any) -> Space:
    given: dict[str, Any] = {"creds": members.creds(name), "replicas": 0, **more}
    return Space(members.space, (members.url(name),), **given)


@asynccontextmanager
async def connected(space: Space, name: str = "ann_1") -> AsyncGenerator[tuple[PostgresLog, Hearing]]:
    log = PostgresLog(space, name)
    async with heard(log) as hearing:
        await hearing.link("up")
        yield log, hearing


def fits_anywhere(members: Members) -> str:
    """Write a creds file for ann that names no host and no database; return its path."""
    creds = Path(members.creds("ann"))
    path = creds.with_name("any")
    path.touch(0o600)
    path.write_text("*:*:*:*:" + creds.read_text().split(":")[-1])
    return str(path)


async def becomes(server: PostgresServer, question: str, answer: str) -> None:
    """Wait until the query `question` returns `answer`."""
    with anyio.fail_after(PATIENCE_S):
        while server.sql(question, "postgres") != answer:  # noqa: ASYNC110 - the server sends no such event
            await asyncio.sleep(0.05)


def certify(server: PostgresServer, signed: tuple[Path, Path]) -> None:
    """Install a server's certificate and key."""
    for path, name in zip(signed, ("server.crt", "server.key"), strict=True):
        there = server.data / name
        there.write_bytes(path.read_bytes())
        there.chmod(0o600)
        os.chown(there, server.data.stat().st_uid, server.data.stat().st_gid)


async def refusal(space: Space) -> Refused:
    """Return the error that adding a space raises."""
    with pytest.raises(Refused) as refused:
        await prepare(space, "test")
    return refused.value


async def test_member_posts_reader_reads_keeper_erases(members: Members) -> None:
    async with (
        connected(space_of(members)) as (ann, _),
        connected(space_of(members, "bob"), "bob_2") as (bob, hearing),
        connected(space_of(members, "kim"), "kim_3") as (kim, _),
    ):
        assert ann.link.may_post and kim.link.may_post and not bob.link.may_post
        first = await ann.post("a", 0, "n1", b"one")
        await hearing.until(lambda: hearing.posts)
        assert [post.body for post in await bob.read("a", 0)] == [b"one"]
        assert await bob.is_current("a", first)
        with pytest.raises(Forbidden, match="Ask its keeper"):
            await bob.post("a", first, "n2", b"two")
        with pytest.raises(Forbidden):
            await ann.erase("a", first + 1)
        with pytest.raises(Forbidden):
            await ann.remove("a", await ann.read("a", 0))
        second = await kim.post("a", first, "n2", b"two")
        await kim.erase("a", second)
        assert [post.body for post in await bob.read("a", 0)] == [b"two"]


async def test_server_denies_unneeded_permissions(members: Members) -> None:
    async with connected(space_of(members)) as (ann, _), connected(space_of(members, "bob"), "bob_2") as (bob, _):
        await ann.post("a", 0, "n1", b"one")
        table = f'"punch-{members.space}".post'
        for log, statements in (
            (
                ann,
                (f"UPDATE {table} SET body = ''", f"DELETE FROM {table}", f"TRUNCATE {table}", f"DROP TABLE {table}"),
            ),
            (bob, [f"INSERT INTO {table} VALUES ('a', 2, '', '')", f"DELETE FROM {table}"]),
        ):
            connection = log._connection  # pyright: ignore[reportPrivateUsage]
            assert connection is not None
            for statement in (*statements, f'CREATE TABLE "punch-{members.space}".other (x int)'):
                with pytest.raises((Forbidden, Unreachable), match="permission|must be owner"):
                    await connection.query(statement)
        assert [post.body for post in await bob.read("a", 0)] == [b"one"]


async def test_member_cannot_access_another_space(members: Members, tmp_path: Path) -> None:
    other = Members(tmp_path / "other", members.server, f"s{os.urandom(4).hex()}", ann="member")
    foreign = Space(members.space, (other.url("ann"),), creds=other.creds("ann"), replicas=0)
    assert (await refusal(foreign)).kind == "no_permission"


async def test_passwords_are_not_in_sql_or_logs(members: Members) -> None:
    secret = await asyncio.to_thread(read_password, members.creds("ann"), Address.of(members.url("ann")))
    async with connected(space_of(members)) as (ann, _):
        await ann.post("a", 0, "n1", b"one")
    assert secret not in await asyncio.to_thread(members.server.log)
    assert len(secret) >= 32


async def test_invalid_notifications_are_skipped(members: Members) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
    async with connected(space_of(members)) as (ann, hearing):
        for rubbish in (
            "",
            "\\x00{",
            "{}",
            '{"what":"post","by":"x","list":"nowhere","n":-5}',
            '{"what":"beat","by":"x"}',
            '{"what":"beat","by":"x","more":' + "[" * 7_000 + "}",
            '{"what":"post","by":"x","list":"a","n":' + "9" * 40 + "}",
            '{"what":"want","by":"ann_1","list":"a","round_trip_s":1e300}',
        ):
            members.server.sql(f"""SELECT pg_notify('punch-{members.space}', '{rubbish}')""")
        await ann.beat(Beat("ann_1"))
        await hearing.until(lambda: hearing.beats)
        assert (hearing.posts, hearing.wants, faults) == ([], [], [])
        assert ann.link.state == "up" and len(hearing.links) == 1


async def test_forged_notification_of_a_post_is_ignored(members: Members) -> None:
    async with connected(space_of(members)) as (_, hearing):
        text = '{"what":"post","by":"eve_9","list":"a","n":1}'
        members.server.sql(f"SELECT pg_notify('punch-{members.space}', '{text}')")
        async with connected(space_of(members), "bob_2") as (bob, _):
            await bob.post("a", 0, "n1", b"one")
            await hearing.until(lambda: hearing.posts)
        assert {post.nonce for post in hearing.posts} == {"n1"}


async def test_post_read_before_its_notification_is_not_reread(members: Members) -> None:
    async with connected(space_of(members)) as (ann, _), connected(space_of(members), "bob_2") as (_, hearing):
        for n in (1, 2):
            await ann.post("a", n - 1, f"n{n}", b"x")
            await hearing.until(lambda n=n: len(hearing.posts) == n)
        late = '{"what":"post","by":"ann_1","list":"a","n":2}'
        members.server.sql(f"SELECT pg_notify('punch-{members.space}', '{late}')")
        await ann.post("a", 2, "n3", b"x")
        await hearing.until(lambda: any(post.nonce == "n3" for post in hearing.posts))
        assert [post.nonce for post in hearing.posts] == ["n1", "n2", "n3"]


async def test_oversized_row_is_not_fetched(members: Members) -> None:
    async with connected(space_of(members)) as (ann, _):
        body = f"decode(repeat('00', {MAX_POST + 1}), 'hex')"
        await asyncio.to_thread(
            members.server.sql, f"""INSERT INTO "punch-{members.space}".post VALUES ('a', 1, 'n', {body})"""
        )
        (bad,) = await ann.read("a", 0)
        assert (bad.position, bad.body) == (1, b"") and f"{MAX_POST + 1} bytes" in bad.fault


async def test_posts_after_a_removed_one_are_delivered(members: Members) -> None:
    async with connected(space_of(members)) as (ann, hearing), connected(space_of(members), "bob_2") as (bob, _):
        await bob.post("a", 0, "n1", b"one")
        notice = f"""pg_notify('punch-{members.space}', '{{"what":"post","by":"eve_3","list":"a","n":9000}}')"""
        row = f"""INSERT INTO "punch-{members.space}".post VALUES ('a', 9000, 'bad', '')"""
        await asyncio.to_thread(members.server.sql, f"{row}; SELECT {notice}")
        await hearing.until(lambda: any(post.nonce == "bad" for post in hearing.posts))
        async with connected(space_of(members, "kim"), "kim_3") as (kim, _):
            await kim.remove("a", (await kim.read("a", 1)))
        assert await ann.last("a") == 1
        await bob.post("a", 1, "n2", b"two")
        await hearing.until(lambda: any(post.nonce == "n2" for post in hearing.posts))


async def test_posts_of_simultaneous_notifications_are_delivered(members: Members) -> None:
    async with connected(space_of(members)) as (ann, _):
        for n in (1, 2, 3):
            await ann.post("a", n - 1, f"n{n}", b"x")
        async with connected(space_of(members), "bob_2") as (_, hearing):
            notices = [f'{{"what":"post","by":"ann_1","list":"a","n":{n}}}' for n in (2, 1, 3)]
            calls = [f"pg_notify('punch-{members.space}', '{notice}')" for notice in notices]
            members.server.sql(f"SELECT {', '.join(calls)}")
            await hearing.until(lambda: any(post.nonce == "n3" for post in hearing.posts))
            assert [post.nonce for post in hearing.posts] == ["n1", "n2", "n3"]


async def test_post_over_a_terminated_connection_is_stored_once(members: Members) -> None:
    async with connected(space_of(members)) as (ann, hearing):
        position, ended = 0, 0
        for number in range(20):
            posts = asyncio.ensure_future(posting.post(ann, "a", position, f"n{number}", b"x"))
            members.server.sql(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann-{members.space}'"
            )
            try:
                position = await posts
            except Unreachable:
                ended += 1
                await hearing.link("up")
        await hearing.link("up")
        found = [post.nonce for post in await ann.read("a", 0)]
        assert len(found) == len(set(found)) == 20 - ended
        assert any(link.state == "down" for link in hearing.links)


async def test_server_error_keeps_the_connection(members: Members) -> None:
    """The error comes from a constraint such as an operator could add."""
    server = members.server
    server.sql(f"""ALTER TABLE "punch-{members.space}".post ADD CHECK (nonce <> 'no')""")
    async with connected(space_of(members)) as (ann, hearing):
        with pytest.raises(Unreachable, match="reported an error"):
            await ann.post("a", 0, "no", b"one")
        assert await ann.post("a", 0, "yes", b"one") == 1
        assert [link.state for link in hearing.links] == ["up"]


async def test_full_disk_is_reported_until_space_is_free(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trigger raises the server's real error for a full disk (53100)."""
    monkeypatch.setattr("punchlistd.replication.adapters.postgres.log.WATCH_S", 0.05)
    table = f'"punch-{members.space}".post'
    members.server.sql(f"""
        CREATE FUNCTION "punch-{members.space}".no_room() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_room BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION "punch-{members.space}".no_room();
    """)
    async with connected(space_of(members)) as (ann, hearing):
        with pytest.raises(Unreachable, match="can't store posts now"):
            await ann.post("a", 0, "n1", b"one")
        full = await hearing.link("down", "no_quorum")
        assert "No space left" in full.reason and "Free disk space" in full.reason
        count = len(hearing.links)
        await hearing.until(lambda: ann.link.state == "down")
        assert all(link.state != "up" for link in hearing.links[count:]), (
            "the link was up before the server could store again"
        )
        members.server.sql(f"DROP TRIGGER no_room ON {table}")
        await hearing.link("up")
        assert await ann.post("a", 0, "n1", b"one") == 1
        assert await ann.lists() == ["a"]


async def test_recreated_table_is_another_space(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlistd.replication.adapters.link_keeper.WATCH_S", 0.05)
    monkeypatch.setattr("punchlistd.replication.adapters.postgres.log.WATCH_S", 0.05)
    schema = f'"punch-{members.space}"'
    async with connected(space_of(members)) as (ann, hearing):
        await ann.post("a", 0, "n1", b"one")
        columns = 'list text COLLATE "C", n bigint, nonce text NOT NULL, body bytea NOT NULL, PRIMARY KEY (list, n)'
        members.server.sql(
            f"BEGIN; DROP TABLE {schema}.post; CREATE TABLE {schema}.post ({columns});"
            f' GRANT SELECT, INSERT ON {schema}.post TO "ann-{members.space}"; COMMIT'
        )
        await hearing.link("down", "replaced")
        await hearing.link("up")
        assert await ann.read("a", 0) == []
        members.server.sql(f"DROP SCHEMA {schema} CASCADE")
        gone = await hearing.link("refused", "no_space")
        assert "punch space server" in gone.reason


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("ALTER TABLE {table} DROP CONSTRAINT post_pkey", "name_taken"),
        ("ALTER TABLE {table} SET UNLOGGED", "name_taken"),
        ("ALTER TABLE {table} ADD COLUMN other text", "name_taken"),
        ("DROP TABLE {table}", "no_space"),
        ("REVOKE SELECT ON {table} FROM {user}", "no_permission"),
        ("ALTER ROLE {user} SET default_transaction_read_only = on", "read_only"),
        ("ALTER ROLE {user} PASSWORD 'another'", "unauthorized"),
        ("ALTER ROLE {user} VALID UNTIL '2020-01-01'", "unauthorized"),
        ("ALTER ROLE {user} NOLOGIN", "unauthorized"),
        ("ALTER ROLE {user} CONNECTION LIMIT 2", "too_many_connections"),
    ],
)
async def test_unusable_spaces_are_reported_by_kind(members: Members, change: str, kind: str) -> None:
    assert (await prepare(space_of(members), "test")).made is False
    table, user = f'"punch-{members.space}".post', f'"ann-{members.space}"'
    members.server.sql(change.format(table=table, user=user))
    refused = await refusal(space_of(members))
    assert refused.kind == kind
    assert "{" not in str(refused) and str(refused).endswith(".")


async def test_sessions_require_synchronous_commits(members: Members) -> None:
    members.server.sql(f"""ALTER ROLE "ann-{members.space}" SET synchronous_commit = off""")
    async with connected(space_of(members)) as (ann, _):
        connection = ann._connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        (row,) = await connection.query("SELECT current_setting('synchronous_commit') AS found")
        assert row["found"] == "on"


async def test_server_without_fsync_is_rejected(tmp_path: Path) -> None:
    with running_postgres("fsync = off") as server:
        members = Members(tmp_path / "creds", server, "team", ann="member")
        refused = await refusal(space_of(members))
        assert refused.kind == "default_fsync" and "`fsync = on`" in str(refused)


async def test_server_below_minimum_version_is_rejected(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "FLOOR", 99)
    refused = await refusal(space_of(members))
    assert refused.kind == "server_too_old" and "99 or newer" in str(refused)


async def test_unreachable_addresses_are_reported_without_error_numbers(members: Members) -> None:
    for url, kind in (
        (f"postgres://ann@{own_address()}:5432/punchlist", "unreachable"),
        ("postgres://ann@no-such-host.invalid:5432/punchlist", "unreachable"),
        (members.url("ann").replace(f"/{DATABASE}", "/elsewhere"), "no_database"),
        (members.url("ann").replace("ann-", "eve-"), "unauthorized"),
    ):
        refused = await refusal(Space(members.space, (url,), creds=fits_anywhere(members), replicas=0))
        assert refused.kind == kind, url
        assert "Errno" not in str(refused)
    assert (await refusal(space_of(members, creds=""))).kind == "creds_needed"
    assert (await refusal(space_of(members, monitor="http://127.0.0.1:8222"))).kind == "nats_only"
    assert (await refusal(space_of(members, replicas=3))).kind == "nats_only"


async def test_other_server_is_reported() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    host = own_address()
    async with await asyncio.start_server(serve, host, 5432):
        refused = await refusal(Space("team", (f"postgres://ann@{host}:5432/punchlist",), replicas=0))
    assert refused.kind == "unreachable"


async def test_primary_is_found_among_two_addresses(tmp_path: Path) -> None:
    with running_postgres() as primary, running_postgres(copy_of=primary) as standby:
        members = Members(tmp_path / "creds", primary, "team", ann="member")
        creds = fits_anywhere(members)
        await becomes(standby, "SELECT 1 FROM pg_roles WHERE rolname = 'ann-team'", "1")
        there = members.url("ann").replace(primary.host, standby.host)
        asked = space_of(members)
        refused = await refusal(Space("team", (there,), creds=creds, replicas=0))
        assert refused.kind == "standby"
        both = Space("team", (there, *asked.urls), creds=creds, replicas=0)
        async with connected(both) as (ann, _):
            assert ann.link.server == asked.urls[0]


async def test_post_missing_on_standby_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_postgres() as primary, running_postgres(copy_of=primary) as standby:
        members = Members(tmp_path / "creds", primary, "team", ann="member")
        async with connected(space_of(members)) as (ann, hearing):
            assert await ann.post("a", 0, "n1", b"one") == 1
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
            primary.sql("SELECT pg_reload_conf()", "postgres")
            await becomes(primary, "SELECT sync_state FROM pg_stat_replication", "sync")
            standby.pause()
            with monkeypatch.context() as lost:
                lost.setattr(postgres_link, "REQUEST_S", LOST_S)
                with pytest.raises(OutcomeUnknown):
                    await ann.post("a", 1, "n2", b"two")
                await hearing.link("down", "no_quorum")
            waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            # An operator can make the post visible, but not safe.
            primary.sql(f"SELECT pg_cancel_backend(pid) {waiting}")
            for question in ("read", "is_current"):
                hasty = PostgresLog(space_of(members), "hasty_2")
                connection = await postgres_link.connect(space_of(members), members.url("ann"), "test")
                hasty._connection = connection  # pyright: ignore[reportPrivateUsage]
                with anyio.fail_after(PATIENCE_S):
                    while await hasty.last("a") != 2:  # noqa: ASYNC110 - the server sends no such event
                        await asyncio.sleep(0.05)
                with monkeypatch.context() as lost, pytest.raises(Unreachable):
                    lost.setattr(postgres_link, "REQUEST_S", LOST_S)
                    await getattr(hasty, question)("a", 2 if question == "is_current" else 1)
                connection.end("the test is over")
            standby.resume()
            await hearing.link("up")
            assert await posting.post(ann, "a", 1, "n2", b"two") == 2
            assert [post.nonce for post in await ann.read("a", 0)] == ["n1", "n2"]


@needs_openssl
@pytest.mark.parametrize(
    ("certified", "days", "ca", "kind"),
    [
        ("", 30, True, ""),
        ("elsewhere.example.org", 30, True, "wrong_host"),
        ("", -1, True, "certificate_expired"),
        ("", 30, False, "bad_ca"),
    ],
)
async def test_ca_file_enforces_verified_tls(tmp_path: Path, certified: str, days: int, ca: bool, kind: str) -> None:
    host = own_address()
    authority = Authority(tmp_path / "ca")
    server = PostgresServer("ssl = on", host=host)
    try:
        certify(server, authority.sign("server", certified or host, days=days))
        server.start()
        members = Members(tmp_path / "creds", server, "team", ann="member")
        space = space_of(members, ca=str(authority.certificate) if ca else __file__)
        if kind:
            refused = await refusal(space)
            assert refused.kind == kind
            assert "[SSL" not in str(refused) and "[X509" not in str(refused)
        else:
            await prepare(space, "test")
            async with connected(space) as (ann, _):
                await ann.post("a", 0, "n1", b"one")
                used = "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                assert server.sql(f"{used} WHERE application_name = 'punchlistd ann_1'") == "3|t"
    finally:
        server.end()


@needs_openssl
async def test_local_server_requiring_tls_is_reported(tmp_path: Path) -> None:
    host = own_address()
    authority = Authority(tmp_path / "ca")
    server = PostgresServer("ssl = on", host=host)
    try:
        certify(server, authority.sign("server", host))
        text = f"host all owner all scram-sha-256\nhostssl {DATABASE} all all scram-sha-256\n"
        (server.data / "pg_hba.conf").write_text(text)
        server.start()
        members = Members(tmp_path / "creds", server, "team", ann="member")
        refused = await refusal(space_of(members))
        assert refused.kind == "tls_needed" and "--ca FILE" in str(refused)
        await prepare(space_of(members, ca=str(authority.certificate)), "test")
        (server.data / "pg_hba.conf").write_text("host all owner all scram-sha-256\n")
        server.sql("SELECT pg_reload_conf()")
        refused = await refusal(space_of(members, ca=str(authority.certificate)))
        assert refused.kind == "unauthorized" and "pg_hba.conf" in str(refused)
    finally:
        server.end()


@needs_openssl
async def test_no_credentials_are_sent_without_tls(members: Members, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    refused = await refusal(space_of(members, ca=str(authority.certificate)))
    assert refused.kind == "no_tls" and "nothing was sent" in str(refused)


@pytest.mark.parametrize(
    ("text", "mode", "kind"),
    [
        ("", 0o600, "creds_malformed"),
        ("secret", 0o600, "creds_malformed"),
        ("127.0.0.1:1:punchlist:bob:secret", 0o600, "creds_malformed"),
        ("*:*:*:*:secret", 0o640, "creds_open"),
        (None, 0o600, "creds_missing"),
    ],
)
async def test_unusable_creds_file_is_rejected_before_connecting(
    tmp_path: Path, text: str | None, mode: int, kind: str
) -> None:
    path = tmp_path / "ann.creds"
    if text is not None:
        path.write_text(text)
        os.chmod(path, mode)
    refused = await refusal(Space("team", ("postgres://ann@127.0.0.1:1/punchlist",), creds=str(path), replicas=0))
    assert refused.kind == kind and "secret" not in str(refused)


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("# who\n*:*:*:*:one", "one"),
        ("other:5432:punchlist:ann:no\ndb:5432:punchlist:ann:two\n*:*:*:*:late", "two"),
        (r"db:*:punchlist:ann:a\:b\\c", r"a:b\c"),
    ],
)
def test_first_matching_line_has_the_password(tmp_path: Path, text: str, password: str) -> None:
    path = tmp_path / "creds"
    path.touch(0o600)
    path.write_text(text)
    assert read_password(str(path), Address.of("postgres://ann@db:5432/punchlist")) == password


def test_remote_connections_require_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def connect(**how: Any) -> None:
        asked.append(how["ssl"])
        raise OSError

    monkeypatch.setattr(postgres_link._postgres, "connect", connect)  # pyright: ignore[reportPrivateUsage]
    for host in ("db.example.org", "127.0.0.1"):
        with pytest.raises(Refused):
            asyncio.run(
                postgres_link.connect(Space("team", (f"postgres://ann@{host}:1/b",)), f"postgres://ann@{host}:1/b", "x")
            )
    context, plain = asked
    assert isinstance(context, ssl.SSLContext) and context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED
    assert plain is False

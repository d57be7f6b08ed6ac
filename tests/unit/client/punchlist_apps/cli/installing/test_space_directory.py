"""`punch space server` on an existing directory: the members change, everything else stays."""

import resource
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.hearing import PATIENCE_S, Hearing, heard
from punchlist_testing.nats_server import PORT, NatsServer, needs_server, own_address, program
from punchlist_testing.postgres_server import DATABASE, PostgresServer, needs_postgres, running_postgres
from punchlistd.replication.adapters.nats.check import prepare
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.adapters.postgres.link import connect
from punchlistd.replication.adapters.postgres.log import PostgresLog
from punchlistd.replication.port import Forbidden, SharedLog
from punchlistd.replication.spaces import Space

Punch = Callable[..., Any]


@pytest.fixture(autouse=True)
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts, for a busy machine."""
    for engine in ("nats", "postgres"):
        monkeypatch.setattr(f"punchlistd.replication.adapters.{engine}.link.REQUEST_S", PATIENCE_S)
        monkeypatch.setattr(f"punchlistd.replication.adapters.{engine}.link.CONNECT_S", PATIENCE_S)
    monkeypatch.setattr("punchlistd.replication.adapters.link_keeper.MIN_PAUSE_S", 0.02)


@pytest.fixture
def server(run: Punch) -> Punch:
    """Runs `punch space server team` and checks that it succeeds."""

    def server(*words: str) -> Any:
        outcome = run("space", "server", "team", *words)
        assert outcome.code == 0, outcome.err
        return outcome

    return server


def read_files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@asynccontextmanager
async def connect_log(log: SharedLog) -> AsyncGenerator[tuple[SharedLog, Hearing]]:
    async with heard(log) as hearing:
        await hearing.link("up")
        yield log, hearing


async def post(log: SharedLog, nonce: str) -> None:
    await log.post("a", await log.last("a"), nonce, b"x")


def copy_creds(folder: Path, name: str) -> str:
    """Copy a member's creds file out of the space's directory; return the copy's path."""
    return str(shutil.copy(folder / f"{name}.creds", folder.parent / f"{name}.creds"))


class Nats:
    """A running server with the directory's configuration and manual edits."""

    def __init__(self, folder: Path) -> None:
        host = own_address()
        text = (folder / "nats.conf").read_text()
        text = text.replace("port: 4222", f"host: {host}\nport: {PORT}  # our own").replace(
            'http: "127', '# http: "127'
        )
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("tls {"))
        text = text.replace("/var/lib/nats", f"{folder}/js").replace(
            "users: [", "users: [  # all of us\n      # by hand:"
        )
        self.folder = folder
        self.server = NatsServer(folder, text, host=host, whole=True)

    def reload(self) -> None:
        server_program = program()
        assert server_program is not None and self.server.process is not None, "the server runs"
        subprocess.run([server_program, "--signal", f"reload={self.server.process.pid}"], check=True)

    def log(self, name: str) -> NatsLog:
        return NatsLog(self.space(name), f"{name}_1")

    def space(self, name: str) -> Space:
        return Space("team", (self.server.url,), creds=copy_creds(self.folder, name))


@needs_server
async def test_nats_members_change_without_disconnecting_others(server: Punch, home: Path) -> None:
    server("--host", "lists.example.org", "--member", "ann", "--reader", "bob")
    nats = Nats(home / "team-server")
    nats.server.start()
    try:
        await prepare(nats.space("ann"), "test")
        async with connect_log(nats.log("ann")) as (ann, of_ann), connect_log(nats.log("bob")) as (_, of_bob):
            outcome = server("--member", "carol")
            assert "nats-server --signal reload" in outcome.out
            assert "punch space add team tls://lists.example.org --creds carol.creds" in outcome.out
            nats.reload()
            async with connect_log(nats.log("carol")) as (carol, of_carol):
                await post(ann, "n1")
                await post(carol, "n2")
                server("--without", "carol")
                nats.reload()
                await of_carol.link("refused", "unauthorized")
            await post(ann, "n3")
            await of_bob.until(lambda: len(of_bob.posts) == 3)
            assert [link.state for link in (*of_ann.links, *of_bob.links)] == ["up", "up"]
    finally:
        nats.server.kill()
    assert "our own" in (nats.folder / "nats.conf").read_text(), "manual edits stay"
    assert not (nats.folder / "carol.creds").exists()


def test_edits_of_nats_conf_are_kept(server: Punch, home: Path) -> None:
    server("--host", "lists.example.org", "--member", "ann", "--reader", "bob")
    conf = home / "team-server" / "nats.conf"
    edited = conf.read_text().replace("port: 4222", "port: 14222 // ours, { not 4222")
    edited = edited.replace("jetstream: enabled", "\"jetstream\": 'enabled' # ]")
    edited = edited.replace("      # ann, member", "      {user: old, password: 'x}'}, # by hand\n      # ann, member")
    conf.write_text(edited)
    before = read_files(home)
    server("--member", "carol")
    extended = conf.read_text()
    assert [line for line in edited.splitlines() if line not in extended.splitlines()] == []
    assert extended.count("nkey:") == 3
    server("--without", "carol")
    assert read_files(home) == before
    server("--without", "bob")
    assert "bob" not in conf.read_text() and "by hand" in conf.read_text()


def test_three_servers_get_the_same_new_member(server: Punch, run: Punch, home: Path) -> None:
    server(*(word for name in "abc" for word in ("--host", f"{name}.example.org")), "--member", "ann")
    assert "tls://a.example.org tls://b.example.org tls://c.example.org" in server("--keeper", "kim").out
    texts = [(home / "team-server" / f"nats-{number}.conf").read_text() for number in (1, 2, 3)]
    assert all("# kim, keeper" in text for text in texts)
    last = home / "team-server" / "nats-3.conf"
    last.write_text(texts[2].replace("# kim, keeper", "# tim, keeper"))
    assert "make them the same first" in run("space", "server", "team", "--member", "bob").err


def test_existing_members_change_nothing(server: Punch, home: Path) -> None:
    server("--host", "lists.example.org", "--member", "ann", "--reader", "bob")
    before = read_files(home)
    for words in ((), ("--member", "ann"), ("--reader", "bob", "--host", "lists.example.org")):
        outcome = server(*words)
        assert "nothing was changed" in outcome.out and "ann  member" in outcome.out
    assert server("--json").json["members"] == {"ann": "member", "bob": "reader"}
    assert read_files(home) == before


@pytest.mark.parametrize(
    ("host", "address"), [("a.example.org:14222", "tls://a.example.org:14222 "), ("fd00::1", "tls://[fd00::1] ")]
)
def test_the_next_step_has_a_working_address(server: Punch, host: str, address: str) -> None:
    assert address in server("--host", host, "--member", "ann").out


@pytest.mark.parametrize("engine", ["nats", "postgres"])
def test_readding_a_member_changes_creds_and_role(server: Punch, home: Path, engine: str) -> None:
    database = ("--postgres", "punchlist") if engine == "postgres" else ()
    server("--host", "lists.example.org", "--member", "ann", "--member", "bob", *database)
    creds = home / "team-server" / "ann.creds"
    before = creds.read_text()
    result = server("--without", "ann", "--reader", "ann", "--json").json
    assert (result["members"], result["added"], result["removed"]) == ({"bob": "member", "ann": "reader"}, ["ann"], [])
    assert creds.read_text() != before and "ann, reader" in creds.read_text()


@pytest.mark.parametrize("database", [(), ("--postgres", "punchlist")])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--without", "carol"), "carol is not a member in team-server; it has ann (member), bob (reader)"),
        (("--member", "dan", "--without", "carol"), "carol is not a member"),
        (("--without", "ann", "--without", "bob"), "is the last member"),
        (("--member", "bob"), "--without bob --member bob"),
        (("--member", "eve"), "eve.creds exists, but eve is not a member"),
        (("--member", "dan", "--member", "eve"), "eve.creds exists"),
        (("--member", "dan", "--host", "b.example.org"), "is for lists.example.org"),
        (("--member", "dan", "--member", "a b"), "of letters, digits"),
        (("--member", "dan", "--host", 'a"'), "invalid host"),
    ],
)
def test_a_rejected_request_changes_no_file(
    server: Punch, run: Punch, home: Path, database: tuple[str, ...], words: tuple[str, ...], message: str
) -> None:
    server("--host", "lists.example.org", "--member", "ann", "--reader", "bob", *database)
    (home / "team-server" / "eve.creds").write_text("of another server")
    before = read_files(home)
    outcome = run("space", "server", "team", *words)
    assert (outcome.code, read_files(home)) == (2, before)
    assert message in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("other", "--to", "team-server", "--member", "x"), "is not of the space other"),
        (("team", "--postgres", "punchlist", "--member", "x"), "is for a NATS server"),
        (("new", "--host", "a", "--without", "x"), "it has none"),
        (("new", "--host", "a"), "--member ann"),
        (("new", "--member", "ann"), "--host lists.example.org"),
        (
            ("team", "--to", "tema-server", "--member", "ann"),
            "tema-server has no space; choose its directory with --to",
        ),
        (("../new", "--host", "a", "--member", "ann"), "invalid space name"),
    ],
)
def test_a_request_for_another_space_writes_nothing(
    server: Punch, run: Punch, home: Path, words: tuple[str, ...], message: str
) -> None:
    server("--host", "lists.example.org", "--member", "ann")
    before = read_files(home.parent)
    outcome = run("space", "server", *words)
    assert (outcome.code, read_files(home.parent)) == (2, before)
    assert message in outcome.err


def test_an_unwritable_configuration_leaves_no_creds(server: Punch, run: Punch, home: Path) -> None:
    server("--host", "lists.example.org", "--member", "ann", "--member", "bob")
    before = read_files(home)
    size, limits = len(before["team-server/nats.conf"]), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        outcome = run("space", "server", "team", "--member", "carol")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (outcome.code, read_files(home)) == (2, before)
    assert "File too large; nothing was changed" in outcome.err


class Postgres:
    """A running server, and the directory with its SQL file."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def run(self) -> None:
        """Run the SQL twice, which must be harmless."""
        for _ in range(2):
            self.server.sql((self.folder / "postgres.sql").read_text())

    def log(self, name: str) -> PostgresLog:
        return PostgresLog(self.space(name), f"{name}_1")

    def space(self, name: str) -> Space:
        return Space("team", (self.server.url(name),), creds=copy_creds(self.folder, name))


@needs_postgres
async def test_postgres_members_change_without_disconnecting_others(server: Punch, home: Path) -> None:
    with running_postgres() as running:
        server("--postgres", DATABASE, "--host", running.host, "--member", "ann", "--reader", "bob")
        running.sql(f"CREATE DATABASE {DATABASE}", "postgres")
        place = Postgres(running, home / "team-server")
        place.run()
        async with connect_log(place.log("ann")) as (ann, of_ann):
            server("--member", "carol")
            place.run()
            async with connect_log(place.log("carol")) as (carol, of_carol):
                await post(ann, "n1")
                await post(carol, "n2")
                connection = await connect(place.space("carol"), running.url("carol"), "test")
                server("--without", "carol")
                place.run()
                with anyio.fail_after(PATIENCE_S):
                    await connection.ended.wait()
                await of_carol.link("refused", "unauthorized")
            await post(ann, "n3")
            server("--without", "ann", "--reader", "ann")
            place.run()
            with pytest.raises(Forbidden):
                await post(ann, "n4")
            assert [link.state for link in of_ann.links] == ["up"]
        assert running.sql("SELECT count(*) FROM pg_roles WHERE rolname IN ('ann', 'bob', 'carol')") == "2"


@needs_postgres
def test_a_foreign_role_stops_the_sql(server: Punch, home: Path) -> None:
    with running_postgres() as running:
        running.sql(f"CREATE DATABASE {DATABASE}", "postgres")
        running.sql("CREATE ROLE carol LOGIN PASSWORD 'theirs'")
        server("--postgres", DATABASE, "--host", running.host, "--member", "ann", "--member", "carol")
        place = Postgres(running, home / "team-server")
        with pytest.raises(RuntimeError, match="carol exists but is not of the space team"):
            place.run()
        assert running.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'ann'") == "0"
        server("--without", "carol")
        place.run()
        assert running.sql("SELECT count(*) FROM pg_roles WHERE rolname IN ('ann', 'carol')") == "2", (
            "the foreign role stays"
        )


@needs_postgres
def test_sql_of_earlier_versions_is_upgraded(server: Punch, home: Path) -> None:
    with running_postgres() as running:
        running.sql(f"CREATE DATABASE {DATABASE}", "postgres")
        server("--postgres", DATABASE, "--host", running.host, "--member", "ann")
        sql = home / "team-server" / "postgres.sql"
        head, proof = sql.read_text().partition("-- ann, member")[0], "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA"
        head = "".join(line for line in head.splitlines(keepends=True) if "reach it at" not in line)
        old = (
            f"CREATE ROLE \"ann\" LOGIN PASSWORD '{proof}';",
            "DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO \"ann\"', current_database()); END $$;",
            'GRANT USAGE ON SCHEMA "punch-team" TO "ann";',
            'GRANT SELECT, INSERT ON "punch-team".post TO "ann";',
        )
        sql.write_text("\n".join([f"{head}-- ann, member", *old, "COMMIT;", ""]))
        running.sql(sql.read_text())
        server("--member", "bob", "--host", running.host)
        Postgres(running, home / "team-server").run()
        assert proof in sql.read_text()
        assert running.sql("SELECT count(*) FROM pg_roles WHERE rolname IN ('ann', 'bob')") == "2"

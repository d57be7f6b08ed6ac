"""The directory of a space's server: reads its members from the configuration, and adds and removes some.

The configuration names each member in a comment. Only the lines of these members change, so that edits by hand stay.
All files change or none.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import NamedTuple

from punchlist_apps.cli.installing import space_postgres, space_server
from punchlist_apps.cli.printing.failure import NotShipped, StateError, UsageError
from punchlist_apps.common import extras
from punchlist_apps.hosts.files import FileError, Raced, Replacement, read, replace_all

_POSTGRES = "postgres.sql"
_MOST_SERVERS = 9
_NATS = ("nats.conf", *(f"nats-{number + 1}.conf" for number in range(_MOST_SERVERS)))
_HOSTS = re.compile(rf"^[ \t]*(?:#|--) {space_server.REACHED}: (.+)$", re.MULTILINE)


class Request(NamedTuple):
    """The members of a space after a command.

    Attributes:
        space: The space.
        hosts: The names by which members reach its servers; empty: those that the directory names.
        database: Its database in PostgreSQL, None for NATS or for what the directory holds.
        roles: Members to let in, with the role of each.
        without: Members to take out, before others are let in.
    """

    space: str
    hosts: list[str]
    database: str | None
    roles: dict[str, str]
    without: list[str]


class Outcome(NamedTuple):
    """The changes to a directory.

    Attributes:
        members: The members now, with the role of each.
        added: Members with new creds.
        removed: Members that were taken out.
        files: The files that were written.
        steps: What the person has to do next.
    """

    members: dict[str, str]
    added: list[str]
    removed: list[str]
    files: list[str]
    steps: list[str]


class _Engine(ABC):
    """Makes and changes the files of a space for the server that orders its posts."""

    def __init__(self, request: Request, hosts: list[str]) -> None:
        self.request = request
        self.hosts = hosts

    @abstractmethod
    def make(self) -> dict[str, str]:
        """Return the configuration of a new space without members, by file name."""

    @abstractmethod
    def find(self, text: str) -> dict[str, str]:
        """Return the members that a configuration names, with the role of each."""

    @abstractmethod
    def login(self, names: list[str]) -> None:
        """Make new creds for these members."""

    @abstractmethod
    def creds(self) -> dict[str, str]:
        """Return the texts of the new creds, by member."""

    @abstractmethod
    def edit(self, text: str, without: Collection[str]) -> str:
        """Return a configuration without some members, and with those that have new creds."""

    @abstractmethod
    def urls(self, name: str) -> str:
        """Return the addresses that a member gives to `punch space add`."""

    @abstractmethod
    def apply(self, files: list[str], *, is_new: bool) -> str:
        """Return the step that brings the configuration to the servers."""


class _Nats(_Engine):
    def __init__(self, request: Request, hosts: list[str]) -> None:
        super().__init__(request, hosts)
        self._logins: list[space_server.Login] = []

    def make(self) -> dict[str, str]:
        if len(self.hosts) == 2:  # noqa: PLR2004 - two servers agree on nothing while one is away
            raise UsageError("two servers are down as soon as one is: give one --host, or three")
        if len(self.hosts) > _MOST_SERVERS:
            raise UsageError(f"{len(self.hosts)} servers are too many: give one --host, or three")
        servers = [space_server.Server(host) for host in self.hosts]
        secret = space_server.new_secret()
        names = _NATS[:1] if len(servers) == 1 else _NATS[1:]
        texts = (space_server.configuration(self.request.space, [], servers, at, secret) for at in range(len(servers)))
        return dict(zip(names, texts, strict=False))

    def find(self, text: str) -> dict[str, str]:
        return {user.name: user.role for user in space_server.find_users(text, self.request.space)[0]}

    def login(self, names: list[str]) -> None:
        if names and not extras.is_installed("shared"):
            raise NotShipped(extras.SHARED_MISSING, extras.build_install_command("shared"))
        self._logins = [space_server.login(name, self.request.roles[name]) for name in names]

    def creds(self) -> dict[str, str]:
        return {one.name: one.creds for one in self._logins}

    def edit(self, text: str, without: Collection[str]) -> str:
        return space_server.edit(text, self.request.space, self._logins, without)

    def urls(self, name: str) -> str:
        return " ".join(f"tls://{_in_address(host)}" for host in self.hosts or ["HOST"])

    def apply(self, files: list[str], *, is_new: bool) -> str:
        if is_new:
            return "give each server its nats.conf, a certificate and its key: /etc/nats/cert.pem, /etc/nats/key.pem"
        return (
            f"put {' '.join(files)} in place, then on each server: nats-server --signal reload (others stay connected)"
        )


class _Postgres(_Engine):
    def __init__(self, request: Request, hosts: list[str], database: str) -> None:
        super().__init__(request, hosts)
        self._database = database
        self._logins: list[space_postgres.Login] = []

    def make(self) -> dict[str, str]:
        return {_POSTGRES: space_postgres.sql(self.request.space, [], self.hosts, self._database)}

    def find(self, text: str) -> dict[str, str]:
        return space_postgres.find_roles(text, self.request.space)

    def login(self, names: list[str]) -> None:
        if names and not self.hosts:
            raise UsageError(f"{_POSTGRES} does not name the server, as creds do: add --host db.example.org")
        self._logins = [space_postgres.login(name, self.request.roles[name]) for name in names]

    def creds(self) -> dict[str, str]:
        return {one.name: one.creds(self.hosts, self._database) for one in self._logins}

    def edit(self, text: str, without: Collection[str]) -> str:
        return space_postgres.edit(text, self.request.space, self._logins, without)

    def urls(self, name: str) -> str:
        return " ".join(f"postgres://{name}@{_in_address(host)}/{self._database}" for host in self.hosts)

    def apply(self, files: list[str], *, is_new: bool) -> str:
        made = f"createdb {self._database}; " if is_new else ""
        return f"as the database's owner: {made}psql --dbname {self._database} --file {_POSTGRES}"


def update(folder: str, request: Request) -> Outcome:
    """Make or change the files of a directory, or leave it untouched.

    Raises:
        UsageError: The request does not fit the directory, or a file can't be written.
    """
    try:
        kept = {
            name: data.decode() for name in _files(folder, request) if (data := read(_in(folder, name))) is not None
        }
    except (FileError, UnicodeDecodeError) as error:
        raise StateError(f"{folder} can't be used: {error}") from None
    engine = _engine(folder, request, kept)
    members = _members(folder, engine, kept)
    new = _check(folder, request, members)
    if kept and not new and not request.without:
        return Outcome(members, [], [], [], [])
    engine.login(new)
    texts = {name: engine.edit(text, request.without) for name, text in (kept or engine.make()).items()}
    creds = {f"{name}.creds": text for name, text in engine.creds().items()}
    removed = [name for name in request.without if name not in new]
    _replace(folder, kept, texts, creds, [f"{name}.creds" for name in removed])
    steps = [engine.apply(list(texts), is_new=not kept)]
    if new:
        given = "each member their creds" if len(new) > 1 else f"{new[0]} their creds"
        steps.append(
            f"give {given}; then: punch space add {request.space} {engine.urls(new[0])} --creds {new[0]}.creds"
        )
    rest = {name: role for name, role in members.items() if name not in request.without}
    return Outcome(rest | {name: request.roles[name] for name in new}, new, removed, [*creds, *texts], steps)


def _files(folder: str, request: Request) -> tuple[str, ...]:
    """Return the names of the configuration: the directory decides where the command names no engine."""
    has_nats = any(os.path.lexists(_in(folder, name)) for name in _NATS)
    if request.database is None and (has_nats or not os.path.lexists(_in(folder, _POSTGRES))):
        return _NATS
    if has_nats:
        raise UsageError(f"{folder} is of a NATS server: leave out --postgres, or choose another directory with --to")
    return (_POSTGRES,)


def _engine(folder: str, request: Request, kept: dict[str, str]) -> _Engine:
    found = next((one for text in kept.values() if (one := _HOSTS.search(text)) is not None), None)
    named = found[1].split() if found is not None else []
    if named and request.hosts and named != request.hosts:
        raise UsageError(f"{folder} is for {', '.join(named)}: leave out --host, or choose another directory with --to")
    hosts = request.hosts or named
    if not kept and not hosts:
        raise UsageError(
            f"{folder} holds no space: choose its directory with --to, or for a new one give the name by which members"
            " reach it: --host lists.example.org"
        )
    if request.database is None and _POSTGRES not in kept:
        return _Nats(request, hosts)
    written = re.search(r"psql --dbname (\S+)", kept.get(_POSTGRES, ""))
    database = written[1] if written is not None and written[1] != "DATABASE" else request.database
    if database is None:
        raise UsageError(f"{_in(folder, _POSTGRES)} does not name its database: add --postgres DATABASE")
    if request.database not in (None, database):
        raise UsageError(f"{folder} is for the database {database}: choose another directory with --to")
    return _Postgres(request, hosts, database)


def _members(folder: str, engine: _Engine, kept: dict[str, str]) -> dict[str, str]:
    members: dict[str, str] | None = None
    for name, text in kept.items():
        try:
            found = engine.find(text)
        except ValueError as error:
            raise UsageError(
                f"{_in(folder, name)} is not of the space {engine.request.space} ({error}): choose another directory"
                " with --to"
            ) from None
        if members is not None and found != members:
            raise StateError(f"{_in(folder, name)} lets in others than {next(iter(kept))}: make them alike first")
        members = found
    return members or {}


def _check(folder: str, request: Request, members: dict[str, str]) -> list[str]:
    """Return the members that get new creds."""
    there = ", ".join(f"{name} ({role})" for name, role in members.items())
    for name in request.without:
        if name not in members:
            raise UsageError(f"{name} is not a member in {folder}: " + (f"it has {there}" if there else "it has none"))
    for name, role in request.roles.items():
        if name in request.without:
            continue
        if members.get(name, role) != role:
            change = f"--without {name} --{role} {name}"
            raise UsageError(f"{name} is a {members[name]} in {folder}; to make it a {role} by new creds: {change}")
        if name not in members and os.path.lexists(path := _in(folder, f"{name}.creds")):
            raise StateError(f"{path} is there, and no member {name}: move it away, or choose another name")
    new = [name for name in request.roles if name not in members or name in request.without]
    if not new and set(request.without) >= set(members):
        if members:
            raise StateError(f"{request.without[-1]} is the last one in {folder}: to close the space, end its server")
        raise UsageError("server needs a member at least: --member ann")
    return new


def _replace(
    folder: str, kept: dict[str, str], texts: dict[str, str], creds: dict[str, str], gone: Sequence[str]
) -> None:
    changes = [Replacement(_in(folder, name), _bytes(kept.get(name)), _bytes(text)) for name, text in texts.items()]
    try:
        for name in (*creds, *gone):
            before = read(path := _in(folder, name))
            if before is not None or name in creds:
                changes.append(Replacement(path, before, _bytes(creds.get(name))))
        replace_all(changes)
    except FileError as error:
        raise StateError(f"{error}; nothing was changed") from None
    except Raced as error:
        raise StateError(f"{error} was changed by another program meanwhile; nothing was changed, try again") from None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _in(folder: str, name: str) -> str:
    return os.path.join(folder, name)


def _in_address(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 else host  # an IPv6 address, not a host with a port

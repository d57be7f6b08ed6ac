"""Reads and changes the members of a space in the directory of its server's configuration.

The configuration names each member in a comment. Only the lines of added and removed members change, so that manual
edits are kept. Either all files change or none do.
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
_MAX_SERVERS = 9
_NATS = ("nats.conf", *(f"nats-{number + 1}.conf" for number in range(_MAX_SERVERS)))
_HOSTS = re.compile(rf"^[ \t]*(?:#|--) {space_server.HOSTS_COMMENT}: (.+)$", re.MULTILINE)


class Request(NamedTuple):
    """The members of a space after a command.

    Attributes:
        space: The space.
        hosts: Host names of the space's servers; empty to use those recorded in the directory.
        database: The space's PostgreSQL database; None for NATS, or to use the database recorded in the directory.
        roles: Members to add, with their roles.
        without: Members to remove. They are removed before others are added.
    """

    space: str
    hosts: list[str]
    database: str | None
    roles: dict[str, str]
    without: list[str]


class Outcome(NamedTuple):
    """The changes to a directory.

    Attributes:
        members: The current members, with their roles.
        added: Members with new creds.
        removed: Members that were removed.
        files: The paths of the files that were written.
        steps: The next steps for the user.
    """

    members: dict[str, str]
    added: list[str]
    removed: list[str]
    files: list[str]
    steps: list[str]


class _Engine(ABC):
    """Creates and changes a space's files for one kind of server."""

    def __init__(self, request: Request, hosts: list[str]) -> None:
        self.request = request
        self.hosts = hosts

    @abstractmethod
    def build_configuration(self) -> dict[str, str]:
        """Return the configuration of a new space without members, by file name."""

    @abstractmethod
    def find_members(self, text: str) -> dict[str, str]:
        """Return the members in a configuration, with their roles."""

    @abstractmethod
    def create_logins(self, names: list[str]) -> None:
        """Create credentials for these members."""

    @abstractmethod
    def format_creds(self) -> dict[str, str]:
        """Return the text of each new creds file, by member."""

    @abstractmethod
    def edit(self, text: str, without: Collection[str]) -> str:
        """Return a configuration with some members removed and the members with new creds added."""

    @abstractmethod
    def format_urls(self, name: str) -> str:
        """Return the addresses for a member's `punch space add`."""

    @abstractmethod
    def describe_rollout(self, files: list[str], *, is_new: bool) -> str:
        """Return the user's next step, which deploys the configuration to the servers."""


class _Nats(_Engine):
    def __init__(self, request: Request, hosts: list[str]) -> None:
        super().__init__(request, hosts)
        self._logins: list[space_server.Login] = []

    def build_configuration(self) -> dict[str, str]:
        if len(self.hosts) == 2:  # noqa: PLR2004 - without one of two there is no majority
            raise UsageError("two servers fail as soon as one does; add one --host, or three")
        if len(self.hosts) > _MAX_SERVERS:
            raise UsageError(f"{len(self.hosts)} servers are too many; add one --host, or three")
        servers = [space_server.Server(host) for host in self.hosts]
        secret = space_server.create_secret()
        names = _NATS[:1] if len(servers) == 1 else _NATS[1:]
        return {
            name: space_server.build_configuration(self.request.space, [], servers, number, secret)
            for number, name in zip(range(len(servers)), names, strict=False)
        }

    def find_members(self, text: str) -> dict[str, str]:
        return {user.name: user.role for user in space_server.find_users(text, self.request.space)[0]}

    def create_logins(self, names: list[str]) -> None:
        if names and not extras.is_installed("shared"):
            raise NotShipped(extras.SHARED_MISSING, extras.build_install_command("shared"))
        self._logins = [space_server.create_login(name, self.request.roles[name]) for name in names]

    def format_creds(self) -> dict[str, str]:
        return {login.name: login.creds for login in self._logins}

    def edit(self, text: str, without: Collection[str]) -> str:
        return space_server.edit(text, self.request.space, self._logins, without)

    def format_urls(self, name: str) -> str:
        return " ".join(f"tls://{_bracket_ipv6(host)}" for host in self.hosts or ["HOST"])

    def describe_rollout(self, files: list[str], *, is_new: bool) -> str:
        if is_new:
            return "give each server its nats.conf, a certificate and its key: /etc/nats/cert.pem, /etc/nats/key.pem"
        command = "nats-server --signal reload (others stay connected)"
        return f"copy {' '.join(files)} to the servers, then run on each: {command}"


class _Postgres(_Engine):
    def __init__(self, request: Request, hosts: list[str], database: str) -> None:
        super().__init__(request, hosts)
        self._database = database
        self._logins: list[space_postgres.Login] = []

    def build_configuration(self) -> dict[str, str]:
        return {_POSTGRES: space_postgres.build_sql(self.request.space, [], self.hosts, self._database)}

    def find_members(self, text: str) -> dict[str, str]:
        return space_postgres.find_roles(text, self.request.space)

    def create_logins(self, names: list[str]) -> None:
        if names and not self.hosts:
            raise UsageError(f"{_POSTGRES} does not name the server, which creds need; add --host db.example.org")
        self._logins = [space_postgres.create_login(name, self.request.roles[name]) for name in names]

    def format_creds(self) -> dict[str, str]:
        return {login.name: login.format_creds(self.hosts, self._database) for login in self._logins}

    def edit(self, text: str, without: Collection[str]) -> str:
        return space_postgres.edit(text, self.request.space, self._logins, without)

    def format_urls(self, name: str) -> str:
        return " ".join(f"postgres://{name}@{_bracket_ipv6(host)}/{self._database}" for host in self.hosts)

    def describe_rollout(self, files: list[str], *, is_new: bool) -> str:
        create = f"createdb {self._database}; " if is_new else ""
        return f"as the database's owner: {create}psql --dbname {self._database} --file {_POSTGRES}"


def update(folder: str, request: Request) -> Outcome:
    """Create or change the files of a directory. On an error, none of them are changed.

    Raises:
        UsageError: The request doesn't match the directory, or a file can't be written.
    """
    try:
        files = ((name, read(_join_path(folder, name))) for name in _choose_config_names(folder, request))
        existing = {name: data.decode() for name, data in files if data is not None}
    except (FileError, UnicodeDecodeError) as error:
        raise StateError(f"{folder} can't be used: {error}") from None
    engine = _choose_engine(folder, request, existing)
    members = _read_members(folder, engine, existing)
    new = _select_new_members(folder, request, members)
    if existing and not new and not request.without:
        return Outcome(members, [], [], [], [])
    engine.create_logins(new)
    texts = {
        name: engine.edit(text, request.without) for name, text in (existing or engine.build_configuration()).items()
    }
    creds = {f"{name}.creds": text for name, text in engine.format_creds().items()}
    removed = [name for name in request.without if name not in new]
    _write_files(folder, existing, texts, creds, [f"{name}.creds" for name in removed])
    steps = [engine.describe_rollout(list(texts), is_new=not existing)]
    if new:
        receivers = "each member" if len(new) > 1 else new[0]
        command = f"punch space add {request.space} {engine.format_urls(new[0])} --creds {new[0]}.creds"
        steps.append(f"give {receivers} their creds; then: {command}")
    rest = {name: role for name, role in members.items() if name not in request.without}
    return Outcome(rest | {name: request.roles[name] for name in new}, new, removed, [*creds, *texts], steps)


def _choose_config_names(folder: str, request: Request) -> tuple[str, ...]:
    """Return the possible names of configuration files. The request or the directory determines the kind of server."""
    has_nats = any(os.path.lexists(_join_path(folder, name)) for name in _NATS)
    if request.database is None and (has_nats or not os.path.lexists(_join_path(folder, _POSTGRES))):
        return _NATS
    if has_nats:
        raise UsageError(f"{folder} is for a NATS server; leave out --postgres, or choose another directory with --to")
    return (_POSTGRES,)


def _choose_engine(folder: str, request: Request, existing: dict[str, str]) -> _Engine:
    comment = next((match for text in existing.values() if (match := _HOSTS.search(text)) is not None), None)
    recorded = comment[1].split() if comment is not None else []
    if recorded and request.hosts and recorded != request.hosts:
        raise UsageError(
            f"{folder} is for {', '.join(recorded)}; leave out --host, or choose another directory with --to"
        )
    hosts = request.hosts or recorded
    if not existing and not hosts:
        raise UsageError(
            f"{folder} has no space; choose its directory with --to, or for a new space add its server's host name:"
            " --host lists.example.org"
        )
    if request.database is None and _POSTGRES not in existing:
        return _Nats(request, hosts)
    command = re.search(r"psql --dbname (\S+)", existing.get(_POSTGRES, ""))
    database = command[1] if command is not None and command[1] != "DATABASE" else request.database
    if database is None:
        raise UsageError(f"{_join_path(folder, _POSTGRES)} does not name its database; add --postgres DATABASE")
    if request.database not in (None, database):
        raise UsageError(f"{folder} is for the database {database}; choose another directory with --to")
    return _Postgres(request, hosts, database)


def _read_members(folder: str, engine: _Engine, existing: dict[str, str]) -> dict[str, str]:
    members: dict[str, str] | None = None
    for name, text in existing.items():
        try:
            own = engine.find_members(text)
        except ValueError as error:
            problem = f"{_join_path(folder, name)} is not of the space {engine.request.space} ({error})"
            raise UsageError(f"{problem}; choose another directory with --to") from None
        if members is not None and own != members:
            raise StateError(
                f"{_join_path(folder, name)} has other members than {next(iter(existing))}; make them the same first"
            )
        members = own
    return members or {}


def _select_new_members(folder: str, request: Request, members: dict[str, str]) -> list[str]:
    """Check a request and return the members that get new creds."""
    names = ", ".join(f"{name} ({role})" for name, role in members.items())
    for name in request.without:
        if name not in members:
            raise UsageError(f"{name} is not a member in {folder}; it has {names or 'none'}")
    for name, role in request.roles.items():
        if name in request.without:
            continue
        if members.get(name, role) != role:
            change = f"--without {name} --{role} {name}"
            raise UsageError(f"{name} is a {members[name]} in {folder}; to make it a {role} with new creds: {change}")
        if name not in members and os.path.lexists(path := _join_path(folder, f"{name}.creds")):
            raise StateError(f"{path} exists, but {name} is not a member; move the file away, or choose another name")
    new = [name for name in request.roles if name not in members or name in request.without]
    if not new and set(request.without) >= set(members):
        if members:
            raise StateError(
                f"{request.without[-1]} is the last member in {folder}; to close the space, stop its server"
            )
        raise UsageError("a space needs a member; add --member ann")
    return new


def _write_files(
    folder: str, existing: dict[str, str], texts: dict[str, str], creds: dict[str, str], removed: Sequence[str]
) -> None:
    changes = [
        Replacement(_join_path(folder, name), _encode(existing.get(name)), _encode(text))
        for name, text in texts.items()
    ]
    try:
        for name in (*creds, *removed):
            before = read(path := _join_path(folder, name))
            if before is not None or name in creds:
                changes.append(Replacement(path, before, _encode(creds.get(name))))
        replace_all(changes)
    except FileError as error:
        raise StateError(f"{error}; nothing was changed") from None
    except Raced as error:
        raise StateError(f"{error} was changed by another program; nothing was written, try again") from None


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _join_path(folder: str, name: str) -> str:
    return os.path.join(folder, name)


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 else host  # an IPv6 address, not a host with a port

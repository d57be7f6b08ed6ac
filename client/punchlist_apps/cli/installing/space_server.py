"""The NATS server configuration of a space, with minimal rights for each member, and the members' creds."""

import base64
import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

ROLES = ("member", "reader", "keeper")
"""Roles of members, in this order: read and change; read only; read, change and erase permanently."""

MAX_PAYLOAD = "8MB"

HOSTS_COMMENT = "Members reach it at"
"""Start of the comment that names the hosts."""


def format_creds_comment(name: str, role: str) -> str:
    return f"# {name}, {role} of a space of punchlist. Anyone with this file can access the space: keep it secret."


class Login(NamedTuple):
    """A member and its key pair.

    Attributes:
        user: The public key, for the server's configuration.
        seed: The secret key, for the creds file.
    """

    name: str
    role: str
    user: str
    seed: str

    @property
    def creds(self) -> str:
        return (
            f"{format_creds_comment(self.name, self.role)}\n"
            f"-----BEGIN USER NKEY SEED-----\n{self.seed}\n------END USER NKEY SEED------\n"
        )


class Server(NamedTuple):
    """A server: its host name, and the paths of its certificate and its data on that machine."""

    host: str
    cert: str = "/etc/nats/cert.pem"
    key: str = "/etc/nats/key.pem"
    ca: str = "/etc/nats/ca.pem"
    store: str = "/var/lib/nats"


def create_login(name: str, role: str) -> Login:
    """Return a member with a new key."""
    from typing import Any, cast

    import nkeys  # pyright: ignore[reportMissingTypeStubs]

    keys = cast(Any, nkeys)
    seed = bytes(keys.encode_seed(os.urandom(32), keys.PREFIX_BYTE_USER))
    return Login(name, role, bytes(keys.from_seed(bytearray(seed)).public_key).decode(), seed.decode())


def list_permissions(space: str, login: Login) -> tuple[list[str], list[str]]:
    """Return the subjects that a member may publish and subscribe to, which are the minimum for its role."""
    stream, at = f"punch-{space}", f"pl.{space}"
    publish = [f"$JS.API.STREAM.INFO.{stream}", f"$JS.API.STREAM.MSG.GET.{stream}", f"$JS.API.DIRECT.GET.{stream}"]
    subscribe = [f"{at}.new.>", f"{at}.alive.>", f"{at}.want.>", f"_INBOX_{login.user}.>"]
    if login.role != "reader":
        publish += [
            f"{at}.log.>",
            f"{at}.bar.{login.user}.>",
            f"{at}.alive.{login.user}.>",
            f"{at}.want.>",
            f"$JS.API.STREAM.CREATE.{stream}",
        ]
    if login.role == "keeper":
        publish.append(f"$JS.API.STREAM.MSG.DELETE.{stream}")
    return publish, subscribe


def build_configuration(
    space: str, logins: list[Login], servers: list[Server], number: int = 0, secret: str = ""
) -> str:
    """Return the text of one server's `nats.conf`.

    Args:
        space: The name of the space.
        logins: All members.
        servers: All servers of the space. With three servers, the loss of one is tolerated.
        number: The index of the server to configure.
        secret: The password that servers use with each other, if the space has more than one server.
    """
    server = servers[number]
    lines = [
        f"# A NATS server (2.14 or newer) for the space {space} of punchlist, made by `punch space server`.",
        f'server_name: "{space}-{number + 1}"',
        "port: 4222",
        f"# {HOSTS_COMMENT}: {' '.join(host.host for host in servers)}",
        "# The monitor, for this machine only: punch space add ... --monitor http://127.0.0.1:8222",
        'http: "127.0.0.1:8222"',
        f"max_payload: {MAX_PAYLOAD}",
        f'tls {{ cert_file: "{server.cert}", key_file: "{server.key}" }}',
        "jetstream {",
        f'  store_dir: "{server.store}"',
        "  # Acknowledged posts are on the disk. Without this line a power cut loses those of two minutes.",
        "  sync_interval: always",
        "}",
    ]
    if len(servers) > 1:
        routes = ", ".join(f'"nats://route:{secret}@{peer.host}:6222"' for peer in servers if peer is not server)
        lines += [
            "cluster {",
            f'  name: "{space}"',
            "  port: 6222",
            f'  authorization {{ user: route, password: "{secret}" }}',
            f'  tls {{ cert_file: "{server.cert}", key_file: "{server.key}", ca_file: "{server.ca}" }}',
            f"  routes: [{routes}]",
            "}",
        ]
    lines += ["accounts {", f"  {_build_account_name(space)} {{", "    jetstream: enabled", "    users: ["]
    text = "\n".join([*lines, "    ]", "  }", "}", ""])
    return edit(text, space, logins) if logins else text


class User(NamedTuple):
    """The part of a configuration that defines a user of a space, with the comment that contains the user's name."""

    name: str
    role: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?<![^\s,;{}\[\]])(?P<comment>(?:\#|//)[^\n]*)"""
    r"""|(?P<word>"(?:\\.|[^"\\])*"|'[^']*'|[^\s{}\[\]"',;]+)|(?P<bracket>[{}\[\]])"""
)
_NAMED = re.compile(rf"(?:#|//)+\s*([\w-]+), ({'|'.join(ROLES)})\s*")


def find_users(text: str, space: str) -> tuple[list[User], int]:
    """Return the space's named users, and the index in the text at which the list of users ends."""
    users_path = ["accounts", _build_account_name(space), "users"]
    users: list[User] = []
    path: list[str] = []
    key, start, end = "", 0, -1
    name: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "comment":
            if path == users_path and (match := _NAMED.fullmatch(token[0])) is not None:
                name, start = match, len(text[: token.start()].rstrip(" \t"))
        elif token.lastgroup == "word":
            key = token[0].strip("\"':=") or key
        elif token[0] in "{[":
            path.append(key)
            key = ""
        else:
            if path == users_path:
                end = token.start()
            elif path[:-1] == users_path and name is not None:
                rest = re.compile(r"[ \t]*,?[ \t]*\n?").match(text, token.end())
                users.append(User(name[1], name[2], start, token.end() if rest is None else rest.end()))
                name = None
            del path[-1:]
            key = ""
    if end < 0:
        raise ValueError(f"no users of the account {_build_account_name(space)}")
    return users, end


def edit(text: str, space: str, logins: Sequence[Login], without: Collection[str] = ()) -> str:
    """Return a configuration with some users added and others removed. The rest is unchanged."""
    users, _ = find_users(text, space)
    for user in reversed(users):
        if user.name in without:
            text = text[: user.start] + text[user.end :]
    if not logins:
        return text
    _, end = find_users(text, space)
    before = text[:end].rstrip()
    indent = text[len(before) : end].rpartition("\n")[2] or "    "
    return "\n".join([before, *(line for login in logins for line in _format_user(space, login)), indent + text[end:]])


def _format_user(space: str, login: Login) -> tuple[str, ...]:
    publish, subscribe = list_permissions(space, login)
    return (
        f"      # {login.name}, {login.role}",
        f"      {{ nkey: {login.user}, permissions: {{",
        f"          publish: {{ allow: [{_quote(publish)}] }},",
        f"          subscribe: {{ allow: [{_quote(subscribe)}] }} }} }}",
    )


def create_secret() -> str:
    return base64.urlsafe_b64encode(os.urandom(24)).decode().strip("=").replace("-", "x").replace("_", "y")


def _build_account_name(space: str) -> str:
    return "SPACE_" + space.replace("-", "_").upper()


def _quote(subjects: list[str]) -> str:
    return ", ".join(f'"{subject}"' for subject in subjects)

"""Configuration of spaces and shared lists, from `spaces.json` and the environment.

The module is cheap to import and independent of any engine. A daemon without spaces imports no other module of this
package.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from punchlist_schemas.system.atomic import atomic_write
from punchlistd.settings import Misconfigured

FILE = "spaces.json"
PORT = 4222
POSTGRES_PORT = 5432
MAX_URLS = 16

POSTGRES = "postgres://"

SPACE_PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}(?![\s\S])"
VARIABLES = (
    "PUNCHLIST_SPACE",
    "PUNCHLIST_SPACE_CREDS",
    "PUNCHLIST_SPACE_CA",
    "PUNCHLIST_SPACE_MONITOR",
    "PUNCHLIST_SPACE_LISTS",
)
"""Environment variables that configure a space without commands. If the first is missing, all are ignored."""


class BadAddress(ValueError):
    """Invalid address of a space's server. The message says why, and what to write instead."""


class Space(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configured space.

    Attributes:
        creds, ca: Paths of files, or "" if none is needed.
        replicas: Number of servers that store each post.
        monitor: Comma-separated addresses of the servers' monitoring endpoints.
        source: Where the space is configured.
    """

    name: str
    urls: tuple[str, ...]
    creds: str = ""
    ca: str = ""
    replicas: int = 1
    monitor: str = ""
    source: Literal["file", "environment"] = "file"

    @property
    def engine(self) -> Literal["nats", "postgres"]:
        return "postgres" if self.urls[0].startswith(POSTGRES) else "nats"


class Checked(NamedTuple):
    """Result of checking a usable space. `made` is True if the check created the space."""

    space: Space
    made: bool
    server: str
    server_version: str


class SharedList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A list of this daemon that is also in a space.

    Attributes:
        position, check: Place after which the local log records posts; empty if the list was joined.
        version: Version of the list at that place; 0 if it was joined.
        sharing: Whether its history is still being posted.
        left: Whether this machine has left the list and no longer follows it.
    """

    conversation: str
    space: str
    position: int = 0
    check: str = ""
    version: int = 0
    sharing: bool = False
    left: bool = False


class Spaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of all spaces and shared lists."""

    spaces: tuple[Space, ...] = ()
    lists: tuple[SharedList, ...] = ()

    def find_space(self, name: str) -> Space | None:
        return next((space for space in self.spaces if space.name == name), None)


def load(data_dir: str, env: Mapping[str, str]) -> Spaces:
    """Load spaces and lists from the file and the environment. A space in the environment replaces the space of the
    same name in the file.

    Raises:
        Misconfigured: The file or a variable is invalid. The file is not changed.
    """
    path = f"{data_dir}/{FILE}"
    try:
        with open(path, "rb") as file:
            stored = msgspec.json.decode(file.read(), type=Spaces)
    except FileNotFoundError:
        stored = Spaces()
    except OSError as error:
        raise Misconfigured(f"{path} can't be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not a valid configuration ({error}). Correct it, or remove it and add the spaces again."
        raise Misconfigured(message) from error
    space, lists = _read_environment(env)
    if space is None:
        return stored
    stored_lists = {(entry.conversation, entry.space) for entry in stored.lists}
    return Spaces(
        (*(other for other in stored.spaces if other.name != space.name), space),
        (*stored.lists, *(entry for entry in lists if (entry.conversation, entry.space) not in stored_lists)),
    )


def save(data_dir: str, spaces: Spaces) -> None:
    """Replace the file atomically. It is readable only by its owner. Spaces from the environment are not written.

    Raises:
        OSError: The file can't be written; it is unchanged.
    """
    path = f"{data_dir}/{FILE}"
    of_file = tuple(space for space in spaces.spaces if space.source == "file")
    config = msgspec.structs.replace(spaces, spaces=of_file)
    atomic_write(path, msgspec.json.format(msgspec.json.encode(config), indent=1) + b"\n", fsync=True)


def normalize_addresses(urls: Iterable[str]) -> tuple[str, ...]:
    """Check addresses and return them in the form in which they are stored.

    Raises:
        BadAddress: An address is invalid, or the addresses are of different engines.
    """
    normalized = tuple(map(normalize_address, urls))
    if len({url.startswith(POSTGRES) for url in normalized}) > 1:
        raise BadAddress("A space is on NATS or on PostgreSQL, not on both: give addresses of one kind.")
    return normalized


def normalize_address(url: str) -> str:
    """Check an address and return it in the form in which it is stored.

    For NATS, this is `tls://HOST:PORT`, or `nats://HOST:PORT` without TLS (only for loopback addresses). For
    PostgreSQL, it is `postgres://USER@HOST:PORT/DATABASE`, with TLS except for loopback addresses.

    Raises:
        BadAddress: The address is of another kind, contains a password, or lacks TLS.
    """
    if url.startswith((POSTGRES, "postgresql://")):
        return _normalize_postgres(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadAddress(f"{url} names no host: write tls://HOST or tls://HOST:PORT.") from None
    if parts.scheme not in ("tls", "nats"):
        raise BadAddress(f"{url} is not an address of a space's server: write tls://HOST or tls://HOST:PORT.")
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, PORT
    if not host or not re.fullmatch(r"[A-Za-z0-9_.:-]+", host):
        raise BadAddress(f"{url} names no host: write tls://HOST or tls://HOST:PORT.")
    if "@" in parts.netloc:
        raise BadAddress("Addresses must not contain user or password: put them in a file and pass it with --creds.")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadAddress(f"{url} has more than a host and a port: write tls://{host}:{port}.")
    if parts.scheme == "nats" and not is_loopback(host):
        raise BadAddress(f"nats://{host} would send every task unencrypted: write tls://{host}.")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _normalize_postgres(url: str) -> str:
    advice = "write postgres://USER@HOST/DATABASE, with :PORT after the host if needed"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or POSTGRES_PORT
    except ValueError:
        raise BadAddress(f"An address of PostgreSQL is incomplete: {advice}.") from None
    if parts.password is not None:  # this message must not repeat the address
        raise BadAddress("Addresses must not contain passwords: put the password in a file and pass it with --creds.")
    user, database = parts.username or "", parts.path[1:]
    if not host or not all(re.fullmatch(r"[A-Za-z0-9_.:-]+", part) for part in (host, user, database)):
        raise BadAddress(f"{url} names no user, host or database: {advice}.")
    if parts.query or parts.fragment:
        raise BadAddress(f"{url} has more than a user, a host and a database: {advice}.")
    return f"{POSTGRES}{user}@{f'[{host}]' if ':' in host else host}:{port}/{database}"


def is_loopback(host: str) -> bool:
    """Return True for localhost and loopback addresses, without a DNS lookup."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def machine_name(env: Mapping[str, str]) -> str:
    """Return the name that other machines see: `PUNCHLIST_MACHINE`, or the host name up to its first dot."""
    chosen = env.get("PUNCHLIST_MACHINE") or socket.gethostname().partition(".")[0]
    return re.sub(r"[^A-Za-z0-9-]+", "-", chosen).strip("-")[:32].rstrip("-") or "machine"


def _without_password(text: str) -> str:
    # A password extends up to an @. A single pattern for both ends would search for the @ from every possible start.
    *before, last = text.split("@")
    return "@".join([*(re.sub(r"//([^/:,]*):.*", r"//\1", part, count=1, flags=re.DOTALL) for part in before), last])


def _read_environment(env: Mapping[str, str]) -> tuple[Space | None, tuple[SharedList, ...]]:
    value = env.get("PUNCHLIST_SPACE", "")
    if not value:
        return None, ()
    names: set[str] = set()
    addresses: list[str] = []
    for url in filter(None, (part.strip() for part in value.split(","))):
        address, slash, name = url.removesuffix("/").rpartition("/")
        if not slash or address.endswith("/") or not re.match(SPACE_PATTERN, name):
            raise Misconfigured(f"PUNCHLIST_SPACE={_without_password(url)} names no space: write tls://HOST/NAME.")
        addresses.append(address)
        names.add(name)
    try:
        urls = normalize_addresses(addresses)
    except BadAddress as error:
        raise Misconfigured(f"PUNCHLIST_SPACE: {error}") from None
    if len(names) != 1 or len(urls) > MAX_URLS:
        raise Misconfigured(
            f"PUNCHLIST_SPACE={_without_password(value)} must name one space, at up to {MAX_URLS} servers: tls://A/NAME,tls://B/NAME."
        )
    name = names.pop()
    files = {variable: env.get(variable, "") for variable in ("PUNCHLIST_SPACE_CREDS", "PUNCHLIST_SPACE_CA")}
    for variable, path in files.items():
        if path and not path.startswith("/"):
            raise Misconfigured(f"{variable}={path} must be an absolute path.")
    space = Space(
        name,
        urls,
        creds=files["PUNCHLIST_SPACE_CREDS"],
        ca=files["PUNCHLIST_SPACE_CA"],
        replicas=0,
        monitor=env.get("PUNCHLIST_SPACE_MONITOR", ""),
        source="environment",
    )
    lists = [part.strip() for part in env.get("PUNCHLIST_SPACE_LISTS", "").split(",")]
    return space, tuple(SharedList(list, name) for list in lists if list)

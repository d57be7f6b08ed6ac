"""Which spaces this daemon knows, and which of its lists are shared there: `spaces.json`, and the environment.

Cheap to import, and free of any engine: a daemon that has no space reads nothing else of this room.
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
"""What configures a space where nobody types commands; the first one decides whether there is any."""


class BadAddress(ValueError):
    """An address can't be that of a space's server; the message says why and what to write."""


class Space(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place that machines share.

    `creds` and `ca` are paths of files, "" where none is needed; `monitor` holds addresses of the servers' monitors,
    with commas between them. `replicas` is how many servers hold each post. `source` says who configured it.
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
    """What was found of a space that can be used; `made` says that it was not there before."""

    space: Space
    made: bool
    server: str
    server_version: str


class SharedList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A list of this daemon that is also in a space.

    The first post that the local log does not hold follows the one at `position`, which has `check`; the list had
    `version` then, if it was shared from here. While `sharing` its history is still being posted; once it was `left` it
    is followed no more.
    """

    conversation: str
    space: str
    position: int = 0
    check: str = ""
    version: int = 0
    sharing: bool = False
    left: bool = False


class Spaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is configured."""

    spaces: tuple[Space, ...] = ()
    lists: tuple[SharedList, ...] = ()

    def named(self, name: str) -> Space | None:
        return next((space for space in self.spaces if space.name == name), None)


def load(data_dir: str, env: Mapping[str, str]) -> Spaces:
    """The file's spaces and lists, and those of the environment, which win over the file's of the same name.

    Raises:
        Misconfigured: The file or a variable can't be used; the file is left as it is.
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
        message = f"{path} is not what punchlist wrote ({error}). Mend it, or move it away and add the spaces again."
        raise Misconfigured(message) from error
    space, lists = _of_environment(env)
    if space is None:
        return stored
    known = {(one.conversation, one.space) for one in stored.lists}
    return Spaces(
        (*(one for one in stored.spaces if one.name != space.name), space),
        (*stored.lists, *(one for one in lists if (one.conversation, one.space) not in known)),
    )


def save(data_dir: str, spaces: Spaces) -> None:
    """Replace the file whole, readable by its owner alone; what the environment configured is not written.

    Raises:
        OSError: It can't be written; the old file stands.
    """
    path = f"{data_dir}/{FILE}"
    kept = msgspec.structs.replace(spaces, spaces=tuple(one for one in spaces.spaces if one.source == "file"))
    atomic_write(path, msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n", fsync=True)


def checked_addresses(urls: Iterable[str]) -> tuple[str, ...]:
    """Addresses as they are stored, all of one engine.

    Raises:
        BadAddress: One can't be used, or they do not belong together.
    """
    checked = tuple(map(checked_address, urls))
    if len({url.startswith(POSTGRES) for url in checked}) > 1:
        raise BadAddress("A space is on NATS or on PostgreSQL, not on both: give addresses of one kind.")
    return checked


def checked_address(url: str) -> str:
    """An address as it is stored.

    It is `tls://HOST:PORT` of NATS, `nats://` without TLS for this machine alone; or
    `postgres://USER@HOST:PORT/DATABASE`, which means TLS but for this machine.

    Raises:
        BadAddress: It is another kind of address, has a password, or lacks TLS.
    """
    if url.startswith((POSTGRES, "postgresql://")):
        return _checked_postgres(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadAddress(f"{url} names no host: write tls://HOST or tls://HOST:PORT.") from None
    if parts.scheme not in ("tls", "nats"):
        raise BadAddress(f"{url} is no address of a space's server: write tls://HOST or tls://HOST:PORT.")
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, PORT
    if not host or not re.fullmatch(r"[A-Za-z0-9_.:-]+", host):
        raise BadAddress(f"{url} names no host: write tls://HOST or tls://HOST:PORT.")
    if "@" in parts.netloc:
        raise BadAddress("An address names no user or password: these stand in a file, which --creds names.")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadAddress(f"{url} has more than a host and a port: write tls://{host}:{port}.")
    if parts.scheme == "nats" and not is_loopback(host):
        raise BadAddress(f"nats://{host} would send every task unencrypted: write tls://{host}.")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _checked_postgres(url: str) -> str:
    wanted = "write postgres://USER@HOST/DATABASE, with :PORT behind the host if need be"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or POSTGRES_PORT
    except ValueError:
        raise BadAddress(f"An address of PostgreSQL is not whole: {wanted}.") from None
    if parts.password is not None:  # and nothing of it is repeated
        raise BadAddress("An address has no password: it stands in a file, which --creds names.")
    user, database = parts.username or "", parts.path[1:]
    if not host or not all(re.fullmatch(r"[A-Za-z0-9_.:-]+", part) for part in (host, user, database)):
        raise BadAddress(f"{url} names no user, host or database: {wanted}.")
    if parts.query or parts.fragment:
        raise BadAddress(f"{url} has more than a user, a host and a database: {wanted}.")
    return f"{POSTGRES}{user}@{f'[{host}]' if ':' in host else host}:{port}/{database}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address alone: nothing is looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def machine_name(env: Mapping[str, str]) -> str:
    """What other machines call this one: `PUNCHLIST_MACHINE`, or the host's name up to its first dot."""
    chosen = env.get("PUNCHLIST_MACHINE") or socket.gethostname().partition(".")[0]
    return re.sub(r"[^A-Za-z0-9-]+", "-", chosen).strip("-")[:32].rstrip("-") or "machine"


def _without_password(text: str) -> str:
    # Up to each @ from where a password begins: one pattern for both would look for the @ from each beginning.
    *before, last = text.split("@")
    return "@".join([*(re.sub(r"//([^/:,]*):.*", r"//\1", part, count=1, flags=re.DOTALL) for part in before), last])


def _of_environment(env: Mapping[str, str]) -> tuple[Space | None, tuple[SharedList, ...]]:
    given = env.get("PUNCHLIST_SPACE", "")
    if not given:
        return None, ()
    names: set[str] = set()
    given_urls: list[str] = []
    for one in filter(None, (part.strip() for part in given.split(","))):
        address, slash, name = one.removesuffix("/").rpartition("/")
        if not slash or address.endswith("/") or not re.match(SPACE_PATTERN, name):
            raise Misconfigured(f"PUNCHLIST_SPACE={_without_password(one)} names no space: write tls://HOST/NAME.")
        given_urls.append(address)
        names.add(name)
    try:
        urls = checked_addresses(given_urls)
    except BadAddress as error:
        raise Misconfigured(f"PUNCHLIST_SPACE: {error}") from None
    if len(names) != 1 or len(urls) > MAX_URLS:
        raise Misconfigured(
            f"PUNCHLIST_SPACE={_without_password(given)} must name one space, at up to {MAX_URLS} servers: tls://A/NAME,tls://B/NAME."
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
    lists = [one.strip() for one in env.get("PUNCHLIST_SPACE_LISTS", "").split(",")]
    return space, tuple(SharedList(one, name) for one in lists if one)

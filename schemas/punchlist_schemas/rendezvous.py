"""Paths of the socket and the data directory, determined by the environment and options.

They don't depend on the working directory. Imports little, because shell prompts load this module.
"""

import binascii
import os

from punchlist_schemas.system import os_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET_NAME = "daemon.sock"
STATUS_NAME = "status"
"""File in the socket's directory with one line for shell prompts."""


def home(env: "Mapping[str, str]") -> str:
    """Return the home directory: $HOME, or the one in the user database if HOME is unset or empty.

    `os.path.expanduser` treats an empty HOME as /, and returns `~` for a user who is not in the database.
    """
    if path := env.get("HOME") or os.environ.get("HOME"):
        return path
    import pwd  # noqa: PLC0415 - rarely needed, and slows down shell prompts

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def data_dir(env: "Mapping[str, str]", option: str | None = None) -> str:
    """Return the data directory.

    It is the first of `--data-dir`, PUNCHLIST_DATA_DIR and $XDG_DATA_HOME/punchlist that is set. The default is
    ~/.local/share/punchlist, or on macOS ~/Library/Application Support/punchlist. A relative XDG_DATA_HOME is ignored,
    as the XDG base directory specification requires.
    """
    if chosen := option or env.get("PUNCHLIST_DATA_DIR"):
        return os.path.abspath(chosen)
    xdg = env.get("XDG_DATA_HOME", "")
    if xdg.startswith("/"):
        return xdg + "/punchlist"
    return os_calls.data_home(home(env).rstrip("/")) + "/punchlist"


def socket_path(env: "Mapping[str, str]", option: str | None = None, data_dir_option: str | None = None) -> str:
    """Return the socket's path.

    It is the first applicable one of `--socket`, PUNCHLIST_SOCKET, $XDG_RUNTIME_DIR/punchlist/daemon.sock,
    /run/user/UID/punchlist/daemon.sock if /run/user/UID exists and is this user's, and run/daemon.sock in the data
    directory.
    """
    if chosen := option or env.get("PUNCHLIST_SOCKET"):
        return os.path.abspath(chosen)
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return f"{runtime}/punchlist/{SOCKET_NAME}"
    run_user = f"/run/user/{os.getuid()}"
    try:
        if os.stat(run_user).st_uid == os.getuid():
            return f"{run_user}/punchlist/{SOCKET_NAME}"
    except OSError:
        pass
    return f"{data_dir(env, data_dir_option)}/run/{SOCKET_NAME}"


def status_path(socket: str) -> str:
    """Return the path of a socket's status file."""
    return f"{os.path.dirname(socket)}/{STATUS_NAME}"


def stopped_path(socket: str) -> str:
    """Return the path of the marker file for a daemon that was stopped on purpose. The next daemon removes the file."""
    return f"{socket}.stopped"


def worker_path(socket: str, data_dir: str, installation: str) -> str:
    """Return the path of the socket of an installation's worker, which serves agents' hosts.

    Args:
        socket: The daemon's socket.
        installation: The installation's directory, such as `sys.prefix`.
    """
    digits = binascii.crc32("\0".join((installation, data_dir, socket)).encode("utf-8", "surrogateescape"))
    return f"{os.path.dirname(socket)}/mcp-{digits:08x}.sock"


def make_directories(path: str, mode: int = 0o700) -> tuple[str, ...]:
    """Create a directory and its parents with this mode, restricted by the umask.

    Returns:
        The created directories, outermost first.
    """
    missing: list[str] = []
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    created: list[str] = []
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
        except FileExistsError:  # another process has just created it
            if not os.path.isdir(folder):
                raise
        else:
            created.append(folder)
    return tuple(created)

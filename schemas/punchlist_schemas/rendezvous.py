"""Where daemon and clients meet: pure functions of an environment mapping, light enough for a shell prompt.

Nothing is ever guessed from the working directory.
"""

import os
from collections.abc import Mapping

from punchlist_schemas.system import os_calls

SOCKET_NAME = "daemon.sock"
STATUS_NAME = "status"
"""File beside the socket that holds one line for shell prompts."""


def home(env: "Mapping[str, str]") -> str:
    """The home directory: $HOME, or the user database's if HOME is unset or empty.

    `os.path.expanduser` takes an empty HOME for /, and returns `~` for a user that the database doesn't have.
    """
    if path := env.get("HOME") or os.environ.get("HOME"):
        return path
    import pwd  # noqa: PLC0415 - seldom needed, and a shell prompt waits for it

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def data_dir(env: "Mapping[str, str]", option: str | None = None) -> str:
    """The data directory: `--data-dir`, PUNCHLIST_DATA_DIR, $XDG_DATA_HOME/punchlist, ~/.local/share/punchlist,
    on macOS ~/Library/Application Support/punchlist.

    A relative XDG_DATA_HOME is ignored, as the XDG base directory specification says.
    """
    if chosen := option or env.get("PUNCHLIST_DATA_DIR"):
        return os.path.abspath(chosen)
    xdg = env.get("XDG_DATA_HOME", "")
    if xdg.startswith("/"):
        return xdg + "/punchlist"
    return os_calls.data_home(home(env).rstrip("/")) + "/punchlist"


def socket_path(env: "Mapping[str, str]", option: str | None = None, data_dir_option: str | None = None) -> str:
    """The socket's path, by the first of the rules of the wire contract that applies.

    `--socket`, PUNCHLIST_SOCKET, $XDG_RUNTIME_DIR/punchlist/daemon.sock, /run/user/UID/punchlist/daemon.sock where
    that directory exists and is ours, and at last run/daemon.sock in the data directory.
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
    """The status file that belongs to a socket."""
    return f"{os.path.dirname(socket)}/{STATUS_NAME}"


def stopped_path(socket: str) -> str:
    """The mark beside a socket that its daemon was stopped on purpose; the next daemon there removes it."""
    return f"{socket}.stopped"


def make_directories(path: str, mode: int = 0o700) -> tuple[str, ...]:
    """Make a directory and its parents with this mode, whatever the umask is.

    Returns:
        Those that were not there, outermost first.
    """
    missing: list[str] = []
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    for one in reversed(missing):
        try:
            os.mkdir(one, mode)
        except FileExistsError:  # somebody else has just made it
            if not os.path.isdir(one):
                raise
        else:
            made.append(one)
    return tuple(made)

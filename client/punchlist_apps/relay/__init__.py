"""`punch agent mcp` as a host starts it: a small process between the host and the worker that serves all sessions.

It imports only what a bare interpreter has at hand, because every session of every host runs one.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = "--own"
"""Option that serves the session in this process instead."""

_VARIABLE = "PUNCHLIST_MCP"
_NAMES = (["agent", "mcp"], ["mcp"])
_SERVED_HERE = frozenset({OWN, "--http", "-h", "--help"})


def is_relayed(words: "Sequence[str]") -> bool:
    """Return whether this command line is served by the worker, as far as can be seen without parsing it."""
    is_server = any([*words[: len(name)]] == name for name in _NAMES)
    return is_server and _SERVED_HERE.isdisjoint(words) and not is_own()


def is_own() -> bool:
    """Return whether the environment says that each session is served by a process of its own."""
    return os.environ.get(_VARIABLE) == "own"


def run(words: "Sequence[str]") -> "int | None":
    """Relay a session and return the exit code; None if no worker is available, and nothing was read from the host."""
    from punchlist.base import host_variables
    from punchlist_apps.relay import frames
    from punchlist_apps.relay.dialing import Dialing
    from punchlist_apps.relay.relay import Relay, show

    try:
        directory = os.getcwd()
    except FileNotFoundError:
        directory = "/"  # it was deleted
    env = host_variables.select(dict(os.environ))
    hello = frames.Hello(os.urandom(16).hex(), is_resumed=False, directory=directory, words=[*words], env=env)
    dialing = Dialing(words, os.environ)
    relay = Relay(dialing.connect, dialing.end, hello)
    code = relay.run()
    if relay.trouble:
        outcome = "this session runs in its own process" if code is None else "this session ends"
        show(f"punch: no worker ({relay.trouble}); {outcome}; run: punch doctor\n")
        dialing.log(relay.trouble)
    return code

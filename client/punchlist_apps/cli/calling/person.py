"""Who works at this command line, and for how long what they begin is theirs. Light enough for a shell prompt."""

import os
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STARTED_MS = 86_400_000
"""How long a task that a person has begun stays theirs: the longest time of a claim."""


def person(env: "Mapping[str, str]") -> str:
    """The actor of what is typed here: PUNCHLIST_ACTOR, or whoever is logged in."""
    return env.get("PUNCHLIST_ACTOR") or env.get("USER") or env.get("LOGNAME") or _account()


def _account() -> str:
    """The name of the account: cron, services and containers set no variables."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "punch"  # a container's user need not have a name

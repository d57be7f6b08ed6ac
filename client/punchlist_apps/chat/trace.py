"""What `--verbose` of `punch chat` and `punch web` prints: the tools that the agent has, and each call's outcome.

It goes to the logger `punchlist_apps.chat`, so programs that embed a chat get it too. Texts of tasks are in it.
"""

import logging
import sys

import msgspec

from punchlist.base.text import clip, safe
from punchlist_apps.chat.receipts import Done
from punchlist_apps.chat.toolset import DIALECT, Wanted

_LOG = logging.getLogger("punchlist_apps.chat")
_MOST = 300
"""Maximum length of a call's arguments and of its outcome in the log, in characters."""


def print_to_stderr() -> None:
    """Print what is logged from now on to standard error, a line each with its time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def log_tools(reader: str) -> None:
    """Log which tools the agent has, and what reads messages: a model by its name, or the rules."""
    _LOG.info("tools available to the agent (%s): [%s]", safe(reader), ", ".join(tool.name for tool in DIALECT.tools))


def log_call(thread: str, id: str, wanted: Wanted, done: Done) -> None:
    if not _LOG.isEnabledFor(logging.INFO):
        return
    arguments = msgspec.json.encode(wanted.arguments).decode("utf-8", "replace")
    outcome = "asks the user" if done.question else "refused" if done.refused else "done"
    texts = [clip(safe(text), _MOST) for text in (thread, id, wanted.tool, arguments, outcome, done.text)]
    _LOG.info("%s %s: %s %s -> %s %s", *texts)

"""Trace of `punch chat --verbose` and `punch web --verbose`: the agent's tools, and each call with its outcome.

It is written to the logger `punchlist_apps.chat`, also in programs that embed a chat. It contains text from tasks.
"""

import logging
import sys

import msgspec

from punchlist.base.text import clip, safe
from punchlist_apps.chat.receipts import ToolResult
from punchlist_apps.chat.toolset import DIALECT, ToolCall

_LOG = logging.getLogger("punchlist_apps.chat")
_MAX_CHARS = 300
"""Maximum length of a call's arguments and of its outcome in the log, in characters."""


def print_to_stderr() -> None:
    """Start printing log records to standard error, one line each, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def log_tools(reader: str) -> None:
    """Log the agent's tools. `reader` is the name of the model that reads messages, or "the rules"."""
    _LOG.info("tools available to the agent (%s): [%s]", safe(reader), ", ".join(tool.name for tool in DIALECT.tools))


def log_call(thread: str, id: str, call: ToolCall, result: ToolResult) -> None:
    if not _LOG.isEnabledFor(logging.INFO):
        return
    arguments = msgspec.json.encode(call.arguments).decode("utf-8", "replace")
    outcome = "asks the user" if result.question else "refused" if result.refused else "done"
    texts = [clip(safe(text), _MAX_CHARS) for text in (thread, id, call.tool, arguments, outcome, result.text)]
    _LOG.info("%s %s: %s %s -> %s %s", *texts)

"""Two-step destruction: the first call is answered with a token, the same call with the token executes.

A token is a keyed hash of the call, of the sentence put to the user and of its expiry, so nothing has to be kept, and a
list that changed in between asks again.
"""

import hmac
import os
from hashlib import blake2b

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlistd.domain.state import State


def _delete_conversation(params: p.ConversationDelete, state: State) -> str:
    return f"erase the conversation {state.conversation} with its {_tasks(len(state.tasks))} and its whole history"


def _delete_tasks(params: p.TaskDelete, state: State) -> str:
    ids = (params.task,) if params.task is not None else params.tasks
    named = [f"#{task.id} {task.title}" for i in ids if i and (task := state.tasks.get(i))]
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")  # noqa: PLR2004
    return f"delete {_tasks(len(named))}: {shown}"


def _clear(params: p.ListClear, state: State) -> str:
    return f"clear the list {state.conversation} with {_tasks(len(state.tasks))}, {state.remaining} of them unfinished"


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


_SUMMARIES = {p.ConversationDelete: _delete_conversation, p.TaskDelete: _delete_tasks, p.ListClear: _clear}
DESTRUCTIVE = tuple(_SUMMARIES)
"""Parameter types of the calls that can be two-step."""

ALWAYS = (p.ConversationDelete,)
"""Those that are two-step on every connection."""


class Confirmer:
    """Gives and checks confirmation tokens.

    Args:
        valid_s: how long a token is good for, in seconds.
    """

    def __init__(self, valid_s: float) -> None:
        """A confirmer with a secret of its own: its tokens die with it."""
        self._secret = os.urandom(32)
        self._valid_ms = int(valid_s * 1000)

    def check(self, params: p.Mutation, state: State, two_step: bool, now_ms: int) -> Rejection | None:
        """None if the call may go on, else the refusal that carries a token.

        Args:
            params: the call.
            state: the list it would destroy something of.
            two_step: whether the connection asked for confirmation.
            now_ms: the time, in milliseconds.
        """
        kind = type(params)
        if kind not in _SUMMARIES or not (two_step or kind in ALWAYS):
            return None
        summary = _SUMMARIES[kind](params, state)  # pyright: ignore[reportArgumentType] — the table pairs them
        token: str | None = getattr(params, "confirm", None)
        if token is not None and self._good(token, params, summary, now_ms):
            return None
        expires = now_ms + self._valid_ms
        again = "The token is not valid (any more). " if token is not None else ""
        return Rejection(
            "confirmation_required",
            f"{again}This would {summary}. To do it, repeat the call with confirm set to the token.",
            {"token": self._token(params, summary, expires), "summary": summary, "expires_at": expires},
        )

    def _good(self, token: str, params: p.Mutation, summary: str, now_ms: int) -> bool:
        expires = token.partition("-")[0]
        if not (expires.isascii() and expires.isdigit()) or int(expires) < now_ms:
            return False
        return hmac.compare_digest(self._token(params, summary, int(expires)).encode(), token.encode())

    def _token(self, params: p.Mutation, summary: str, expires: int) -> str:
        bare = msgspec.structs.replace(params, key=None, confirm=None)
        text = msgspec.json.encode((type(params).__name__, bare, summary, expires))
        return f"{expires}-{blake2b(text, key=self._secret, digest_size=16).hexdigest()}"

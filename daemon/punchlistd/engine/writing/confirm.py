"""Two-step calls: the first one is answered with a token, the same call with the token does it, once.

Tokens are kept in the daemon, so that they work from any process of the user that was asked, and a restart of the
daemon voids them all. Each stands for one call on what the call saw: the tasks that it names as they were, or the whole
list at its version. Its time goes by the monotonic clock.

A call with `ask` is a model's: its token is for a later turn. How turns end is not known here, so the process that got
the token must wait for a moment, unless a program says by `answered` that the person has answered it.
"""

import secrets
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.results import ConfirmationResult
from punchlist_schemas.things import FINISHED
from punchlistd.domain.state import State
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.loaded import Audience

KEPT = 64
"""How many open questions one user may have; the oldest goes."""

_HERE = ", on this machine alone: the space and other machines keep theirs"

_MACHINES = 8
"""How many machines a question names."""

_NAMED = 5
"""How many tasks a question names."""


def _reach(audience: Audience) -> str:
    """Return the end of a question: the machines on which a deletion arrives."""
    if audience.here:
        return _HERE
    names = audience.machines
    named = ", ".join(names[:_MACHINES]) + (", …" if len(names) > _MACHINES else "")
    followed = f"{_count(len(names), 'other')} followed it ({named})" if names else "no other gave a sign of life"
    return f", on every machine of the space {audience.space}: in the last 24 hours {followed}"


def _erased(_params: p.ConversationDelete, state: State) -> str:
    messages = _count(len(state.messages), "message")
    held = f"its {_count(len(state.tasks), 'task')}, {messages} and its whole history"
    return f"erase the conversation {state.conversation} with {held}"


def _deleted(params: p.TaskDelete, state: State) -> str:
    named = [f"#{task.id} {task.title}" for name in _ids(params) if (task := state.tasks.get(name)) is not None]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"delete {_count(len(named), 'task')}: {', '.join(named[:_NAMED])}{more}"


def _edited(params: p.TaskEdit, state: State) -> str:
    task = state.tasks[params.task]
    if isinstance(params.title, str):
        return f'rename #{task.id} {task.title} to "{params.title}"'
    return f"change #{task.id} {task.title}"


def _replaced(params: p.ListReplace, state: State) -> str:
    return f"replace the list {state.conversation} and drop {_count(len(_dropped(params, state)), 'unfinished task')}"


def _cleared(_params: p.ListClear, state: State) -> str:
    tasks = _count(len(state.tasks), "task")
    return f"clear the list {state.conversation} with {tasks}, {state.remaining} of them unfinished"


def _applied(params: ListApply, state: State) -> str:
    deletions = [task for each in _deletions(params) for task in _ids(each)]
    what = f"make {_count(len(params.changes), 'change')} of the list {state.conversation}"
    return f"{what} and delete {_count(len(deletions), 'task')} of it" if deletions else what


def _deletions(params: ListApply) -> list[p.TaskDelete]:
    return [cast(p.TaskDelete, change) for change in params.changes if CHANGES[type(change)] is p.TaskDelete]


def _dropped(params: p.ListReplace, state: State) -> list[str]:
    titles = {task.title for task in params.tasks}
    unfinished = [task for task in state.tasks.values() if task.status not in FINISHED]
    return [] if params.keep_unfinished else [task.id for task in unfinished if task.title not in titles]


def _ids(params: p.TaskDelete) -> tuple[str, ...]:
    return params.tasks if params.task is None else (params.task,)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_SUMMARIES: dict[type[p.Mutation], Callable[[Any, State], str]] = {
    p.ConversationDelete: _erased,
    p.TaskDelete: _deleted,
    p.TaskEdit: _edited,
    ListApply: _applied,
    p.ListReplace: _replaced,
    p.ListClear: _cleared,
}
DESTRUCTIVE = (p.ConversationDelete, p.TaskDelete, p.ListClear, ListApply)
"""The calls that are two-step on a connection that asks for confirmation; `ListApply` is if it deletes tasks."""

ALWAYS = (p.ConversationDelete,)
"""Those that are two-step on every connection."""


class _Asked(msgspec.Struct, frozen=True):
    """An open question about `call` on the state `seen`. `valid` and `expires` are times of the monotonic clock.

    `space` is set if a deletion arrives on other machines.
    """

    user: str | None
    process: int
    method: str
    call: bytes
    seen: tuple[object, ...]
    conversation: str
    summary: str
    valid: float
    expires: float
    space: str = ""


class Confirmer:
    """Gives and takes confirmation tokens.

    Args:
        valid_s: how long a token is good for, in seconds.
        later_s: how long the process that got a model's token has to wait, in seconds.
        clock: the monotonic clock, in seconds.
    """

    def __init__(self, valid_s: float, later_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._valid_s = valid_s
        self._later_s = later_s
        self._clock = clock
        self._asked: dict[str, _Asked] = {}

    def check(  # noqa: PLR0913 - a call, and on what it is asked
        self,
        method: str,
        params: p.Mutation,
        state: State,
        caller: Caller,
        now_ms: int,
        audience: Audience | None = None,
    ) -> Rejection | None:
        """None if the call may go on, else the refusal that carries a token.

        Args:
            method: what is called.
            params: how.
            state: the list that it would change.
            caller: who asks.
            now_ms: the wall clock in milliseconds, which only labels the token's end.
            audience: who else has the list, of one that machines share.
        """
        if not isinstance(params, p.Confirmable) or not _is_two_step(params, caller.confirm):
            return None
        if isinstance(params, p.ListReplace) and not _dropped(params, state):
            return None
        summary, space = _SUMMARIES[type(params)](params, state), ""
        if audience is not None and isinstance(params, p.ConversationDelete):
            summary, space = summary + _reach(audience), "" if audience.here else audience.space
        call, seen, now = _call(params, state), _seen(params, state), self._clock()
        token, process = params.confirm, _process(caller)
        asked = None if token is None else self._asked.get(token)
        message = "" if token is None else "The token is not valid (any more). "
        if token is not None and asked is not None:
            is_meant = asked.call == call and asked.seen == seen and asked.method == method and now < asked.expires
            if is_meant and caller.user in (None, asked.user):
                if params.answered or process != asked.process or now >= asked.valid:
                    del self._asked[token]
                    return None
                message = "The token is for a later turn: put the question to the person, and wait for the answer. "
                return self._question(token, asked, message, now, now_ms)
        later = now + self._later_s if params.ask else now
        asked = _Asked(
            caller.user, process, method, call, seen, state.conversation, summary, later, now + self._valid_s, space
        )
        token = secrets.token_hex(16)
        self._make_room(caller.user, now)
        self._asked[token] = asked
        return self._question(token, asked, message, now, now_ms)

    def _question(self, token: str, asked: _Asked, message: str, now: float, now_ms: int) -> Rejection:
        facts: dict[str, object] = {
            "token": token,
            "summary": asked.summary,
            "expires_at": now_ms + int((asked.expires - now) * 1000),
        }
        if asked.space:
            facts["space"] = asked.space
        if asked.valid > now:
            facts["valid_in_ms"] = int((asked.valid - now) * 1000) + 1
        text = f"{message}This would {asked.summary}. To do it, repeat the call with confirm set to the token."
        return Rejection("confirmation_required", text, facts)

    def _make_room(self, user: str | None, now: float) -> None:
        for token in [token for token, asked in self._asked.items() if asked.expires <= now]:
            del self._asked[token]
        own = [token for token, asked in self._asked.items() if asked.user == user]
        for token in own[: max(0, len(own) - KEPT + 1)]:
            del self._asked[token]

    def get(self, user: str | None, token: str, now_ms: int) -> ConfirmationResult | Rejection:
        """What a token would do; another user's is not there."""
        asked, now = self._asked.get(token), self._clock()
        if asked is None or user not in (None, asked.user) or now >= asked.expires:
            message = "There is no such token: it was used, has expired, or the daemon was restarted since. Ask again."
            return Rejection("not_found", message, {"what": "confirmation", "id": token})
        return ConfirmationResult(
            method=asked.method,
            params=msgspec.Raw(asked.call),
            summary=asked.summary,
            conversation=asked.conversation,
            expires_at=now_ms + int((asked.expires - now) * 1000),
            space=asked.space,
        )


def _is_two_step(params: p.Confirmable, two_step: bool) -> bool:
    """Whether this call has to be confirmed; the person's own words stand for an answer to a model's question."""
    if isinstance(params, ALWAYS):
        return True
    if two_step and isinstance(params, DESTRUCTIVE) and (not isinstance(params, ListApply) or _deletions(params)):
        return True
    return params.ask and not params.quote.strip()


def _process(caller: Caller) -> int:
    return 0 if caller.holder is None else caller.holder.pid


def _call(params: p.Confirmable, state: State) -> bytes:
    """What is asked for, whatever name the conversation was called by."""
    bare = msgspec.structs.replace(
        params, conversation=state.conversation, key=None, confirm=None, ask=False, answered=False, actor=None
    )
    return msgspec.json.encode(bare, order="deterministic")


def _seen(params: p.Confirmable, state: State) -> tuple[object, ...]:
    """What the question was about: it is asked again once that has changed."""
    if isinstance(params, p.TaskDelete | p.TaskEdit):
        names = _ids(params) if isinstance(params, p.TaskDelete) else (params.task,)
        return tuple((name, state.tasks[name].version) for name in names if name in state.tasks)
    return (state.version,)

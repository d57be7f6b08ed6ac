"""Calls that need confirmation: the first call returns a token, and the same call with the token is executed once.

Tokens are kept in the daemon, so they work from any process of the same user, and a restart invalidates them all. Each
is valid for one call on one target: the named tasks at their versions, or the whole list at its version. Their lifetime
is measured on the monotonic clock.

A call with `ask` comes from a model, and its token can be used only in a later turn. The daemon can't detect the end of
a turn, so the process that got the token must wait for a moment. It doesn't have to wait if its program sets `answered`
after the person has answered.
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

MAX_QUESTIONS = 64
"""Maximum number of open questions per user. Above it, the user's oldest question is dropped."""

_HERE = ", on this machine only: the space and other machines keep the list"

_MAX_MACHINES = 8
"""Maximum number of machines named in a question."""

_MAX_TASKS = 5
"""Maximum number of tasks named in a question."""


def _describe_audience(audience: Audience) -> str:
    """Return the end of the question about a deletion, which names the machines that also lose the list."""
    if audience.here:
        return _HERE
    names = audience.machines
    listed = ", ".join(names[:_MAX_MACHINES]) + (", …" if len(names) > _MAX_MACHINES else "")
    others = f"{_format_count(len(names), 'other')} followed it ({listed})" if names else "no other machine followed it"
    return f", on every machine of the space {audience.space}: in the last 24 hours {others}"


def _summarize_erasure(_params: p.ConversationDelete, state: State) -> str:
    messages = _format_count(len(state.messages), "message")
    contents = f"its {_format_count(len(state.tasks), 'task')}, {messages} and its whole history"
    return f"erase the conversation {state.conversation} with {contents}"


def _summarize_deletion(params: p.TaskDelete, state: State) -> str:
    tasks = [f"#{task.id} {task.title}" for id in _task_ids(params) if (task := state.tasks.get(id)) is not None]
    more = f" and {len(tasks) - _MAX_TASKS} more" if len(tasks) > _MAX_TASKS else ""
    return f"delete {_format_count(len(tasks), 'task')}: {', '.join(tasks[:_MAX_TASKS])}{more}"


def _summarize_edit(params: p.TaskEdit, state: State) -> str:
    task = state.tasks[params.task]
    if isinstance(params.title, str):
        return f'rename #{task.id} {task.title} to "{params.title}"'
    return f"change #{task.id} {task.title}"


def _summarize_replacement(params: p.ListReplace, state: State) -> str:
    count = _format_count(len(_find_dropped(params, state)), "unfinished task")
    return f"replace the list {state.conversation} and drop {count}"


def _summarize_clear(_params: p.ListClear, state: State) -> str:
    tasks = _format_count(len(state.tasks), "task")
    return f"clear the list {state.conversation} with {tasks}, {state.remaining} of them unfinished"


def _summarize_changes(params: ListApply, state: State) -> str:
    deletions = [task for deletion in _find_deletions(params) for task in _task_ids(deletion)]
    summary = f"make {_format_count(len(params.changes), 'change')} to the list {state.conversation}"
    return f"{summary} and delete {_format_count(len(deletions), 'task')} from it" if deletions else summary


def _find_deletions(params: ListApply) -> list[p.TaskDelete]:
    return [cast(p.TaskDelete, change) for change in params.changes if CHANGES[type(change)] is p.TaskDelete]


def _find_dropped(params: p.ListReplace, state: State) -> list[str]:
    titles = {task.title for task in params.tasks}
    unfinished = [task for task in state.tasks.values() if task.status not in FINISHED]
    return [] if params.keep_unfinished else [task.id for task in unfinished if task.title not in titles]


def _task_ids(params: p.TaskDelete) -> tuple[str, ...]:
    return params.tasks if params.task is None else (params.task,)


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_SUMMARIES: dict[type[p.Mutation], Callable[[Any, State], str]] = {
    p.ConversationDelete: _summarize_erasure,
    p.TaskDelete: _summarize_deletion,
    p.TaskEdit: _summarize_edit,
    ListApply: _summarize_changes,
    p.ListReplace: _summarize_replacement,
    p.ListClear: _summarize_clear,
}

DESTRUCTIVE = (p.ConversationDelete, p.TaskDelete, p.ListClear, ListApply)
"""Calls that need confirmation on connections with `confirm`. `ListApply` needs it only if it deletes tasks."""

ALWAYS = (p.ConversationDelete,)
"""Calls that need confirmation on every connection."""


class _Question(msgspec.Struct, frozen=True):
    """A call that waits for confirmation.

    Attributes:
        user: The user of the connection that made the call.
        process: The process that got the token; 0 if unknown.
        call: The call as canonical JSON.
        target: The versions of the tasks or the list that the call would change.
        valid_from: Monotonic time from which the process that got the token may use it, in seconds.
        expires_at: Monotonic time at which the token expires, in seconds.
        space: The space, if the call also deletes the list on other machines.
    """

    user: str | None
    process: int
    method: str
    call: bytes
    target: tuple[object, ...]
    conversation: str
    summary: str
    valid_from: float
    expires_at: float
    space: str = ""


class Confirmer:
    """Issues and accepts confirmation tokens.

    Args:
        valid_s: Lifetime of a token, in seconds.
        later_s: How long the process that got the token for a model's call must wait before using it, in seconds.
    """

    def __init__(self, valid_s: float, later_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._valid_s = valid_s
        self._later_s = later_s
        self._clock = clock
        self._questions: dict[str, _Question] = {}

    def check(  # noqa: PLR0913 - a call and its target
        self,
        method: str,
        params: p.Mutation,
        state: State,
        caller: Caller,
        now_ms: int,
        audience: Audience | None = None,
    ) -> Rejection | None:
        """Return None if the call may be executed, else a rejection with a token.

        Args:
            state: The list that the call would change.
            now_ms: Wall-clock time in milliseconds, used only to report when the token expires.
            audience: The other machines that have the list, if it is shared.
        """
        if not isinstance(params, p.Confirmable) or not _is_two_step(params, caller.confirm):
            return None
        if isinstance(params, p.ListReplace) and not _find_dropped(params, state):
            return None
        summary, space = _SUMMARIES[type(params)](params, state), ""
        if audience is not None and isinstance(params, p.ConversationDelete):
            summary, space = summary + _describe_audience(audience), "" if audience.here else audience.space
        call, target, now = _encode_call(params, state), _target_versions(params, state), self._clock()
        token, process = params.confirm, _process_of(caller)
        question = None if token is None else self._questions.get(token)
        message = "" if token is None else "The token is invalid or has expired. "
        if token is not None and question is not None:
            is_same = question.method == method and question.call == call and question.target == target
            if is_same and now < question.expires_at and caller.user in (None, question.user):
                if params.answered or process != question.process or now >= question.valid_from:
                    del self._questions[token]
                    return None
                message = "The token is valid from the next turn on: ask the person, and wait for the answer. "
                return self._build_rejection(token, question, message, now, now_ms)
        valid_from, expires_at = now + (self._later_s if params.ask else 0.0), now + self._valid_s
        question = _Question(
            caller.user, process, method, call, target, state.conversation, summary, valid_from, expires_at, space
        )
        token = secrets.token_hex(16)
        self._drop_old(caller.user, now)
        self._questions[token] = question
        return self._build_rejection(token, question, message, now, now_ms)

    def _build_rejection(self, token: str, question: _Question, message: str, now: float, now_ms: int) -> Rejection:
        facts: dict[str, object] = {
            "token": token,
            "summary": question.summary,
            "expires_at": now_ms + int((question.expires_at - now) * 1000),
        }
        if question.space:
            facts["space"] = question.space
        if question.valid_from > now:
            facts["valid_in_ms"] = int((question.valid_from - now) * 1000) + 1
        text = f"{message}This would {question.summary}. To do it, repeat the call with confirm set to the token."
        return Rejection("confirmation_required", text, facts)

    def _drop_old(self, user: str | None, now: float) -> None:
        for token in [token for token, question in self._questions.items() if question.expires_at <= now]:
            del self._questions[token]
        own = [token for token, question in self._questions.items() if question.user == user]
        for token in own[: max(0, len(own) - MAX_QUESTIONS + 1)]:
            del self._questions[token]

    def get(self, user: str | None, token: str, now_ms: int) -> ConfirmationResult | Rejection:
        """Return the call that a token confirms. Another user's token is rejected as unknown."""
        question, now = self._questions.get(token), self._clock()
        if question is None or user not in (None, question.user) or now >= question.expires_at:
            message = "Unknown token: it was used, has expired, or the daemon has restarted. Ask again."
            return Rejection("not_found", message, {"what": "confirmation", "id": token})
        return ConfirmationResult(
            method=question.method,
            params=msgspec.Raw(question.call),
            summary=question.summary,
            conversation=question.conversation,
            expires_at=now_ms + int((question.expires_at - now) * 1000),
            space=question.space,
        )


def _is_two_step(params: p.Confirmable, two_step: bool) -> bool:
    """Return True if the call has to be confirmed. A model's call is confirmed by the person's own words in `quote`."""
    if isinstance(params, ALWAYS):
        return True
    if two_step and isinstance(params, DESTRUCTIVE) and (not isinstance(params, ListApply) or _find_deletions(params)):
        return True
    return params.ask and not params.quote.strip()


def _process_of(caller: Caller) -> int:
    return 0 if caller.holder is None else caller.holder.pid


def _encode_call(params: p.Confirmable, state: State) -> bytes:
    """Encode a call so that equal calls compare equal, whichever name they use for the conversation."""
    bare = msgspec.structs.replace(
        params,
        conversation=state.conversation,
        key=None,
        turn=None,
        confirm=None,
        ask=False,
        answered=False,
        actor=None,
    )
    return msgspec.json.encode(bare, order="deterministic")


def _target_versions(params: p.Confirmable, state: State) -> tuple[object, ...]:
    """Return the versions of the tasks that a call would change or, if it names none, the version of the list."""
    if isinstance(params, p.TaskDelete | p.TaskEdit):
        ids = _task_ids(params) if isinstance(params, p.TaskDelete) else (params.task,)
        return tuple((id, state.tasks[id].version) for id in ids if id in state.tasks)
    return (state.version,)

"""Three endpoints of an older design for one list, under `/api/agent`, with its names and shapes."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.base.text import joined_text
from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import Request as Call
from punchlist.errors import NotFound, VersionConflict
from punchlist.tools.phrases import describe_gate, describe_wait
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access, confine
from punchlist_apps.web.calls import Handler, json_response
from punchlist_schemas.params import TaskDelete, TaskList, TaskSetStatus
from punchlist_schemas.results import SetStatusResult, TaskListResult
from punchlist_schemas.things import Counts, Task

TASKS = "/api/agent/tasks"
_TRIES = 5
"""Maximum number of tries to complete a task while the list changes."""


def shown(task: Task, sequence: int) -> dict[str, Any]:
    """A task in that design's shape: times in milliseconds, null where there is nothing to say.

    `sequence` is its place in the list, from 1. A task at its gate has `waitsFor` too.
    """
    row: dict[str, Any] = {
        "id": task.id,
        "description": joined_text(task.title, task.description, "\n"),
        "status": "pending" if task.status == "paused" else task.status,
        "sequence": sequence,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "resultSummary": task.result_summary or None,
        "failReason": task.fail_reason or None,
    }
    return row | ({"waitsFor": task.waits_for} if task.waits_for else {})


class Seed:
    """The three endpoints.

    Args:
        access: Whom requests speak for.
        conversation: The list that is meant where the query names none.
    """

    def __init__(self, access: Access, conversation: str) -> None:
        self._access = access
        self._conversation = conversation
        self.handlers: tuple[tuple[str, str, Handler], ...] = (
            ("GET", TASKS, self._list),
            ("DELETE", TASKS + "/{taskId}", self._delete),
            ("POST", TASKS + "/{taskId}/complete", self._complete),
        )

    async def _list(self, request: Request) -> Response:
        client, name, _ = await self._place(request)
        return json_response([shown(task, at) for at, task in enumerate((await _listed(client, name)).tasks, 1)])

    async def _delete(self, request: Request) -> Response:
        client, name, actor = await self._place(request)
        doomed = TaskDelete(conversation=name, task=request.path_params["taskId"], actor=actor)
        await client.forward(Call.of("task.delete", doomed))
        return json_response({"success": True})

    async def _complete(self, request: Request) -> Response:
        client, name, actor = await self._place(request)
        given = await bodies.body(request)
        summary = given.pop("resultSummary", None)
        if given or not (summary is None or isinstance(summary, str)):
            raise Refused("invalid_params", "The body has resultSummary, a text, or nothing.", field="resultSummary")
        params = TaskSetStatus(
            conversation=name,
            task=request.path_params["taskId"],
            status="completed",
            result_summary=summary,
            actor=actor,
        )
        done = await _completed(client, params)
        tasks = (await _listed(client, name)).tasks
        sequence = next((at for at, each in enumerate(tasks, 1) if each.id == done.task.id), 0)
        following = None if done.next_task is None else done.next_task.id
        note = {"note": told} if (told := describe_gate(done.task)) else {}
        return json_response({"success": True, "task": shown(done.task, sequence), "nextTaskId": following, **note})

    async def _place(self, request: Request) -> tuple[AsyncClient, str, str | None]:
        """The connection, the list that is meant, and the actor of changes (None: the connection's name)."""
        scope = self._access.scope(request)
        named = request.query_params.getlist("conversation")
        if len(named) > 1 or set(request.query_params) - {"conversation"}:
            raise Refused("invalid_params", "The query takes conversation, once.", field="conversation")
        name = named[0] if named else scope.list or self._conversation
        confine(scope, name)
        return await self._access.client(scope), name, self._access.actor(scope) or None


async def _listed(client: AsyncClient, name: str) -> TaskListResult:
    try:
        result = await client.forward(Call.of("task.list", TaskList(conversation=name)))
    except NotFound:  # nobody has used the list yet
        return TaskListResult(tasks=(), counts=Counts(), version=0, seq=0, total=0)
    return msgspec.json.decode(result, type=TaskListResult)


async def _completed(client: AsyncClient, params: TaskSetStatus) -> SetStatusResult:
    """Complete a task that has no other result yet.

    Raises:
        Refused: It has been completed with another result, which stays.
        VersionConflict: The list changes faster than it is looked at.
    """
    for attempt in range(_TRIES):
        listed = await _listed(client, params.conversation)
        task = next((each for each in listed.tasks if each.id == params.task), None)
        first = task.result_summary if task is not None and (task.status == "completed" or task.waits_for) else ""
        if first and params.result_summary not in (None, first):
            now = (
                f"was handed in already and {describe_wait(task)}"
                if task and task.waits_for
                else "is completed already"
            )
            said = f"Task #{params.task} {now}; its result stays: {first}"
            raise Refused("illegal_transition", said, task=params.task, resultSummary=first)
        params = msgspec.structs.replace(params, expect_version=listed.version or None)
        try:
            return msgspec.json.decode(await client.forward(Call.of("task.set_status", params)), type=SetStatusResult)
        except VersionConflict:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")

"""Three endpoints for one list under `/api/agent`, with the names and formats of an older design."""

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
_MAX_TRIES = 5
"""Maximum number of tries to complete a task while other clients change the list."""


def _format_task(task: Task, sequence: int) -> dict[str, Any]:
    """Return a task in the older design's format, with times in milliseconds and null for empty members.

    `sequence` is the task's place in the list, counted from 1. A task that waits at its gate also has `waitsFor`.
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
        access: Determines what a request is allowed to do.
        conversation: List to use for queries that don't name one.
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
        client, name, _ = await self._resolve_target(request)
        tasks = (await _list_tasks(client, name)).tasks
        return json_response([_format_task(task, place) for place, task in enumerate(tasks, 1)])

    async def _delete(self, request: Request) -> Response:
        client, name, actor = await self._resolve_target(request)
        params = TaskDelete(conversation=name, task=request.path_params["taskId"], actor=actor)
        await client.forward(Call.of("task.delete", params))
        return json_response({"success": True})

    async def _complete(self, request: Request) -> Response:
        client, name, actor = await self._resolve_target(request)
        body = await bodies.parse_body(request)
        summary = body.pop("resultSummary", None)
        if body or not (summary is None or isinstance(summary, str)):
            detail = "The body may have resultSummary, a string, and nothing else."
            raise Refused("invalid_params", detail, field="resultSummary")
        params = TaskSetStatus(
            conversation=name,
            task=request.path_params["taskId"],
            status="completed",
            result_summary=summary,
            actor=actor,
        )
        result = await _complete_task(client, params)
        tasks = (await _list_tasks(client, name)).tasks
        sequence = next((place for place, task in enumerate(tasks, 1) if task.id == result.task.id), 0)
        next_id = None if result.next_task is None else result.next_task.id
        note = {"note": text} if (text := describe_gate(result.task)) else {}
        task = _format_task(result.task, sequence)
        return json_response({"success": True, "task": task, "nextTaskId": next_id, **note})

    async def _resolve_target(self, request: Request) -> tuple[AsyncClient, str, str | None]:
        """Return the connection, the list, and the actor of changes (None for the connection's name)."""
        scope = self._access.require_scope(request)
        names = request.query_params.getlist("conversation")
        if len(names) > 1 or set(request.query_params) - {"conversation"}:
            detail = "The only query parameter is conversation, and it may be given once."
            raise Refused("invalid_params", detail, field="conversation")
        name = names[0] if names else scope.list or self._conversation
        confine(scope, name)
        return await self._access.get_client(scope), name, self._access.get_actor(scope) or None


async def _list_tasks(client: AsyncClient, name: str) -> TaskListResult:
    try:
        result = await client.forward(Call.of("task.list", TaskList(conversation=name)))
    except NotFound:  # The list hasn't been used yet.
        return TaskListResult(tasks=(), counts=Counts(), version=0, seq=0, total=0)
    return msgspec.json.decode(result, type=TaskListResult)


async def _complete_task(client: AsyncClient, params: TaskSetStatus) -> SetStatusResult:
    """Complete a task. Repeating the request with the same result succeeds.

    Raises:
        Refused: The task already has a different result, which is kept.
        VersionConflict: The list changed during every try.
    """
    for attempt in range(_MAX_TRIES):
        listed = await _list_tasks(client, params.conversation)
        task = next((task for task in listed.tasks if task.id == params.task), None)
        first = task.result_summary if task is not None and (task.status == "completed" or task.waits_for) else ""
        if first and params.result_summary not in (None, first):
            state = (
                f"is already handed in and {describe_wait(task)}" if task and task.waits_for else "is already completed"
            )
            detail = f"Task #{params.task} {state}; its result is kept: {first}"
            raise Refused("illegal_transition", detail, task=params.task, resultSummary=first)
        params = msgspec.structs.replace(params, expect_version=listed.version or None)
        try:
            return msgspec.json.decode(await client.forward(Call.of("task.set_status", params)), type=SetStatusResult)
        except VersionConflict:
            if attempt == _MAX_TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")

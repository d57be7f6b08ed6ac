"""Three endpoints of an older design for one list, under `/api/agent`, with its names and shapes."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.aio import AsyncClient
from punchlist.core import Request as Call
from punchlist.errors import NotFound
from punchlist.http.problem import Refused
from punchlist.web import bodies
from punchlist.web.access import Access, confine
from punchlist.web.calls import JSON, Handler
from punchlist_schemas.params import TaskDelete, TaskList
from punchlist_schemas.results import SetStatusResult, TaskListResult
from punchlist_schemas.things import Task

TASKS = "/api/agent/tasks"


def shown(task: Task, sequence: int) -> dict[str, Any]:
    """A task in that design's shape: times in milliseconds, null where there is nothing to say."""
    return {
        "id": task.id,
        "description": task.description or task.title,
        "status": "pending" if task.status == "paused" else task.status,
        "sequence": sequence,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "resultSummary": task.result_summary or None,
        "failReason": task.fail_reason or None,
    }


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
        return _json([shown(task, at) for at, task in enumerate(await _tasks(client, name), 1)])

    async def _delete(self, request: Request) -> Response:
        client, name, actor = await self._place(request)
        doomed = TaskDelete(conversation=name, task=request.path_params["taskId"], actor=actor)
        await client.forward(Call.of("task.delete", doomed))
        return _json({"success": True})

    async def _complete(self, request: Request) -> Response:
        client, name, actor = await self._place(request)
        given = await bodies.body(request)
        summary = given.pop("resultSummary", None)
        if given or not (summary is None or isinstance(summary, str)):
            raise Refused("invalid_params", "The body has resultSummary, a text, or nothing.", field="resultSummary")
        task = request.path_params["taskId"]
        params = {"conversation": name, "task": task, "status": "completed", "result_summary": summary}
        params |= {"actor": actor} if actor else {}
        done = msgspec.json.decode(await client.forward(Call.raw("task.set_status", params)), type=SetStatusResult)
        sequence = next((at for at, each in enumerate(await _tasks(client, name), 1) if each.id == task), 0)
        following = None if done.next_task is None else done.next_task.id
        return _json({"success": True, "task": shown(done.task, sequence), "nextTaskId": following})

    async def _place(self, request: Request) -> tuple[AsyncClient, str, str | None]:
        """The connection, the list that is meant, and the actor of changes (None: the connection's name)."""
        scope = self._access.scope(request)
        named = request.query_params.getlist("conversation")
        if len(named) > 1 or set(request.query_params) - {"conversation"}:
            raise Refused("invalid_params", "The query takes conversation, once.", field="conversation")
        name = named[0] if named else scope.list or self._conversation
        confine(scope, name)
        return await self._access.client(scope), name, self._access.person(scope) or None


async def _tasks(client: AsyncClient, name: str) -> tuple[Task, ...]:
    try:
        result = await client.forward(Call.of("task.list", TaskList(conversation=name)))
    except NotFound:  # nobody has used the list yet
        return ()
    return msgspec.json.decode(result, type=TaskListResult).tasks


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON, headers={"cache-control": "no-store"})

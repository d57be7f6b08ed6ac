"""Every route with every token, over real requests: access, and no effects of rejected requests."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from punchlist import AsyncClient, connect_async
from punchlist_apps.web import app
from punchlist_apps.web.access import Access
from punchlist_testing.web import Answer, Web, parse_answer, served

SCOPES: dict[str, tuple[dict[str, Any] | None, str]] = {
    "owner": ({}, "open"),
    "ann": ({"user": "ann"}, "anns"),
    "ann>": ({"user": "ann"}, "open"),
    "list": ({"list": "open"}, "open"),
    "list>": ({"list": "open"}, "secret"),
    "ro": ({"mode": "ro"}, "open"),
    "ro-list": ({"mode": "ro", "list": "open"}, "open"),
    "ro-list>": ({"mode": "ro", "list": "open"}, "secret"),
    "expired": ({}, "open"),
    "none": (None, "open"),
}
"""Scope of each column's token, and the list that its requests use. In columns with >, the scope excludes the list."""

MATRIX = """
                                            owner  ann   ann>  list  list>  ro    ro-list  ro-list>  expired  none
GET    /                                    200    200   200   200   200    200   200      200       200      200
GET    /agent-tasks                         200    200   200   200   200    200   200      200       200      200
GET    /chat                                200    200   200   200   200    200   200      200       200      200
GET    /{name}                              200    200   200   200   200    200   200      200       200      200
GET    /api/v1/openapi.json                 200    200   200   200   200    200   200      200       200      200
POST   /api/session                         200    200   200   200   200    200   200      200       200      200
GET    /api/v1/status                       200    200   200   403   403    200   403      403       401      401
GET    /api/v1/resolve                      200    200   200   403   403    200   403      403       401      401
GET    /api/v1/confirmations/{token}        200    200   404   403   403    200   403      403       401      401
GET    /api/v1/agents                       200    200   404   200   403    200   200      403       401      401
GET    /api/v1/agents of all lists          200    200   200   200   200    200   200      200       401      401
GET    /api/v1/conversations                200    200   200   403   403    200   403      403       401      401
GET    /api/v1/search                       200    200   200   403   403    200   403      403       401      401
GET    /api/v1/feed                         200    200   404   200   403    200   200      403       401      401
GET    /api/v1/feed?board=1                 200    200   200   403   403    200   403      403       401      401
GET    /api/v1/feed?happened=1              200    200   200   200   200    200   200      200       401      401
GET    /api/v1/feed?board=1&happened=1      200    200   200   403   403    200   403      403       401      401
GET    /api/v1/events                       200    200   200   403   403    200   403      403       401      401
GET    /api/v1/events/recent                200    200   200   200   200    200   200      200       401      401
GET    /api/v1/events/recent of a list      200    200   404   200   403    200   200      403       401      401
GET    LIST                                 200    200   404   200   403    200   200      403       401      401
PUT    LIST                                 200    200   404   200   403    403   403      403       401      401
PUT    LIST as a chat                       200    200   404   403   403    403   403      403       401      401
PUT    LIST for a user                      200    200   403   403   403    403   403      403       401      401
PATCH  LIST                                 200    200   404   200   403    403   403      403       401      401
DELETE LIST                                 428    428   404   428   403    403   403      403       401      401
PUT    LIST/sessions/{session}              200    200   404   403   403    403   403      403       401      401
DELETE LIST/sessions/{session}              200    200   404   200   403    403   403      403       401      401
GET    LIST/tasks                           200    200   404   200   403    200   200      403       401      401
GET    LIST/tasks by two names              422    422   422   422   403    422   422      403       401      401
POST   LIST/tasks                           201    201   404   201   403    403   403      403       401      401
POST   LIST/tasks by two names              422    422   422   422   403    403   403      403       401      401
DELETE LIST/tasks                           200    200   404   200   403    403   403      403       401      401
GET    LIST/tasks/{task}                    200    200   404   200   403    200   200      403       401      401
GET    LIST/tasks/{task}/explanation        200    200   404   200   403    200   200      403       401      401
PATCH  LIST/tasks/{task}                    200    200   404   200   403    403   403      403       401      401
DELETE LIST/tasks/{task}                    200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/status             200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/notes              200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/approval           200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/move               200    200   404   200   403    403   403      403       401      401
POST   LIST/claim                           200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/claim              200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/renew              200    200   404   200   403    403   403      403       401      401
POST   LIST/tasks/{task}/release            200    200   404   200   403    403   403      403       401      401
POST   LIST/undo                            200    200   404   200   403    403   403      403       401      401
POST   LIST/changes                         200    200   404   200   403    403   403      403       401      401
POST   LIST/replace                         200    200   404   200   403    403   403      403       401      401
POST   LIST/clear                           200    200   404   200   403    403   403      403       401      401
POST   LIST/turn-end                        200    200   404   200   403    403   403      403       401      401
GET    LIST/messages                        200    200   404   200   403    200   200      403       401      401
GET    LIST/messages/{message}              200    200   404   200   403    200   200      403       401      401
POST   LIST/messages                        201    201   404   201   403    403   403      403       401      401
POST   LIST/messages/{message}/retract      200    200   404   200   403    403   403      403       401      401
GET    LIST/events                          200    200   404   200   403    200   200      403       401      401
GET    LIST/events/stream                   200    200   404   200   403    200   200      403       401      401
GET    LIST/presence                        200    200   404   200   403    200   200      403       401      401
GET    LIST/keys/{key}                      200    200   404   200   403    200   200      403       401      401
GET    /api/agent/tasks                     200    200   200   200   403    200   200      403       401      401
DELETE /api/agent/tasks/{taskId}            200    200   404   200   403    403   403      403       401      401
POST   /api/agent/tasks/{taskId}/complete   200    200   404   200   403    403   403      403       401      401
GET    /api/v1/chats                        200    200   200   200   403    200   200      403       401      401
POST   /api/v1/chats                        201    201   201   201   403    403   403      403       401      401
GET    /api/v1/chats/{thread}               200    200   404   200   403    200   200      403       401      401
POST   /api/v1/chats/{thread}               202    202   404   202   403    403   403      403       401      401
POST   /api/v1/chats/{thread}/stop          200    200   404   200   403    403   403      403       401      401
GET    /api/v1/chats/{thread}/turns/{turn}  200    200   404   200   403    200   200      403       401      401
POST   /ag-ui                               200    200   200   200   403    403   403      403       401      401
POST   /ag-ui in a thread                   200    200   200   200   403    403   403      403       401      401
POST   /chatkit                             200    200   200   403   403    403   403      403       401      401
GET    /mcp                                 404    404   404   404   404    404   404      404       404      404
POST   /mcp                                 405    405   405   405   405    405   405      405       405      405
"""
"""The status of each request. A note after a path distinguishes rows with the same route.

LIST stands for the path of a list: `/api/v1/conversations/{conversation}`.
"""

LIST = "/api/v1/conversations/{conversation}"

NOT_OURS = {"GET /mcp", "POST /mcp"}
"""Routes of other servers, which this server must not serve."""

OPTIONAL = {"POST /chatkit"}
"""Routes that need an extra."""


class World(NamedTuple):
    """A server with its lists and threads; `threads` maps each list to its thread and turn."""

    web: Web
    threads: dict[str, tuple[str, str]]

    def preparing_token(self, target: str) -> str:
        return self.web.session(user="ann") if target == "anns" else self.web.token

    async def ask(self, target: str, verb: str, path: str, body: Any = None) -> Answer:
        answer = await self.web.ask(verb, path, body, Authorization=f"Bearer {self.preparing_token(target)}")
        assert answer.status < 300 or answer.status == 428, answer
        return answer


Values = dict[str, str]
Prepare = Callable[[World, str, Values], Awaitable[None]]


_NUMBERS = count()


def make_id() -> str:
    return f"x{next(_NUMBERS)}"


async def add_task(world: World, target: str, values: Values, **more: Any) -> None:
    path = f"/api/v1/conversations/{target}/tasks"
    added = await world.ask(target, "POST", path, {"title": f"canary of {target}", **more})
    values["task"] = values["taskId"] = added.value["task"]["id"]


async def claim_task(world: World, target: str, values: Values) -> None:
    await add_task(world, target, values)
    path = f"/api/v1/conversations/{target}/tasks/{values['task']}/claim"
    await world.ask(target, "POST", path, {"owner": "w"})


async def gate_task(world: World, target: str, values: Values) -> None:
    await add_task(world, target, values, gate={"yes": True})
    path = f"/api/v1/conversations/{target}/tasks/{values['task']}/status"
    await world.ask(target, "POST", path, {"status": "completed"})


async def add_message(world: World, target: str, values: Values) -> None:
    body = {"role": "tool", "content": f"canary of {target}"}
    created = await world.ask(target, "POST", f"/api/v1/conversations/{target}/messages", body)
    values["message"] = created.value["message"]["message"]


async def attach(world: World, target: str, values: Values) -> None:
    await world.ask(target, "PUT", f"/api/v1/conversations/{target}/sessions/{values['session']}", {})


async def attach_elsewhere(world: World, target: str, values: Values) -> None:
    await attach(world, "anns" if target == "anns" else "secret", values)


async def ask_to_delete(world: World, target: str, values: Values) -> None:
    values["token"] = (await world.ask(target, "DELETE", f"/api/v1/conversations/{target}")).value["token"]


class Request(NamedTuple):
    """Query and body of a row's requests, with placeholders in braces for prepared values."""

    query: str = ""
    body: Any = None
    prepare: Prepare | None = None


REQUESTS: dict[str, Request] = {
    "POST /api/session": Request(body={"ticket": "{ticket}"}),
    "GET /api/v1/resolve": Request("path=/"),
    "GET /api/v1/confirmations/{token}": Request(prepare=ask_to_delete),
    "GET /api/v1/agents": Request("conversation={conversation}"),
    "GET /api/v1/search": Request("query=canary"),
    "GET /api/v1/feed": Request("rows={conversation}&once=1"),
    "GET /api/v1/feed?board=1": Request("once=1"),
    "GET /api/v1/feed?happened=1": Request("once=1"),
    "GET /api/v1/feed?board=1&happened=1": Request("once=1"),
    "GET /api/v1/events": Request("after=0"),
    "GET /api/v1/events/recent of a list": Request("conversation={conversation}"),
    "PUT LIST": Request(body={}),
    "PUT LIST as a chat": Request(body={"kind": "chat"}),
    "PUT LIST for a user": Request(body={"user": "{user}"}),
    "PATCH LIST": Request(body={"title": "{fresh}"}),
    "PUT LIST/sessions/{session}": Request(body={}, prepare=attach_elsewhere),
    "DELETE LIST/sessions/{session}": Request(prepare=attach),
    "GET LIST/tasks by two names": Request("conversation=secret"),
    "POST LIST/tasks": Request(body={"title": "x"}),
    "POST LIST/tasks by two names": Request(body={"title": "x", "conversation": "secret"}),
    "DELETE LIST/tasks": Request("task={task}"),
    "PATCH LIST/tasks/{task}": Request(body={"title": "{fresh}"}),
    "POST LIST/tasks/{task}/status": Request(body={"status": "completed"}),
    "POST LIST/tasks/{task}/notes": Request(body={"text": "n"}),
    "POST LIST/tasks/{task}/approval": Request(body={}, prepare=gate_task),
    "POST LIST/tasks/{task}/move": Request(body={"to_end": True}),
    "POST LIST/claim": Request(body={"owner": "w"}),
    "POST LIST/tasks/{task}/claim": Request(body={"owner": "w"}),
    "POST LIST/tasks/{task}/renew": Request(body={"owner": "w"}, prepare=claim_task),
    "POST LIST/tasks/{task}/release": Request(body={"owner": "w"}, prepare=claim_task),
    "POST LIST/undo": Request(body={"of": "punch web"}),
    "POST LIST/changes": Request(body={"changes": [{"method": "task.note", "task": "{task}", "text": "n"}]}),
    "POST LIST/replace": Request(body={"tasks": [{"title": "{fresh}"}]}),
    "POST LIST/clear": Request(body={}),
    "POST LIST/turn-end": Request(body={}),
    "GET LIST/messages/{message}": Request(prepare=add_message),
    "POST LIST/messages": Request(body={"role": "tool", "content": "x"}),
    "POST LIST/messages/{message}/retract": Request(body={}, prepare=add_message),
    "GET LIST/events": Request("after=0"),
    "GET LIST/events/stream": Request("after=0"),
    "GET /api/agent/tasks": Request("conversation={conversation}"),
    "DELETE /api/agent/tasks/{taskId}": Request("conversation={conversation}"),
    "POST /api/agent/tasks/{taskId}/complete": Request("conversation={conversation}", body={}),
    "GET /api/v1/chats": Request("list={conversation}"),
    "POST /api/v1/chats": Request(body={"list": "{conversation}"}),
    "POST /api/v1/chats/{thread}": Request(body={"text": "hello"}),
    "POST /api/v1/chats/{thread}/stop": Request(body={}),
    "POST /ag-ui": Request("list={conversation}", {"threadId": "{fresh}", "runId": "r", "messages": []}),
    "POST /ag-ui in a thread": Request("list={conversation}", {"threadId": "{thread}", "runId": "r", "messages": []}),
    "POST /chatkit": Request(body={"type": "threads.list", "params": {}}),
    "POST /mcp": Request(body={}),
}
"""Query, body and preparation of the rows that need them."""


def parse_matrix() -> dict[str, dict[str, int]]:
    """Parse the matrix into the status by row and column."""
    head, *lines = MATRIX.strip("\n").split("\n")
    columns = head.split()
    assert columns == [*SCOPES], "each scope has its column"
    matrix: dict[str, dict[str, int]] = {}
    for line in lines:
        words = line.split()
        cells = [int(word) for word in words[-len(columns) :]]
        name = " ".join(words[: -len(columns)])
        assert len(cells) == len(columns) and name not in matrix, name
        matrix[name] = dict(zip(columns, cells, strict=True))
    return matrix


ROWS = parse_matrix()


def parse_route(row: str) -> str:
    verb, path = row.split()[:2]
    return f"{verb} {path.partition('?')[0].replace('LIST', LIST)}"


def list_routes(web: Web) -> set[str]:
    access = Access(AsyncClient(autostart=False), web.keys)
    return {f"{verb} {path}" for verb, path, _ in app.build_endpoints(access, web.keys, anyio.Event(), app.Setup())}


async def test_matrix_has_a_row_for_each_route(web: Web) -> None:
    """Add a row for each new route, with an expected status for each scope."""
    assert {parse_route(row) for row in ROWS} - NOT_OURS - OPTIONAL == list_routes(web) - OPTIONAL
    assert set(REQUESTS) <= set(ROWS)


@asynccontextmanager
async def make_world(tmp_path: Path) -> AsyncGenerator[World]:
    async with served(tmp_path) as web:
        world = World(web, {})
        for target, user in (("open", ""), ("secret", ""), ("anns", "ann")):
            await web.ask("PUT", f"/api/v1/conversations/{target}", {"user": user} if user else {})
            created = await world.ask(target, "POST", "/api/v1/chats", {"list": target})
            message = {"text": "hello", "turn": "u1"}
            thread = f"/api/v1/chats/{created.value['thread']}"
            await world.ask(target, "POST", thread, message)
            await wait_for_answer(world, target, thread)
            world.threads[target] = (created.value["thread"], "u1")
        yield world


async def wait_for_answer(world: World, target: str, thread: str) -> None:
    with anyio.fail_after(30):
        while (await world.ask(target, "GET", thread)).value["messages"][-1]["role"] != "assistant":
            await anyio.lowlevel.checkpoint()


def fill(body: Any, values: Values) -> bytes:
    """Encode a body as JSON and fill in the prepared values."""
    text = "" if body is None else msgspec.json.encode(body).decode()
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text.encode()


def make_token(world: World, column: str) -> str | None:
    scope, _ = SCOPES[column]
    if scope is None:
        return None
    if column == "owner":
        return f"Bearer {world.web.token}"
    return f"Bearer {world.web.get_session(-1 if column == 'expired' else 10_000, **scope)}"


async def send(web: Web, verb: str, path: str, data: bytes, token: str | None) -> Answer:
    """Send a request. Read only the beginning of an endless stream."""
    more = {"Content-Type": "application/json", "Content-Length": str(len(data))} if data else {}
    with anyio.fail_after(30):
        async with await anyio.connect_tcp("127.0.0.1", web.port) as stream:
            await stream.send(web.head(verb, path, {"Connection": "close", "Authorization": token, **more}) + data)
            received = b""
            try:
                while b"event-stream" not in received or b"event: " not in received:
                    received += await stream.receive()
            except anyio.EndOfStream:
                pass
    return parse_answer(received)


async def test_each_token_can_do_what_its_scope_allows(tmp_path: Path) -> None:
    wrong: list[Any] = []
    async with make_world(tmp_path) as world, connect_async(socket=world.web.daemon.socket, autostart=False) as log:
        for row, cells in ROWS.items():
            if parse_route(row) in OPTIONAL - list_routes(world.web):
                continue
            for column, expected in cells.items():
                before, answer, after = await exercise(world, log, row, column)
                is_reading = answer.status >= 400 or row.startswith("GET")
                hides = column.endswith(">") or answer.status >= 400
                canary = f"canary of {SCOPES[column][1]}".encode()
                if answer.status != expected or (is_reading and after != before) or (hides and canary in answer.body):
                    wrong.append((row, column, expected, answer.status, after - before, answer.body[-300:]))
    assert wrong == []


async def exercise(world: World, log: AsyncClient, row: str, column: str) -> tuple[int, Answer, int]:
    """Send a row's request with a column's token; return the response, and the log's positions before and after it."""
    request, target = REQUESTS.get(row, Request()), SCOPES[column][1]
    verb, path = row.split()[:2]
    thread, turn = world.threads[target]
    values = {"conversation": target, "name": "app.js", "key": "k", "thread": thread, "turn": turn}
    values |= {"session": make_id(), "fresh": make_id(), "ticket": world.web.keys.issue_ticket()}
    values["user"] = "ann" if column == "ann" else "bob"
    await add_task(world, target, values)
    if request.prepare is not None:
        await request.prepare(world, target, values)
    target_path = path.replace("LIST", LIST).format(**values)
    if request.query:
        target_path += ("&" if "?" in target_path else "?") + request.query.format(**values)
    before = (await log.status()).seq
    answer = await send(world.web, verb, target_path, fill(request.body, values), make_token(world, column))
    if answer.status == 202:  # otherwise the running turn would count as a change by the next request
        await wait_for_answer(world, target, target_path)
    return before, answer, (await log.status()).seq

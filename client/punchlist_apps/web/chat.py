"""Endpoints of the chat page, and the event stream of a running turn.

A turn runs to completion even if no browser follows it. The events in its stream are numbered, so that a client can
resume after the last one it received.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.base.project import own
from punchlist.calls.call import Call, itself
from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.chat.models.port import Model
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.usage import Limits
from punchlist_apps.chat.worker import Worker
from punchlist_apps.common.http.keys import Scope
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.common.http.revocation import ENDED, run_while_valid, set_last_bytes
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access, confine
from punchlist_apps.web.calls import event_stream, json_response
from punchlist_apps.web.routes import API
from punchlist_schemas.params import EventWait

_MAX_MESSAGES = 100
_MAX_DIGITS = 200
"""Maximum number of digits in a Last-Event-ID. A longer one is treated as 0."""
_KEEPALIVE_S = 15.0
_POLL_MS = 1_000
"""Longest wait for another process's answer until a keep-alive is sent, in milliseconds."""


class Panel:
    """Serves the chats that a request's token gives access to.

    Args:
        access: Determines what a request is allowed to do.
        ending: Set at shutdown. Unfinished turns are left to the next worker.
        model: Model that interprets messages; None to use only the rules.
        limits: Limits on the model's work.
    """

    def __init__(self, access: Access, ending: anyio.Event, model: Model | None, limits: Limits) -> None:
        self._access = access
        self._ending = ending
        self._worker = Worker(model, limits=limits)
        self._turns: dict[str, asyncio.Task[Any]] = {}

    @property
    def handlers(self) -> list[tuple[str, str, Any]]:
        thread = f"{API}/chats/{{thread}}"
        return [
            ("GET", f"{API}/chats", self.list_threads),
            ("POST", f"{API}/chats", self.open_thread),
            ("GET", thread, self.list_messages),
            ("POST", thread, self.send_message),
            ("POST", f"{thread}/stop", self.stop_turn),
            ("GET", f"{thread}/turns/{{turn}}", self.follow_turn),
        ]

    async def list_threads(self, request: Request) -> Response:
        client, scope = await self.get_caller(request)
        name = resolve_list(request.query_params.get("list"), scope)
        threads = [
            {"thread": conversation.conversation, "title": conversation.title}
            for conversation in await Thread.find_all(client, name)
        ]
        return json_response({"threads": threads})

    async def open_thread(self, request: Request) -> Response:
        client, scope = await self.get_caller(request)
        body = await bodies.parse_body(request)
        if set(body) - {"list", "title"} or not all(isinstance(value, str) for value in body.values()):
            raise Refused("invalid_params", "The body may have list and title, both strings.", field="list")
        name = resolve_list(body.get("list"), scope)
        thread = await Thread.open(client, name, title=body.get("title", "")[:200])
        return json_response({"thread": thread.id, "list": name}, 201)

    async def list_messages(self, request: Request) -> Response:
        thread = await self._find_thread(request)
        page = await thread.queue.messages(roles=("user", "assistant"), limit=_MAX_MESSAGES, order="desc")
        messages = [
            {"id": message.message, "role": message.role, "at": message.at, **message.content}
            for message in page.messages[::-1]
        ]
        return json_response(
            {"thread": thread.id, "list": thread.list, "messages": messages, "has_more": page.has_more}
        )

    async def send_message(self, request: Request) -> Response:
        thread = await self._find_thread(request)
        body = await bodies.parse_body(request)
        text, turn = body.get("text"), body.get("turn")
        if set(body) - {"text", "turn"} or not isinstance(text, str) or not isinstance(turn, str | None):
            detail = "The body must have text, a string, and may have turn, an id."
            raise Refused("invalid_params", detail, field="text")
        try:
            turn = await self.submit_message(thread, text, turn, request)
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="text") from None
        return json_response({"turn": turn}, 202)

    async def stop_turn(self, request: Request) -> Response:
        return json_response({"stopped": await (await self._find_thread(request)).stop()})

    async def follow_turn(self, request: Request) -> Response:
        """Stream the events of a turn after `Last-Event-ID`, up to its answer.

        Unless the token is read-only, this resumes an unfinished turn.
        """
        thread = await self._find_thread(request)
        turn = request.path_params["turn"]
        await thread.get_message(turn)
        after = request.headers.get("last-event-id", "0")
        if self._access.require_scope(request).mode == "rw":
            self.start_turn(thread, turn, request)
        set_last_bytes(request.scope, _format_event(0, "failed", {"text": ENDED}) + _format_event(0, "end", {}))
        number = int(after) if after.isdecimal() and len(after) < _MAX_DIGITS else 0
        events = self.stream_turn(thread, turn, number)
        return event_stream(b":\n\n" if event is None else _format_event(*event) async for event in events)

    async def stream_turn(
        self, thread: Thread, turn: str, after: int = 0
    ) -> AsyncGenerator[tuple[int, str, dict[str, Any]] | None]:
        """Yield the events of a turn after number `after`, up to its end. None is a keep-alive."""
        place, seq = thread.turn_path(turn), 0
        while not self._worker.live.has(place):
            if (answer := await thread.find_answer(turn)) is not None:
                yield 1, "message", answer
                yield 2, "end", {}
                return
            if place in self._turns:
                break
            if self._ending.is_set():
                return
            # Another process may run this turn. Its answer arrives through the log.
            wait = EventWait(
                after=seq or (await thread.get_message(turn)).seq, conversation=thread.id, timeout_ms=_POLL_MS
            )
            seq = (await thread.client.run(Call("event.wait", wait, itself))).next
            yield None
        events = self._worker.live.follow(place, after)
        pending: asyncio.Future[Any] | None = None
        try:
            while not self._ending.is_set():
                pending = pending or asyncio.ensure_future(anext(events))
                done, _ = await asyncio.wait([pending], timeout=_KEEPALIVE_S)
                if not done:
                    yield None
                    continue
                event = pending.result()
                pending = None
                yield event
                if event[1] == "end":
                    return
        finally:
            if pending is not None:
                pending.cancel()

    async def submit_message(self, thread: Thread, text: str, turn: str | None, request: Request) -> str:
        """Append a user's message, start its turn and return the turn's id. Unanswered earlier messages go first.

        Raises:
            KeyConflict: `turn` was used with different text.
            ValueError: The text or the id is invalid.
        """
        await thread.enqueue_all()
        turn = await thread.send(text, turn=turn)
        self.start_turn(thread, turn, request)
        return turn

    def start_turn(self, thread: Thread, turn: str, request: Request) -> None:
        """Run a turn in the background, unless it is already running, for as long as the request's token is valid."""
        thread.person = self._access.get_person(self._access.require_scope(request))
        place = thread.turn_path(turn)
        if place not in self._turns:
            self._worker.live.discard_unanswered(place)
            task = self._turns[place] = asyncio.ensure_future(self._run_turn(thread, turn, request))
            task.add_done_callback(lambda _: self._turns.pop(place, None))

    async def _run_turn(self, thread: Thread, turn: str, request: Request) -> None:
        async with anyio.create_task_group() as group:

            async def stop_at_shutdown() -> None:
                await self._ending.wait()
                group.cancel_scope.cancel()

            async def stop_if_revoked() -> None:
                with run_while_valid(request.scope):
                    await anyio.sleep_forever()
                # Without the daemon, the turn can't change anything either.
                with suppress(PunchlistError):
                    await thread.stop(turn)

            group.start_soon(stop_at_shutdown)
            group.start_soon(stop_if_revoked)
            try:
                last = "message", await self._worker.answer(thread, turn)
            except PunchlistError as error:
                # For example, the disk is full. The turn restarts when a client follows it again.
                last = "failed", {"text": str(error)}
            self._worker.live.finish(thread.turn_path(turn), *last)
            group.cancel_scope.cancel()

    async def get_caller(self, request: Request) -> tuple[AsyncClient, Scope]:
        scope = self._access.require_scope(request)
        return await self._access.get_client(scope), scope

    async def _find_thread(self, request: Request) -> Thread:
        client, scope = await self.get_caller(request)
        try:
            thread = await Thread.find(client, own(request.path_params["thread"], scope.user))
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="thread") from None
        confine(scope, thread.list)
        return thread


def resolve_list(name: str | None, scope: Scope) -> str:
    """Return the list with this name, by default the token's list or `default`.

    Raises:
        Refused: The token is limited to another list.
    """
    conversation = own(name or scope.list or "default", scope.user)
    confine(scope, conversation)
    return conversation


def _format_event(number: int, name: str, data: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, name.encode(), msgspec.json.encode(data))

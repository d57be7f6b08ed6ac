"""The panel of `punch chat`: its endpoints, and the stream of a running turn.

A turn that was sent is worked on to its end, whether or not a browser still looks. What a stream says has numbers, so
one that was cut goes on behind the last.
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

_SHOWN = 100
_DIGITS = 200
_QUIET_S = 15.0
_LOOK_MS = 1_000


class Panel:
    """Serves the chats of whom a request speaks for.

    Args:
        access: Finds out what a request may do.
        ending: Set when the server ends; then turns are left to the next worker.
        model: Who reads messages; None: the rules alone.
        limits: How long and how much it may work.
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
            ("GET", f"{API}/chats", self.threads),
            ("POST", f"{API}/chats", self.begin),
            ("GET", thread, self.messages),
            ("POST", thread, self.send),
            ("POST", f"{thread}/stop", self.stop),
            ("GET", f"{thread}/turns/{{turn}}", self.follow),
        ]

    async def threads(self, request: Request) -> Response:
        client, scope = await self.caller(request)
        name = named(request.query_params.get("list"), scope)
        found = await Thread.about(client, name)
        return json_response({"threads": [{"thread": one.conversation, "title": one.title} for one in found]})

    async def begin(self, request: Request) -> Response:
        client, scope = await self.caller(request)
        given = await bodies.body(request)
        if set(given) - {"list", "title"} or not all(isinstance(one, str) for one in given.values()):
            raise Refused("invalid_params", "The body has list and title, both texts.", field="list")
        name = named(given.get("list"), scope)
        thread = await Thread.open(client, name, title=given.get("title", "")[:200])
        return json_response({"thread": thread.id, "list": name}, 201)

    async def messages(self, request: Request) -> Response:
        thread = await self._thread(request)
        page = await thread.queue.messages(roles=("user", "assistant"), limit=_SHOWN, order="desc")
        shown = [{"id": one.message, "role": one.role, "at": one.at, **one.content} for one in page.messages[::-1]]
        return json_response({"thread": thread.id, "list": thread.list, "messages": shown, "has_more": page.has_more})

    async def send(self, request: Request) -> Response:
        """Say something: its turn is worked on from here on."""
        thread = await self._thread(request)
        given = await bodies.body(request)
        text, turn = given.get("text"), given.get("turn")
        if set(given) - {"text", "turn"} or not isinstance(text, str) or not isinstance(turn, str | None):
            raise Refused("invalid_params", "The body has text, a text, and may have turn, an id.", field="text")
        try:
            turn = await self.say(thread, text, turn, request)
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="text") from None
        return json_response({"turn": turn}, 202)

    async def stop(self, request: Request) -> Response:
        return json_response({"stopped": await (await self._thread(request)).stop()})

    async def follow(self, request: Request) -> Response:
        """The events of a turn as they come, behind the number of `Last-Event-ID`, until its answer.

        A turn that was left unfinished is worked on again, except for a token that may only read.
        """
        thread = await self._thread(request)
        turn = request.path_params["turn"]
        await thread.message(turn)
        after = request.headers.get("last-event-id", "0")
        if self._access.scope(request).mode == "rw":
            self.work(thread, turn, request)
        set_last_bytes(request.scope, _event(0, "failed", {"text": ENDED}) + _event(0, "end", {}))
        number = int(after) if after.isdecimal() and len(after) < _DIGITS else 0
        events = self.heard(thread, turn, number)
        return event_stream(b":\n\n" if event is None else _event(*event) async for event in events)

    async def heard(
        self, thread: Thread, turn: str, after: int = 0
    ) -> AsyncGenerator[tuple[int, str, dict[str, Any]] | None]:
        """The events of a turn behind number `after`, to its end; None when it was quiet for long."""
        place, seq = thread.place(turn), 0
        while not self._worker.live.knows(place):
            if (answer := await thread.answer(turn)) is not None:
                yield 1, "message", answer
                yield 2, "end", {}
                return
            if place in self._turns:
                break
            if self._ending.is_set():
                return
            # Another program works on it, or none does: its answer comes by the log.
            wait = EventWait(after=seq or (await thread.message(turn)).seq, conversation=thread.id, timeout_ms=_LOOK_MS)
            seq = (await thread.client.run(Call("event.wait", wait, itself))).next
            yield None
        events = self._worker.live.follow(place, after)
        following: asyncio.Future[Any] | None = None
        try:
            while not self._ending.is_set():
                following = following or asyncio.ensure_future(anext(events))
                done, _ = await asyncio.wait([following], timeout=_QUIET_S)
                if not done:
                    yield None
                    continue
                event = following.result()
                following = None
                yield event
                if event[1] == "end":
                    return
        finally:
            if following is not None:
                following.cancel()

    async def say(self, thread: Thread, text: str, turn: str | None, request: Request) -> str:
        """Append what a person said, behind what was left unanswered, and work on its turn; the turn's id.

        Raises:
            KeyConflict: The same `turn` was used for another text.
            ValueError: The text or the id can't be sent.
        """
        await thread.enqueue_all()
        turn = await thread.send(text, turn=turn)
        self.work(thread, turn, request)
        return turn

    def work(self, thread: Thread, turn: str, request: Request) -> None:
        """Work on a turn beside the request, once, for whom the request speaks for, and while its token is valid."""
        thread.person = self._access.person(self._access.scope(request))
        place = thread.place(turn)
        if place not in self._turns:
            self._worker.live.restart(place)
            task = self._turns[place] = asyncio.ensure_future(self._worked(thread, turn, request))
            task.add_done_callback(lambda _: self._turns.pop(place, None))

    async def _worked(self, thread: Thread, turn: str, request: Request) -> None:
        async with anyio.create_task_group() as group:

            async def end() -> None:
                await self._ending.wait()
                group.cancel_scope.cancel()

            async def stop_if_revoked() -> None:
                with run_while_valid(request.scope):
                    await anyio.sleep_forever()
                with suppress(PunchlistError):  # such as a daemon that is away: then the turn does nothing either
                    await thread.stop(turn)

            group.start_soon(end)
            group.start_soon(stop_if_revoked)
            try:
                last = "message", await self._worker.answer(thread, turn)
            except PunchlistError as error:  # such as a full disk: a client that follows it again restarts it
                last = "failed", {"text": str(error)}
            self._worker.live.finish(thread.place(turn), *last)
            group.cancel_scope.cancel()

    async def caller(self, request: Request) -> tuple[AsyncClient, Scope]:
        scope = self._access.scope(request)
        return await self._access.client(scope), scope

    async def _thread(self, request: Request) -> Thread:
        client, scope = await self.caller(request)
        try:
            thread = await Thread.find(client, own(request.path_params["thread"], scope.user))
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="thread") from None
        confine(scope, thread.list)
        return thread


def named(name: str | None, scope: Scope) -> str:
    """The list that is meant: by default the token's, or `default`."""
    meant = own(name or scope.list or "default", scope.user)
    confine(scope, meant)
    return meant


def _event(number: int, name: str, data: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, name.encode(), msgspec.json.encode(data))

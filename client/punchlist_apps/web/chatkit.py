"""`/chatkit`: the same threads for ChatKit's front-end, by openai-chatkit's own server classes; the extra `chatkit`.

An item of ChatKit is a message of ours, with its id. The store appends nothing but what a person said: answers are in
the log before ChatKit hears of them.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from chatkit.server import ChatKitServer, NonStreamingResult, StreamingResult
from chatkit.store import NotFoundError, Store, StoreItemType
from chatkit.types import (
    AssistantMessageContent,
    AssistantMessageContentPartAdded,
    AssistantMessageContentPartTextDelta,
    AssistantMessageItem,
    ChatKitReq,
    ErrorEvent,
    InferenceOptions,
    NoticeEvent,
    Page,
    ProgressUpdateEvent,
    StreamOptions,
    ThreadItem,
    ThreadItemAddedEvent,
    ThreadItemDoneEvent,
    ThreadItemUpdatedEvent,
    ThreadMetadata,
    ThreadStreamEvent,
    UserMessageItem,
    UserMessageTextContent,
)
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from punchlist.base.project import own
from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import new_key
from punchlist.errors import ConfirmationRequired, NotFound
from punchlist_apps.chat.thread import SHOWN, Thread, checked, is_own, marked_text_of, thread_title
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.common.http.revocation import ENDED, set_last_bytes
from punchlist_apps.web import bodies
from punchlist_apps.web.chat import Panel, named
from punchlist_schemas.things import Conversation, Message

_REQUEST: TypeAdapter[Any] = TypeAdapter(ChatKitReq)
_SERVED = frozenset(
    f"threads.{one}" for one in ("get_by_id", "list", "create", "add_user_message", "update", "delete")
) | {"items.list", "items.feedback"}


class Caller(NamedTuple):
    """Whom a request speaks for, and the list that new threads are about."""

    client: AsyncClient
    list: str
    user: str | None
    request: Request


class ChatKit(ChatKitServer[Caller]):
    """Answers ChatKit's requests.

    Args:
        panel: Whose threads and worker it shares.
    """

    def __init__(self, panel: Panel) -> None:
        super().__init__(_Log())
        self._panel = panel

    async def handle(self, request: Request) -> Response:
        client, scope = await self._panel.caller(request)
        data = await bodies.data(request)
        if scope.list is not None:
            raise Refused("out_of_scope", "ChatKit shows all threads; this token is for one list.")
        try:
            result = await self.process(data, Caller(client, named(None, scope), scope.user, request))
        except ValidationError:
            raise Refused("invalid_params", "This is no request of ChatKit.") from None
        except (NotFoundError, NotFound):
            raise Refused("not_found", "There is no such thread or message.") from None
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.") from None
        headers = {"cache-control": "no-store"}
        if isinstance(result, StreamingResult):
            ended = ErrorEvent(code="custom", message=ENDED, allow_retry=False)
            set_last_bytes(request.scope, f"data: {ended.model_dump_json()}\n\n".encode())
            return StreamingResponse(result, media_type="text/event-stream", headers=headers)
        return Response(result.json, media_type="application/json", headers=headers)

    async def process(self, request: str | bytes | bytearray, context: Caller) -> StreamingResult | NonStreamingResult:
        """Answer a request. What can't be done is refused here: within a stream only the connection could be cut.

        Raises:
            NotFoundError: There is no such thread.
            ValueError: It is of a kind that is not served, or its message can't be sent.
        """
        asked = _REQUEST.validate_json(request)
        if asked.type not in _SERVED:
            raise ValueError(f"{asked.type} is not served: what was said stays; say it again as a new message")
        if (id := getattr(asked.params, "thread_id", None)) is not None:
            await _thread(context, id)
        if (said := getattr(asked.params, "input", None)) is not None:
            checked("".join(part.text for part in said.content))
            if said.attachments:
                raise ValueError("there are no attachments")
        return await super().process(request, context)

    def get_stream_options(self, thread: ThreadMetadata, context: Caller) -> StreamOptions:
        """ChatKit's stop only cuts the connection, which a reload does as well: it stops nothing."""
        return StreamOptions(allow_cancel=False)

    async def respond(
        self, thread: ThreadMetadata, input_user_message: UserMessageItem | None, context: Caller
    ) -> AsyncIterator[ThreadStreamEvent]:
        """Work on the turn, tell its tools and what a model writes as they come, and then its answer."""
        if input_user_message is None:
            return
        found = await _thread(context, thread.id)
        turn, id, is_written = input_user_message.id, f"{input_user_message.id}.a", False
        thread.title = thread.title or thread_title("".join(part.text for part in input_user_message.content))
        self._panel.work(found, turn, context.request)
        async for event in self._panel.heard(found, turn):
            if event is None:
                continue
            _, name, data = event
            if name == "delta":
                if not is_written:
                    empty = AssistantMessageContentPartAdded(content_index=0, content=AssistantMessageContent(text=""))
                    item = AssistantMessageItem(id=id, thread_id=thread.id, created_at=datetime.now(UTC), content=[])
                    yield ThreadItemAddedEvent(item=item)
                    yield ThreadItemUpdatedEvent(item_id=id, update=empty)
                    is_written = True
                piece = AssistantMessageContentPartTextDelta(content_index=0, delta=str(data["text"]))
                yield ThreadItemUpdatedEvent(item_id=id, update=piece)
            elif name == "tool.started":
                yield ProgressUpdateEvent(text=str(data["tool"]))
            elif name == "tool.completed" and "result" in data:
                yield ProgressUpdateEvent(text="\n".join(data["chips"]) or f"{data['tool']} · nothing was changed")
            elif name in ("notice", "failed"):
                yield NoticeEvent(level="warning" if name == "notice" else "danger", message=str(data["text"]))
            elif name == "message":
                yield ThreadItemDoneEvent(item=_item(thread.id, await found.queue.message(id)))


class _Log(Store[Caller]):
    """The threads in the daemon's log."""

    def generate_thread_id(self, context: Caller) -> str:
        key = new_key()
        return f"chat-{key[:8]}-{key[8:12]}-4{key[13:16]}-8{key[17:20]}-{key[20:]}"

    def generate_item_id(self, item_type: StoreItemType, thread: ThreadMetadata, context: Caller) -> str:
        return f"u{new_key()}"

    async def load_thread(self, thread_id: str, context: Caller) -> ThreadMetadata:
        await _thread(context, thread_id)
        return _metadata(await context.client.conversation(thread_id).info())

    async def save_thread(self, thread: ThreadMetadata, context: Caller) -> None:
        title = (thread.title or "")[:200]
        await Thread.open(context.client, context.list, thread.id, title)
        if title:
            await context.client.conversation(thread.id).configure(title=title)

    async def load_thread_items(
        self, thread_id: str, after: str | None, limit: int, order: str, context: Caller
    ) -> Page[ThreadItem]:
        thread = await _thread(context, thread_id)
        way: Any = "desc" if order == "desc" else "asc"
        page = await thread.queue.messages(after=after, limit=max(1, min(limit, 200)), order=way, roles=SHOWN)
        items = [_item(thread_id, one) for one in page.messages]
        return Page(data=items, has_more=page.has_more, after=items[-1].id if page.has_more and items else None)

    async def load_threads(self, limit: int, after: str | None, order: str, context: Caller) -> Page[ThreadMetadata]:
        """A page of threads, newest changed first; `after` is where the page before ended."""
        page = await context.client.conversations(kind="chat", limit=max(1, min(limit, 200)), cursor=after)
        found = [_metadata(one) for one in page.conversations if is_own(context.client, one)]
        return Page(data=found, has_more=page.next_cursor is not None, after=page.next_cursor)

    async def add_thread_item(self, thread_id: str, item: ThreadItem, context: Caller) -> None:
        """Append what a person said and queue its turn; answers are in the log already."""
        if isinstance(item, UserMessageItem):
            thread = await _thread(context, thread_id)
            await thread.enqueue_all()
            await thread.send("".join(part.text for part in item.content), turn=item.id)

    async def save_item(self, thread_id: str, item: ThreadItem, context: Caller) -> None:
        """Append what a person said; nothing that was said changes."""
        await self.add_thread_item(thread_id, item, context)

    async def load_item(self, thread_id: str, item_id: str, context: Caller) -> ThreadItem:
        return _item(thread_id, await (await _thread(context, thread_id)).queue.message(item_id))

    async def delete_thread(self, thread_id: str, context: Caller) -> None:
        thread = await _thread(context, thread_id)
        try:
            await thread.queue.erase()
        except ConfirmationRequired as error:
            await thread.queue.erase(confirm=error.token, answered=True)

    async def delete_thread_item(self, thread_id: str, item_id: str, context: Caller) -> None:
        raise ValueError("what was said stays; erase the whole thread instead")

    async def save_attachment(self, attachment: Any, context: Caller) -> None:
        raise ValueError("there are no attachments")

    async def load_attachment(self, attachment_id: str, context: Caller) -> Any:
        raise NotFoundError(attachment_id)

    async def delete_attachment(self, attachment_id: str, context: Caller) -> None:
        raise NotFoundError(attachment_id)


async def _thread(context: Caller, id: str) -> Thread:
    try:
        return await Thread.find(context.client, own(id, context.user))
    except (NotFound, ValueError):
        raise NotFoundError(id) from None


def _metadata(conversation: Conversation) -> ThreadMetadata:
    return ThreadMetadata(
        id=conversation.conversation, title=conversation.title or None, created_at=_time(conversation.created_at)
    )


def _item(thread: str, message: Message) -> ThreadItem:
    about: list[str] = message.content.get("about", [])
    text = marked_text_of({**message.content, "about": ()})
    base: dict[str, Any] = {"id": message.message, "thread_id": thread, "created_at": _time(message.at)}
    if message.role == "user":
        content = [UserMessageTextContent(text=text)]
        return UserMessageItem(**base, content=list(content), inference_options=InferenceOptions())
    return AssistantMessageItem(**base, content=[AssistantMessageContent(text=one) for one in (text, *about)])


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)

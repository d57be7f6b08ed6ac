"""`/chatkit`: chat threads for ChatKit's front end, built on openai-chatkit's server classes (the extra `chatkit`).

ChatKit's items are the thread's messages, with the same ids. The store appends only the user's messages, because the
worker has already appended the answers when ChatKit receives them.
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
from punchlist_apps.chat.thread import SHOWN, Thread, clean_text, is_own, marked_text_of, thread_title
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.common.http.revocation import ENDED, set_last_bytes
from punchlist_apps.web import bodies
from punchlist_apps.web.chat import Panel, resolve_list
from punchlist_schemas.things import Conversation, Message

_REQUEST: TypeAdapter[Any] = TypeAdapter(ChatKitReq)
_SUPPORTED = frozenset(
    f"threads.{name}" for name in ("get_by_id", "list", "create", "add_user_message", "update", "delete")
) | {"items.list", "items.feedback"}


class Caller(NamedTuple):
    """Context of a request. `list` is the list that new threads work on."""

    client: AsyncClient
    list: str
    user: str | None
    request: Request


class ChatKit(ChatKitServer[Caller]):
    """The endpoint for ChatKit's requests, which shares threads and the worker with `panel`."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(_LogStore())
        self._panel = panel

    async def handle(self, request: Request) -> Response:
        client, scope = await self._panel.get_caller(request)
        data = await bodies.read_body(request)
        if scope.list is not None:
            raise Refused("out_of_scope", "ChatKit shows all threads, and this token is limited to one list.")
        try:
            result = await self.process(data, Caller(client, resolve_list(None, scope), scope.user, request))
        except ValidationError:
            raise Refused("invalid_params", "Invalid ChatKit request.") from None
        except (NotFoundError, NotFound):
            raise Refused("not_found", "Thread or message not found.") from None
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.") from None
        headers = {"cache-control": "no-store"}
        if isinstance(result, StreamingResult):
            error = ErrorEvent(code="custom", message=ENDED, allow_retry=False)
            set_last_bytes(request.scope, f"data: {error.model_dump_json()}\n\n".encode())
            return StreamingResponse(result, media_type="text/event-stream", headers=headers)
        return Response(result.json, media_type="application/json", headers=headers)

    async def process(self, request: str | bytes | bytearray, context: Caller) -> StreamingResult | NonStreamingResult:
        """Validate a request, then handle it: once a stream has begun, an error can only cut the connection.

        Raises:
            NotFoundError: The thread doesn't exist.
            ValueError: The request's type isn't supported, or its message is invalid.
        """
        parsed = _REQUEST.validate_json(request)
        if parsed.type not in _SUPPORTED:
            raise ValueError(f"{parsed.type} is not supported: messages can't be changed; send a new one")
        if (id := getattr(parsed.params, "thread_id", None)) is not None:
            await _find_thread(context, id)
        if (message := getattr(parsed.params, "input", None)) is not None:
            clean_text("".join(part.text for part in message.content))
            if message.attachments:
                raise ValueError("attachments are not supported")
        return await super().process(request, context)

    def get_stream_options(self, thread: ThreadMetadata, context: Caller) -> StreamOptions:
        """Disable ChatKit's stop button. The button only cuts the connection, so the turn would continue, as after a
        reload."""
        return StreamOptions(allow_cancel=False)

    async def respond(
        self, thread: ThreadMetadata, input_user_message: UserMessageItem | None, context: Caller
    ) -> AsyncIterator[ThreadStreamEvent]:
        """Run the turn. Yield its tool calls and text as they arrive, then its answer."""
        if input_user_message is None:
            return
        log_thread = await _find_thread(context, thread.id)
        turn, id, is_written = input_user_message.id, f"{input_user_message.id}.a", False
        thread.title = thread.title or thread_title("".join(part.text for part in input_user_message.content))
        self._panel.start_turn(log_thread, turn, context.request)
        async for event in self._panel.stream_turn(log_thread, turn):
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
                yield ProgressUpdateEvent(text="\n".join(data["chips"]) or f"{data['tool']} · no changes")
            elif name in ("notice", "failed"):
                yield NoticeEvent(level="warning" if name == "notice" else "danger", message=str(data["text"]))
            elif name == "message":
                yield ThreadItemDoneEvent(item=_build_item(thread.id, await log_thread.queue.message(id)))


class _LogStore(Store[Caller]):
    """Stores threads in the daemon's log."""

    def generate_thread_id(self, context: Caller) -> str:
        key = new_key()
        return f"chat-{key[:8]}-{key[8:12]}-4{key[13:16]}-8{key[17:20]}-{key[20:]}"

    def generate_item_id(self, item_type: StoreItemType, thread: ThreadMetadata, context: Caller) -> str:
        return f"u{new_key()}"

    async def load_thread(self, thread_id: str, context: Caller) -> ThreadMetadata:
        await _find_thread(context, thread_id)
        return _build_metadata(await context.client.conversation(thread_id).info())

    async def save_thread(self, thread: ThreadMetadata, context: Caller) -> None:
        title = (thread.title or "")[:200]
        await Thread.open(context.client, context.list, thread.id, title)
        if title:
            await context.client.conversation(thread.id).configure(title=title)

    async def load_thread_items(
        self, thread_id: str, after: str | None, limit: int, order: str, context: Caller
    ) -> Page[ThreadItem]:
        thread = await _find_thread(context, thread_id)
        direction: Any = "desc" if order == "desc" else "asc"
        page = await thread.queue.messages(after=after, limit=max(1, min(limit, 200)), order=direction, roles=SHOWN)
        items = [_build_item(thread_id, message) for message in page.messages]
        return Page(data=items, has_more=page.has_more, after=items[-1].id if page.has_more and items else None)

    async def load_threads(self, limit: int, after: str | None, order: str, context: Caller) -> Page[ThreadMetadata]:
        """Return a page of threads, most recently changed first. `after` is the cursor of the previous page."""
        page = await context.client.conversations(kind="chat", limit=max(1, min(limit, 200)), cursor=after)
        threads = [_build_metadata(chat) for chat in page.conversations if is_own(context.client, chat)]
        return Page(data=threads, has_more=page.next_cursor is not None, after=page.next_cursor)

    async def add_thread_item(self, thread_id: str, item: ThreadItem, context: Caller) -> None:
        """Append a user's message and enqueue its turn. Answers are already in the log."""
        if isinstance(item, UserMessageItem):
            thread = await _find_thread(context, thread_id)
            await thread.enqueue_all()
            await thread.send("".join(part.text for part in item.content), turn=item.id)

    async def save_item(self, thread_id: str, item: ThreadItem, context: Caller) -> None:
        """Append a user's message. Existing messages never change."""
        await self.add_thread_item(thread_id, item, context)

    async def load_item(self, thread_id: str, item_id: str, context: Caller) -> ThreadItem:
        return _build_item(thread_id, await (await _find_thread(context, thread_id)).queue.message(item_id))

    async def delete_thread(self, thread_id: str, context: Caller) -> None:
        thread = await _find_thread(context, thread_id)
        try:
            await thread.queue.erase()
        except ConfirmationRequired as error:
            await thread.queue.erase(confirm=error.token, answered=True)

    async def delete_thread_item(self, thread_id: str, item_id: str, context: Caller) -> None:
        raise ValueError("single messages can't be deleted; delete the whole thread instead")

    async def save_attachment(self, attachment: Any, context: Caller) -> None:
        raise ValueError("attachments are not supported")

    async def load_attachment(self, attachment_id: str, context: Caller) -> Any:
        raise NotFoundError(attachment_id)

    async def delete_attachment(self, attachment_id: str, context: Caller) -> None:
        raise NotFoundError(attachment_id)


async def _find_thread(context: Caller, id: str) -> Thread:
    try:
        return await Thread.find(context.client, own(id, context.user))
    except (NotFound, ValueError):
        raise NotFoundError(id) from None


def _build_metadata(conversation: Conversation) -> ThreadMetadata:
    return ThreadMetadata(
        id=conversation.conversation, title=conversation.title or None, created_at=_to_datetime(conversation.created_at)
    )


def _build_item(thread: str, message: Message) -> ThreadItem:
    about: list[str] = message.content.get("about", [])
    text = marked_text_of({**message.content, "about": ()})
    base: dict[str, Any] = {"id": message.message, "thread_id": thread, "created_at": _to_datetime(message.at)}
    if message.role == "user":
        content = [UserMessageTextContent(text=text)]
        return UserMessageItem(**base, content=list(content), inference_options=InferenceOptions())
    return AssistantMessageItem(**base, content=[AssistantMessageContent(text=block) for block in (text, *about)])


def _to_datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)

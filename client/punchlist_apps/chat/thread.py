"""A chat thread: its append-only messages and the queue of its turns.

The id of a turn is the id of the person's message, `u…`. The ids of its records are derived from it, so that repeating
a step after a crash doesn't append anything twice. `u….s1` is a step with its calls, `u….c1.2` the result of a call,
and `u….a` the answer.
"""

import hashlib
import re
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from punchlist.base.actors import chat_actor
from punchlist.base.text import clip, one_line
from punchlist.clients.aio import AsyncClient
from punchlist.errors import Forbidden, KeyConflict, NotFound, RequestRefused
from punchlist_schemas.things import Conversation, Message, SettingsPatch

SHOWN = ("user", "assistant")
"""Roles whose messages are shown to a person."""

CONTEXT = 20
"""Maximum number of earlier messages passed as context to a model or the rules."""

MAX_TEXT = 100_000
"""Maximum length of a message, in characters."""

_PAGE = 200
_TITLE = 80
_NEWEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID = re.compile(r"u[A-Za-z0-9-]{1,64}")
_UNIQUE = re.compile(r"u(?:[0-9a-f]-?){32}")


class Exchange(NamedTuple):
    """A finished turn, as the text of the message and the content of the answer."""

    turn: str
    text: str
    answer: dict[str, Any]


class TurnInput(NamedTuple):
    """The input of a turn: the person's message, the records of an earlier attempt, and the earlier exchanges."""

    message: Message
    records: dict[str, dict[str, Any]]
    past: list[Exchange]


class Thread:
    """A thread of one user.

    Args:
        client: The connection. A connection that is limited to a user sees only this user's threads.

    Attributes:
        person: The person's actor on the command line. In a chat, this actor's claims count as the person's own too. If
            empty, only the thread's claims count.
    """

    person: str = ""

    def __init__(self, client: AsyncClient, id: str, list: str) -> None:
        self.client = client
        self.id = id
        self.list = list
        self.actor = chat_actor(id)
        self.queue = client.conversation(id, actor=self.actor)
        self.tasks = client.conversation(list, actor=self.actor)

    @classmethod
    async def open(cls, client: AsyncClient, list: str, id: str | None = None, title: str = "") -> "Thread":
        """Create a thread that works on a list, or open the existing one.

        Raises:
            NotFound: The thread belongs to another user.
            Forbidden: The thread belongs to a user, but the connection isn't limited to one.
            ValueError: The conversation with this id is a list.
        """
        id = id or f"chat-{uuid.uuid4()}"
        opened = await client.conversation(id).open(
            kind="chat",
            title=title,
            metadata={"list": list},
            settings=SettingsPatch(execution="serial", max_attempts=0),
        )
        return cls.from_conversation(client, opened.conversation)

    @classmethod
    async def find(cls, client: AsyncClient, id: str) -> "Thread":
        """Return an existing thread.

        Raises:
            NotFound: The thread doesn't exist or belongs to another user.
            Forbidden: The thread belongs to a user, but the connection isn't limited to one.
            ValueError: The conversation with this id is a list.
        """
        conversation = await client.conversation(id).info()
        if not conversation.version:
            raise NotFound("not_found", -32001, f"No thread {id}.", {"what": "conversation", "id": id})
        return cls.from_conversation(client, conversation)

    @classmethod
    async def find_all(cls, client: AsyncClient, list: str) -> "list[Conversation]":
        page = await client.conversations(kind="chat", limit=_PAGE)
        return [
            thread for thread in page.conversations if thread.metadata.get("list") == list and is_own(client, thread)
        ]

    @classmethod
    def from_conversation(cls, client: AsyncClient, conversation: Conversation) -> "Thread":
        """Return a conversation as a thread.

        Raises:
            Forbidden: The thread belongs to a user, but the connection isn't limited to one.
            ValueError: The conversation is a list.
        """
        # A connection without a user may see all threads, but its turns wouldn't act for a user, and `my:default` would
        # be another list.
        if not is_own(client, conversation):
            id, user = conversation.conversation, conversation.user
            advice = f"punch chat --user {user}, or a link of punch web --link --user {user}"
            message = f"{id} is a thread of the user {user}; continue it as that user: {advice}"
            raise Forbidden("forbidden", -32011, message, {"what": "user"})
        if conversation.kind != "chat":
            raise ValueError(f"{conversation.conversation} is a list, not a chat thread")
        return cls(client, conversation.conversation, str(conversation.metadata.get("list") or "default"))

    async def send(self, text: str, *, turn: str | None = None) -> str:
        """Append a person's message, queue its turn and return the turn's id. Repeating the call with the same `turn`
        is a no-op.

        Raises:
            KeyConflict: The same `turn` was used with different text.
            ValueError: The text is empty or too long, or the id is invalid.
        """
        text = clean_text(text)
        turn = turn or f"u{uuid.uuid4().hex}"
        if _ID.fullmatch(turn) is None:
            raise ValueError("a message's id consists of u, then letters, digits and -")
        stored = await self.append(turn, "user", {"text": text})
        if stored != {"text": text}:
            message = f"The id {turn} was used for another message of this thread; send this one with a new id."
            raise KeyConflict("key_conflict", -32007, message, {"key": turn})
        await self._enqueue(turn, text)
        return turn

    async def enqueue(self, turn: str) -> None:
        """Queue the turn of a message if the sender died before queueing it.

        Raises:
            NotFound: The message doesn't exist.
        """
        await self._enqueue(turn, text_of((await self.get_message(turn)).content))

    async def enqueue_all(self) -> None:
        """Queue the turns of the newest unanswered messages, oldest first."""
        page = await self._list_newest()
        answers = {message.message for message in page if message.role == "assistant"}
        for message in reversed(page):
            if message.role == "user" and _ID.fullmatch(message.message) and f"{message.message}.a" not in answers:
                await self._enqueue(message.message, text_of(message.content))

    async def _enqueue(self, turn: str, text: str) -> None:
        await self.queue.add(clip(one_line(text), 200), metadata={"turn": turn}, key=f"turn/{turn}")

    def call_key(self, turn: str, call: str) -> str:
        """Return the idempotency key for a turn's call on the list."""
        key = f"{turn}/{call}"
        # A turn id chosen by a client may be used in several threads.
        return key if _UNIQUE.fullmatch(turn) else f"{key}/{hashlib.sha256(self.id.encode()).hexdigest()[:16]}"

    def turn_path(self, turn: str) -> str:
        """Return an id for a turn that is unique across threads. Clients choose turn ids, so turns in two threads may
        have the same id."""
        return f"{self.id}/{turn}"

    async def append(self, id: str, role: str, content: dict[str, Any]) -> dict[str, Any]:
        """Append a message with this id and return its content. If a message with this id exists, return its content
        instead."""
        try:
            return (await self.queue.append_message(role, content, message=id, key=f"message/{id}")).content
        except RequestRefused as error:
            if error.kind not in ("key_conflict", "invalid_params"):
                raise
            try:
                return (await self.queue.message(id)).content
            except NotFound:
                raise error from None

    async def load_records(self, turn: str) -> dict[str, dict[str, Any]]:
        """Return the contents of a turn's records by the part of their id after the dot."""
        records: dict[str, dict[str, Any]] = {}
        after = turn
        while True:
            page = await self.queue.messages(after=after, limit=_PAGE)
            for message in page.messages:
                if message.message.startswith(f"{turn}."):
                    records[message.message.removeprefix(f"{turn}.")] = message.content
            if "a" in records or not page.has_more:
                return records
            after = page.messages[-1].message

    async def get_message(self, turn: str) -> Message:
        """Return the message of a turn.

        Raises:
            NotFound: The message doesn't exist.
        """
        return await self.queue.message(turn)

    async def load_turn(self, turn: str) -> TurnInput:
        """Return the input of a turn. For a new turn, this takes one call.

        Raises:
            NotFound: The message doesn't exist.
        """
        page = await self._list_newest()
        message = next((message for message in page if message.message == turn), None)
        is_new = message is not None and not any(record.message.startswith(f"{turn}.") for record in page)
        message = message or await self.get_message(turn)
        return TurnInput(message, {} if is_new else await self.load_records(turn), _pair_exchanges(page, message.seq))

    async def list_exchanges(self, turn: str | None) -> list[Exchange]:
        """Return the newest finished turns before this one, oldest first."""
        before = None if turn is None else (await self.get_message(turn)).seq
        return _pair_exchanges(await self._list_newest(), before)

    async def list_answers(self) -> list[dict[str, Any]]:
        page = await self.queue.messages(limit=_NEWEST, order="desc", roles=("assistant",))
        return [message.content for message in page.messages]

    async def _list_newest(self) -> tuple[Message, ...]:
        """Return the newest messages, answers and steps, newest first."""
        return (await self.queue.messages(limit=_NEWEST, order="desc", roles=(*SHOWN, "step"))).messages

    async def find_answer(self, turn: str) -> dict[str, Any] | None:
        """Return the answer's content if the turn has finished."""
        try:
            return (await self.queue.message(f"{turn}.a")).content
        except NotFound:
            return None

    async def stop(self, turn: str | None = None) -> bool:
        """Stop a turn, by default the running one, in whichever process runs it. Return whether a turn was stopped."""
        stopped = False
        for task in await self.queue.list(status=("pending", "in_progress")):
            is_target = task.metadata.get("turn") == turn if turn else task.status == "in_progress"
            if is_target:
                await self.queue.pause(task.id)
                stopped = True
        return stopped


def clean_text(text: str) -> str:
    """Return a message's text in the form in which it is stored, without lone surrogates.

    Raises:
        ValueError: The text is empty or too long.
    """
    text = _SURROGATE.sub("\ufffd", text)
    if not text.strip():
        raise ValueError("say something: the message is empty")
    if len(text) > MAX_TEXT:
        raise ValueError(f"the message has {len(text):,} characters; the limit is {MAX_TEXT:,}")
    return text


def is_own(client: AsyncClient, conversation: Conversation) -> bool:
    """Return whether a conversation belongs to the connection's user. Without a user, whether it has no user."""
    return conversation.user == client.options.get("user", "")


def _pair_exchanges(page: Sequence[Message], before: int | None) -> list[Exchange]:
    """Pair messages with their answers. Return the newest finished turns before a position, oldest first."""
    answers = {message.message.removesuffix(".a"): message.content for message in page if message.role == "assistant"}
    pairs = [
        Exchange(message.message, text_of(message.content), answers[message.message])
        for message in page
        if message.role == "user" and message.message in answers and (before is None or message.seq < before)
    ]
    return pairs[: CONTEXT // 2][::-1]


def text_of(content: dict[str, Any]) -> str:
    return str(content.get("text", ""))


def thread_title(text: str) -> str:
    return clip(one_line(text), _TITLE)


def marked_text_of(content: dict[str, Any]) -> str:
    """Return an answer's text with its note and its question's tasks, for clients that show only the text."""
    text = "\n".join([text_of(content), *(f"  {task}" for task in content.get("about", ()))])
    mark = f"({content['mark']})" if content.get("mark") else ""
    return "\n\n".join(filter(None, (text, mark)))

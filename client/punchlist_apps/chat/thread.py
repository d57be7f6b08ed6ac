"""One thread: its messages, which are never changed, and the queue of its turns.

The id of a turn is that of the person's message, `u…`. What belongs to it has ids made of it, so that repeating a step
after a crash appends nothing twice: `u….s1` the calls to be made, `u….c1.2` what came of them, `u….a` the answer.
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
"""Roles of the messages that a person sees."""

CONTEXT = 20
"""So many shown messages go into what a model, or a rule, knows of what was said before."""

MAX_TEXT = 100_000
"""Longest message, in characters."""

_PAGE = 200
_TITLE = 80
_NEWEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID = re.compile(r"u[A-Za-z0-9-]{1,64}")
_UNIQUE = re.compile(r"u(?:[0-9a-f]-?){32}")


class Exchange(NamedTuple):
    """A finished turn: what was said, and the content of the answer."""

    turn: str
    text: str
    answer: dict[str, Any]


class Beginning(NamedTuple):
    """What a turn begins with: the person's message, what an earlier try has written, and what was said before."""

    message: Message
    written: dict[str, dict[str, Any]]
    past: list[Exchange]


class Thread:
    """A thread of one user.

    Args:
        client: The connection; one that is confined to a user sees that user's threads alone.

    Attributes:
        person: Who speaks, by their name at the command line: what they work on there is theirs here, too. Empty: only
            what this thread has begun is.
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
        """A new thread that works on a list, or the one that is there.

        Raises:
            NotFound: The thread is another user's.
            Forbidden: The same, on a connection that is confined to no user.
            ValueError: The conversation of this id is a list and no thread.
        """
        id = id or f"chat-{uuid.uuid4()}"
        opened = await client.conversation(id).open(
            kind="chat",
            title=title,
            metadata={"list": list},
            settings=SettingsPatch(execution="serial", max_attempts=0),
        )
        return cls.of(client, opened.conversation)

    @classmethod
    async def find(cls, client: AsyncClient, id: str) -> "Thread":
        """The thread that is there.

        Raises:
            NotFound: There is none, or it is another user's.
            Forbidden: It is a user's, and the connection is confined to none.
            ValueError: The conversation of this id is a list and no thread.
        """
        conversation = await client.conversation(id).info()
        if not conversation.version:
            raise NotFound("not_found", -32001, f"There is no thread {id}.", {"what": "conversation", "id": id})
        return cls.of(client, conversation)

    @classmethod
    async def about(cls, client: AsyncClient, list: str) -> "list[Conversation]":
        page = await client.conversations(kind="chat", limit=_PAGE)
        return [one for one in page.conversations if one.metadata.get("list") == list and is_own(client, one)]

    @classmethod
    def of(cls, client: AsyncClient, conversation: Conversation) -> "Thread":
        """Return a conversation as a thread.

        A connection that is confined to no user may see the threads of all, but a turn that it worked on would act as
        nobody: `my:default` is another list there.

        Raises:
            Forbidden: It is a user's, and the connection is confined to none.
            ValueError: It is a list and no thread.
        """
        if not is_own(client, conversation):
            id, user = conversation.conversation, conversation.user
            advice = f"punch chat --user {user}, or a link of punch web --link --user {user}"
            message = f"{id} is a thread of the user {user}; go on with it as that user: {advice}"
            raise Forbidden("forbidden", -32011, message, {"what": "user"})
        if conversation.kind != "chat":
            raise ValueError(f"{conversation.conversation} is a list and no thread of a chat")
        return cls(client, conversation.conversation, str(conversation.metadata.get("list") or "default"))

    async def send(self, text: str, *, turn: str | None = None) -> str:
        """Append what a person said and queue its turn; the turn's id. Repeating it with the same `turn` does nothing.

        Raises:
            KeyConflict: The same `turn` was used for another text.
            ValueError: The text is empty or too long, or the id is none.
        """
        text = checked(text)
        turn = turn or f"u{uuid.uuid4().hex}"
        if _ID.fullmatch(turn) is None:
            raise ValueError("a message's id is u and then letters, digits and -")
        said = await self.append(turn, "user", {"text": text})
        if said != {"text": text}:
            message = f"The id {turn} was used for another message of this thread; send this one under a new id."
            raise KeyConflict("key_conflict", -32007, message, {"key": turn})
        await self._enqueue(turn, text)
        return turn

    async def enqueue(self, turn: str) -> None:
        """Queue the turn of a message again, as far as it is not: its sender may have died before that.

        Raises:
            NotFound: There is no such message.
        """
        await self._enqueue(turn, text_of((await self.message(turn)).content))

    async def enqueue_all(self) -> None:
        """Do so for the newest messages without an answer, oldest first."""
        page = await self._newest()
        answered = {one.message for one in page if one.role == "assistant"}
        for one in reversed(page):
            if one.role == "user" and _ID.fullmatch(one.message) and f"{one.message}.a" not in answered:
                await self._enqueue(one.message, text_of(one.content))

    async def _enqueue(self, turn: str, text: str) -> None:
        await self.queue.add(clip(one_line(text), 200), metadata={"turn": turn}, key=f"turn/{turn}")

    def key(self, turn: str, call: str) -> str:
        """The key of a call of a turn in the list. An id that a client chose may name a turn of other threads, too."""
        key = f"{turn}/{call}"
        return key if _UNIQUE.fullmatch(turn) else f"{key}/{hashlib.sha256(self.id.encode()).hexdigest()[:16]}"

    def place(self, turn: str) -> str:
        """A turn among those of all threads: people choose ids, so several threads may have the same."""
        return f"{self.id}/{turn}"

    async def append(self, id: str, role: str, content: dict[str, Any]) -> dict[str, Any]:
        """Append a message under its id; if it is there, what it says stays and is given back."""
        try:
            return (await self.queue.append_message(role, content, message=id, key=f"message/{id}")).content
        except RequestRefused as error:
            if error.kind not in ("key_conflict", "invalid_params"):
                raise
            try:
                return (await self.queue.message(id)).content
            except NotFound:
                raise error from None

    async def written(self, turn: str) -> dict[str, dict[str, Any]]:
        """What is written of a turn behind the person's message: the part of the id behind the dot → content."""
        found: dict[str, dict[str, Any]] = {}
        after = turn
        while True:
            page = await self.queue.messages(after=after, limit=_PAGE)
            for message in page.messages:
                if message.message.startswith(f"{turn}."):
                    found[message.message.removeprefix(f"{turn}.")] = message.content
            if "a" in found or not page.has_more:
                return found
            after = page.messages[-1].message

    async def message(self, turn: str) -> Message:
        """The message of a turn.

        Raises:
            NotFound: There is none.
        """
        return await self.queue.message(turn)

    async def begin(self, turn: str) -> Beginning:
        """What a turn begins with, by one call for a new one.

        Raises:
            NotFound: There is no such message.
        """
        page = await self._newest()
        message = next((one for one in page if one.message == turn), None)
        is_new = message is not None and not any(one.message.startswith(f"{turn}.") for one in page)
        message = message or await self.message(turn)
        return Beginning(message, {} if is_new else await self.written(turn), _exchanges(page, message.seq))

    async def before(self, turn: str | None) -> list[Exchange]:
        """The newest finished turns that were queued before this one, oldest first."""
        at = None if turn is None else (await self.message(turn)).seq
        return _exchanges(await self._newest(), at)

    async def answers(self) -> list[dict[str, Any]]:
        page = await self.queue.messages(limit=_NEWEST, order="desc", roles=("assistant",))
        return [one.content for one in page.messages]

    async def _newest(self) -> tuple[Message, ...]:
        """The newest messages of those that say what was said and begun, newest first."""
        return (await self.queue.messages(limit=_NEWEST, order="desc", roles=(*SHOWN, "step"))).messages

    async def answer(self, turn: str) -> dict[str, Any] | None:
        """The answer's content, if the turn is over."""
        try:
            return (await self.queue.message(f"{turn}.a")).content
        except NotFound:
            return None

    async def stop(self, turn: str | None = None) -> bool:
        """Stop a turn, by default the one that is being worked on, from wherever one is; whether there was any."""
        stopped = False
        for task in await self.queue.list(status=("pending", "in_progress")):
            mine = task.metadata.get("turn") == turn if turn else task.status == "in_progress"
            if mine:
                await self.queue.pause(task.id)
                stopped = True
        return stopped


def checked(text: str) -> str:
    """What a person said, as it is kept.

    Raises:
        ValueError: It is empty or too long.
    """
    text = _SURROGATE.sub("\ufffd", text)
    if not text.strip():
        raise ValueError("say something: the message is empty")
    if len(text) > MAX_TEXT:
        raise ValueError(f"the message has {len(text):,} characters; at most {MAX_TEXT:,} are taken")
    return text


def is_own(client: AsyncClient, conversation: Conversation) -> bool:
    """Whether a conversation belongs to the user that a connection is confined to, or to nobody where it is not."""
    return conversation.user == client.options.get("user", "")


def _exchanges(page: Sequence[Message], until: int | None) -> list[Exchange]:
    """The newest finished turns of a page whose message stands before a position, oldest first."""
    answers = {one.message.removesuffix(".a"): one.content for one in page if one.role == "assistant"}
    pairs = [
        Exchange(one.message, text_of(one.content), answers[one.message])
        for one in page
        if one.role == "user" and one.message in answers and (until is None or one.seq < until)
    ]
    return pairs[: CONTEXT // 2][::-1]


def text_of(content: dict[str, Any]) -> str:
    return str(content.get("text", ""))


def thread_title(text: str) -> str:
    return clip(one_line(text), _TITLE)


def marked_text_of(content: dict[str, Any]) -> str:
    """The same with the tasks that its question is about and its mark: for faces that show nothing but the text."""
    text = "\n".join([text_of(content), *(f"  {one}" for one in content.get("about", ()))])
    mark = f"({content['mark']})" if content.get("mark") else ""
    return "\n\n".join(filter(None, (text, mark)))

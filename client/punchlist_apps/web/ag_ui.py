"""`/ag-ui`: the same threads for front-ends of the Agent User Interaction Protocol, version 1.0.

A run is a turn: its message is the newest of the user, so a run that is repeated is worked on once. A question ends the
run as an interrupt, and the next run resumes with the answer. What is written while a model speaks and is not what was
answered in the end is taken back by a snapshot of the messages.
"""

import hashlib
import re
from collections.abc import AsyncGenerator, Generator
from typing import Annotated, Any, Literal, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.base.project import own
from punchlist.errors import NotFound
from punchlist_apps.chat.thread import SHOWN, Thread, marked_text_of, thread_title
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.common.http.revocation import ENDED, set_last_bytes
from punchlist_apps.web import bodies
from punchlist_apps.web.access import confine
from punchlist_apps.web.calls import event_stream
from punchlist_apps.web.chat import Panel, named
from punchlist_schemas.project_file import is_conversation_id
from punchlist_schemas.things import Message

_SHOWN = 200
_TURN = re.compile(r"[A-Za-z0-9-]{1,64}")

Event = dict[str, Any]


class _Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    """What was said; messages of some roles have no content."""

    id: str
    role: str
    content: str | list[_Part] | None = None


class _Resume(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a question: `payload` is true or false, or the person's own words."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class _Run(msgspec.Struct, frozen=True, rename="camel"):
    """What a front-end asks for, as far as it concerns us."""

    thread_id: Annotated[str, msgspec.Meta(min_length=1)]
    run_id: str
    messages: list[_Message]
    resume: list[_Resume] | None = None


class AgUi:
    """Answers runs.

    Args:
        panel: Whose threads and worker it shares.
    """

    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    async def handle(self, request: Request) -> Response:
        """One run: its events, as they come. Without a message it tells what was said."""
        client, scope = await self._panel.caller(request)
        try:
            run = msgspec.convert(await bodies.body(request), _Run)
        except msgspec.ValidationError as error:
            raise Refused("invalid_params", f"This is no run of AG-UI: {error}.") from None
        id = run.thread_id if run.thread_id.startswith("chat-") else f"chat-{run.thread_id}"
        if not is_conversation_id(id):
            raise Refused("invalid_params", "threadId has 1 to 64 letters, digits and . _ - :", field="threadId")
        name = named(request.query_params.get("list"), scope)
        try:
            title = thread_title(_text(run.messages[-1])) if run.messages else ""
            thread = await Thread.open(client, name, own(id, scope.user), title)
            confine(scope, thread.list)
            turn = await self._turn(thread, run, request)
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="messages") from None
        set_last_bytes(request.scope, _sent({"type": "RUN_ERROR", "message": ENDED, "code": "unauthorized"}))
        return event_stream(self._events(thread, turn, run))

    async def _turn(self, thread: Thread, run: _Run, request: Request) -> str | None:
        """The run's turn, which is worked on from here on; None: it only wants to know what was said.

        Raises:
            ValueError: Its message is none that can be sent.
        """
        if run.resume:
            turn = f"u{_digest(thread, run.run_id)}"
            text = await _answer(thread, turn, run.resume)
        elif run.messages:
            last = run.messages[-1]
            if last.role != "user":
                raise ValueError("the last message must be the user's")
            turn = f"u{last.id if _TURN.fullmatch(last.id) else _digest(thread, last.id)}"
            text = _text(last)
        else:
            return None
        return await self._panel.say(thread, text, turn, request)

    async def _events(self, thread: Thread, turn: str | None, run: _Run) -> AsyncGenerator[bytes]:
        ids = {"threadId": run.thread_id, "runId": run.run_id}
        yield _sent({"type": "RUN_STARTED", **ids})
        if turn is None:
            yield _sent(await _snapshot(thread))
            yield _sent({"type": "RUN_FINISHED", **ids})
            return
        said = Translation(turn)
        async for event in self._panel.heard(thread, turn):
            if event is None:
                yield b":\n\n"
                continue
            for translated in said.of(event[1], event[2]):
                yield _sent(translated)
        if said.answer is None:
            why = said.failure or "The server ends before the answer is there."
            text = f"{why} Run it again: nothing is done twice."
            yield _sent({"type": "RUN_ERROR", "message": text, "code": "unfinished"})
            return
        if said.is_stale:
            yield _sent(await _snapshot(thread))
        yield _sent({"type": "RUN_FINISHED", **ids, **_outcome(turn, said.answer)})


class Translation:
    """Makes events of the protocol from those of one turn.

    Attributes:
        answer: The answer, once it is there.
        failure: Why there is no answer yet.
        is_stale: Whether a text was written that is not the answer.
    """

    def __init__(self, turn: str) -> None:
        self.answer: dict[str, Any] | None = None
        self.is_stale = False
        self.failure = ""
        self._turn = turn
        self._texts = 0
        self._open = ""
        self._written = ""
        self._calls: set[str] = set()

    def of(self, name: str, data: dict[str, Any]) -> Generator[Event]:
        if name == "delta":
            yield from self._write(data["text"])
        elif name in ("tool.started", "tool.completed"):
            yield from self._call(data)
        elif name == "notice":
            yield {"type": "CUSTOM", "name": "notice", "value": data["text"]}
        elif name == "failed":
            self.failure = str(data["text"])
            yield from self._close()
        elif name == "message":
            yield from self._end(data)

    def _write(self, text: str) -> Generator[Event]:
        if not text:
            return
        if not self._open:
            self._texts += 1
            self._open = f"{self._turn}.a" + (str(self._texts) if self._texts > 1 else "")
            self._written = ""
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._open, "role": "assistant"}
        self._written += text
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._open, "delta": text}

    def _close(self) -> Generator[Event]:
        if self._open:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._open}
        self._open = ""

    def _call(self, data: dict[str, Any]) -> Generator[Event]:
        id = f"{self._turn}.{data['id']}"
        if id not in self._calls:
            self._calls.add(id)
            self.is_stale = self.is_stale or bool(self._open)
            yield from self._close()
            arguments = msgspec.json.encode(data["arguments"]).decode()
            started = {"toolCallId": id, "toolCallName": data["tool"], "parentMessageId": f"{id}.t"}
            yield {"type": "TOOL_CALL_START", **started}
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments}
            yield {"type": "TOOL_CALL_END", "toolCallId": id}
        if "result" in data:
            result = {"messageId": f"{id}.r", "toolCallId": id, "content": data["result"], "role": "tool"}
            yield {"type": "TOOL_CALL_RESULT", **result}

    def _end(self, answer: dict[str, Any]) -> Generator[Event]:
        self.answer = answer
        text = marked_text_of(answer)
        is_first = self._open == f"{self._turn}.a"
        if not self._texts:
            yield from self._write(text)
        elif is_first and text.startswith(self._written):
            yield from self._write(text[len(self._written) :])
        else:
            self.is_stale = True
        yield from self._close()


def _outcome(turn: str, answer: dict[str, Any]) -> dict[str, Any]:
    """How a run ends: what it did, whether the person is asked or has stopped it, and what a model used."""
    found: dict[str, Any] = {"result": {name: answer[name] for name in ("source", "receipts") if name in answer}}
    if usage := answer.get("usage"):
        found["usage"] = [{"inputTokens": usage["input"], "outputTokens": usage["output"]}]
    if asks := answer.get("asks"):
        message = marked_text_of({**answer, "text": asks["text"]})
        question = {"id": f"{turn}.a", "reason": "confirmation", "message": message}
        schema = {"type": "boolean", "description": "Whether to do it"}
        found["outcome"] = {"type": "interrupt", "interrupts": [{**question, "responseSchema": schema}]}
    elif answer.get("source") == "stopped":
        found["outcome"] = {"type": "cancelled"}
    return found


async def _answer(thread: Thread, turn: str, resume: list[_Resume]) -> str:
    """What the person says to the open question.

    Raises:
        ValueError: Another question is meant than the one that is open.
    """
    (entry, *more) = resume
    given = entry.payload
    agreed = cast("dict[str, Any]", given).get("approved") if isinstance(given, dict) else given
    said = agreed if isinstance(agreed, str) else "yes" if agreed is True else "no"
    text = said if entry.status == "resolved" else "no"
    try:
        await thread.message(turn)
    except NotFound:
        pass
    else:
        return text  # the run is repeated
    past = await thread.before(None)
    if more or not past or not past[-1].answer.get("asks") or f"{past[-1].turn}.a" != entry.interrupt_id:
        raise ValueError("resume must answer the question that is open, and no other is")
    return text


async def _snapshot(thread: Thread) -> Event:
    """What was said and called, the newest messages, oldest first."""
    page = await thread.queue.messages(roles=(*SHOWN, "tool"), limit=_SHOWN, order="desc")
    messages = [one for message in reversed(page.messages) for one in _messages(message)]
    return {"type": "MESSAGES_SNAPSHOT", "messages": messages}


def _messages(message: Message) -> Generator[Event]:
    """A message in the form of the protocol: what came of a tool is a call and its result."""
    id, content = message.message, message.content
    if message.role != "tool":
        said = id.removeprefix("u") if message.role == "user" else id
        yield {"id": said, "role": message.role, "content": marked_text_of(content)}
    elif not content.get("question"):
        arguments = msgspec.json.encode(content.get("arguments", {})).decode()
        call = {"id": id, "type": "function", "function": {"name": content["tool"], "arguments": arguments}}
        yield {"id": f"{id}.t", "role": "assistant", "toolCalls": [call]}
        yield {"id": f"{id}.r", "role": "tool", "toolCallId": id, "content": str(content.get("text", ""))}


def _text(message: _Message) -> str:
    """The text of a message.

    Raises:
        ValueError: It has other parts than texts.
    """
    content = message.content
    parts = [_Part("text", content)] if isinstance(content, str) else content or []
    if any(one.type != "text" for one in parts):
        raise ValueError("a message has text alone: no files, no pictures")
    return "".join(one.text for one in parts)


def _digest(thread: Thread, text: str) -> str:
    return hashlib.sha256(thread.place(text).encode("utf-8", "replace")).hexdigest()[:32]


def _sent(event: Event) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(event)

"""`/ag-ui`: chat threads for front ends that use the Agent User Interaction Protocol, version 1.0.

A run is a turn, identified by the user's newest message, so a repeated run executes only once. A question ends the run
as an interrupt, and the next run resumes with the answer. If the streamed text differs from the final answer, a
snapshot of the messages replaces the text.
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
from punchlist_apps.web.chat import Panel, resolve_list
from punchlist_schemas.project_file import is_conversation_id
from punchlist_schemas.things import Message

_MAX_MESSAGES = 200
_TURN_ID = re.compile(r"[A-Za-z0-9-]{1,64}")

Event = dict[str, Any]


class _Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message. Some roles have no content."""

    id: str
    role: str
    content: str | list[_Part] | None = None


class _Resume(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a question. `payload` is a boolean or the user's own words."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class _Run(msgspec.Struct, frozen=True, rename="camel"):
    """The members of a front end's request that this server uses."""

    thread_id: Annotated[str, msgspec.Meta(min_length=1)]
    run_id: str
    messages: list[_Message]
    resume: list[_Resume] | None = None


class AgUi:
    """The endpoint for runs, which shares threads and the worker with `panel`."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    async def handle(self, request: Request) -> Response:
        """Stream the events of a run, or a snapshot of the thread for a run without a message."""
        client, scope = await self._panel.get_caller(request)
        try:
            run = msgspec.convert(await bodies.parse_body(request), _Run)
        except msgspec.ValidationError as error:
            raise Refused("invalid_params", f"Invalid AG-UI run: {error}.") from None
        id = run.thread_id if run.thread_id.startswith("chat-") else f"chat-{run.thread_id}"
        if not is_conversation_id(id):
            raise Refused("invalid_params", "threadId must be 1 to 64 letters, digits or . _ - :", field="threadId")
        name = resolve_list(request.query_params.get("list"), scope)
        try:
            title = thread_title(_get_text(run.messages[-1])) if run.messages else ""
            thread = await Thread.open(client, name, own(id, scope.user), title)
            confine(scope, thread.list)
            turn = await self._start_turn(thread, run, request)
        except ValueError as error:
            raise Refused("invalid_params", f"{error}.", field="messages") from None
        set_last_bytes(request.scope, _encode_event({"type": "RUN_ERROR", "message": ENDED, "code": "unauthorized"}))
        return event_stream(self._stream_run(thread, turn, run))

    async def _start_turn(self, thread: Thread, run: _Run, request: Request) -> str | None:
        """Start the run's turn and return its id; None for a run without a message.

        Raises:
            ValueError: The message is invalid.
        """
        if run.resume:
            turn = f"u{_digest(thread, run.run_id)}"
            text = await _resolve_interrupt(thread, turn, run.resume)
        elif run.messages:
            last = run.messages[-1]
            if last.role != "user":
                raise ValueError("the last message must be the user's")
            turn = f"u{last.id if _TURN_ID.fullmatch(last.id) else _digest(thread, last.id)}"
            text = _get_text(last)
        else:
            return None
        return await self._panel.submit_message(thread, text, turn, request)

    async def _stream_run(self, thread: Thread, turn: str | None, run: _Run) -> AsyncGenerator[bytes]:
        ids = {"threadId": run.thread_id, "runId": run.run_id}
        yield _encode_event({"type": "RUN_STARTED", **ids})
        if turn is None:
            yield _encode_event(await _build_snapshot(thread))
            yield _encode_event({"type": "RUN_FINISHED", **ids})
            return
        translator = Translator(turn)
        async for event in self._panel.stream_turn(thread, turn):
            if event is None:
                yield b":\n\n"
                continue
            for translated in translator.translate(event[1], event[2]):
                yield _encode_event(translated)
        if translator.answer is None:
            reason = translator.failure or "The server is shutting down before the answer is ready."
            text = f"{reason} Run it again: nothing is done twice."
            yield _encode_event({"type": "RUN_ERROR", "message": text, "code": "unfinished"})
            return
        if translator.is_stale:
            yield _encode_event(await _build_snapshot(thread))
        yield _encode_event({"type": "RUN_FINISHED", **ids, **_build_outcome(turn, translator.answer)})


class Translator:
    """Translates the events of one turn into AG-UI events.

    Attributes:
        answer: The final answer; None until it arrives.
        failure: The reason why the turn stopped without an answer.
        is_stale: Whether the streamed text includes text that isn't part of the answer.
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

    def translate(self, name: str, data: dict[str, Any]) -> Generator[Event]:
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


def _build_outcome(turn: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the members of RUN_FINISHED: the result, the usage, and an interrupt or cancellation."""
    outcome: dict[str, Any] = {"result": {name: answer[name] for name in ("source", "receipts") if name in answer}}
    if usage := answer.get("usage"):
        outcome["usage"] = [{"inputTokens": usage["input"], "outputTokens": usage["output"]}]
    if asks := answer.get("asks"):
        message = marked_text_of({**answer, "text": asks["text"]})
        question = {"id": f"{turn}.a", "reason": "confirmation", "message": message}
        schema = {"type": "boolean", "description": "Whether to do it"}
        outcome["outcome"] = {"type": "interrupt", "interrupts": [{**question, "responseSchema": schema}]}
    elif answer.get("source") == "stopped":
        outcome["outcome"] = {"type": "cancelled"}
    return outcome


async def _resolve_interrupt(thread: Thread, turn: str, resume: list[_Resume]) -> str:
    """Return the user's answer to the open question.

    Raises:
        ValueError: `resume` doesn't answer the open question, or answers other questions too.
    """
    (entry, *more) = resume
    payload = entry.payload
    approval = cast("dict[str, Any]", payload).get("approved") if isinstance(payload, dict) else payload
    answer = approval if isinstance(approval, str) else "yes" if approval is True else "no"
    text = answer if entry.status == "resolved" else "no"
    try:
        await thread.get_message(turn)
    except NotFound:
        pass
    else:
        return text  # This run repeats an earlier run.
    past = await thread.list_exchanges(None)
    if more or not past or not past[-1].answer.get("asks") or f"{past[-1].turn}.a" != entry.interrupt_id:
        raise ValueError("resume must answer the open question and nothing else")
    return text


async def _build_snapshot(thread: Thread) -> Event:
    """Return the newest messages and tool calls, oldest first."""
    page = await thread.queue.messages(roles=(*SHOWN, "tool"), limit=_MAX_MESSAGES, order="desc")
    messages = [entry for message in reversed(page.messages) for entry in _convert_message(message)]
    return {"type": "MESSAGES_SNAPSHOT", "messages": messages}


def _convert_message(message: Message) -> Generator[Event]:
    """Yield a message in AG-UI's format. A tool message becomes a call and its result."""
    id, content = message.message, message.content
    if message.role != "tool":
        message_id = id.removeprefix("u") if message.role == "user" else id
        yield {"id": message_id, "role": message.role, "content": marked_text_of(content)}
    elif not content.get("question"):
        arguments = msgspec.json.encode(content.get("arguments", {})).decode()
        call = {"id": id, "type": "function", "function": {"name": content["tool"], "arguments": arguments}}
        yield {"id": f"{id}.t", "role": "assistant", "toolCalls": [call]}
        yield {"id": f"{id}.r", "role": "tool", "toolCallId": id, "content": str(content.get("text", ""))}


def _get_text(message: _Message) -> str:
    """Return the text of a message.

    Raises:
        ValueError: The message has parts other than text.
    """
    content = message.content
    parts = [_Part("text", content)] if isinstance(content, str) else content or []
    if any(part.type != "text" for part in parts):
        raise ValueError("a message must be text; files and images are not supported")
    return "".join(part.text for part in parts)


def _digest(thread: Thread, text: str) -> str:
    return hashlib.sha256(thread.turn_path(text).encode("utf-8", "replace")).hexdigest()[:32]


def _encode_event(event: Event) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(event)

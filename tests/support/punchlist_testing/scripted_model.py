"""A model server on loopback that speaks Chat Completions and Responses, streamed, and says what a script says."""

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Says = str | list[tuple[str, dict[str, Any] | str]]
"""A text, or calls of tools with their arguments."""

Profile = Callable[[list[dict[str, Any]]], Any]
"""What the model says (`Says`) to these messages, in the form of Chat Completions."""


class Script:
    """What the server does.

    Attributes:
        profile: What it says.
        status: The status it answers with.
        refusal: What stands in the body of another status than 200.
        headers: Further headers of the answer.
        fault: `stall` before the head, `stall-mid`, `cut`, `malformed`, `empty`, `endless`, or nothing.
        asked: The bodies of all requests.
        piece: So many characters of a text are sent at once, in the form of Chat Completions.
        one_id: Whether all calls have the same id, as some servers give them.
        seen: The Authorization headers of all requests.
        began_at: When it sent the first piece of its newest answer, in seconds of the monotonic clock.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.status = 200
        self.refusal: Any = {}
        self.headers: dict[str, str] = {}
        self.fault = ""
        self.faults = 1 << 30
        self.asked: list[dict[str, Any]] = []
        self.seen: list[str] = []
        self.began_at = 0.0
        self.one_id = True
        self.piece = 9
        self.over = threading.Event()
        self.url = ""

    def fails(self) -> str:
        """The fault of this request."""
        self.faults -= 1
        return self.fault if self.faults >= 0 else ""


def last_user(messages: list[dict[str, Any]]) -> str:
    """What the person said last."""
    return str(next(one["content"] for one in reversed(messages) if one["role"] == "user"))


def results(messages: list[dict[str, Any]]) -> list[str]:
    """The results of tools since the person spoke."""
    at = max(number for number, one in enumerate(messages) if one["role"] == "user")
    return [str(one["content"]) for one in messages[at:] if one["role"] == "tool"]


def honest(messages: list[dict[str, Any]]) -> Says:
    """Calls the tool for a few plain requests, and says what came of it."""
    text, told = last_user(messages), results(messages)
    if told:
        return "Here is what came of it."
    verb, _, rest = text.partition(" ")
    if verb == "add":
        return [("create_todo_task", {"title": one}) for one in rest.split("; ")]
    if verb == "complete":
        return [("complete_todo_task", {"task_id": int(rest.split()[-1])})]
    if verb == "delete":
        return [("delete_todo_task", {"task_id": int(rest.split()[-1])})]
    if verb == "list":
        return [("list_todo_tasks", {})]
    return "Hello! I'm doing well, thank you."


def liar(messages: list[dict[str, Any]]) -> Says:
    """Claims everything and does nothing."""
    return f"Done! I have finished what you asked for: {last_user(messages)}. Created task: milk (#7)."


def self_confirming(messages: list[dict[str, Any]]) -> Says:
    """Agrees to its own deletions."""
    told = results(messages)
    if len(told) > 2:
        return "I've deleted it."
    words = {"user_words": "yes, I am sure", "confirm": "abcdef", "answered": True}
    return [("delete_todo_task", {"task_id": 1, **words})]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        script = self.script
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script.asked.append(body)
        script.seen.append(self.headers.get("Authorization", ""))
        fault = script.fails()
        if fault == "stall":
            script.over.wait(30)
            return
        if script.status != 200:
            self.send_response(script.status)
            told = json.dumps(script.refusal).encode()
            for name, value in {**script.headers, "Content-Length": str(len(told))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.path.endswith("/responses"):
            pieces = list(_responses(script.profile(_as_messages(body))))
        else:
            pieces = [
                f"data: {json.dumps(one)}\n\n"
                for one in _completions(script.profile(body["messages"]), one_id=script.one_id, piece=script.piece)
            ]
            pieces.append("data: [DONE]\n\n")
        self._send(pieces, fault)

    def _send(self, pieces: list[str], fault: str) -> None:
        if fault == "malformed":
            pieces = ["data: {not json\n\n"]
        if fault == "empty":
            pieces = ["data: [DONE]\n\n"]
        for number, piece in enumerate(pieces):
            if number == 1 and fault == "cut":
                return
            if number == 1 and fault == "stall-mid":
                self.script.over.wait(30)
                return
            if number == 0:
                self.script.began_at = time.monotonic()
            try:
                self.wfile.write(piece.encode())
                self.wfile.flush()
            except ConnectionError:  # the reader has had enough
                return

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _completions(says: Says, *, one_id: bool, piece: int) -> Generator[dict[str, Any]]:
    if isinstance(says, str):
        for at in range(0, len(says), piece):
            yield {"choices": [{"index": 0, "delta": {"content": says[at : at + piece]}}]}
    else:
        for at, (name, arguments) in enumerate(says):
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            first = {
                "index": at,
                "id": "same" if one_id else f"call_{time.monotonic_ns()}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": given[:5]},
            }
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [first]}}]}
            rest = {"index": at, "function": {"arguments": given[5:]}}
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


def _as_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The input of a Responses request in the form of Chat Completions."""
    messages: list[dict[str, Any]] = []
    for item in body["input"]:
        if item.get("type") == "function_call_output":
            messages.append({"role": "tool", "content": item["output"]})
        elif item.get("role"):
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            messages.append({"role": item["role"], "content": text})
    return messages


def _responses(says: Says) -> Generator[str]:
    number = 0

    def event(kind: str, **data: Any) -> str:
        nonlocal number
        number += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **data})}\n\n"

    response: dict[str, Any] = {
        "id": f"resp_{time.monotonic_ns()}", "object": "response", "created_at": 0, "model": "m", "output": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress",
    }  # fmt: skip
    yield event("response.created", response=response)
    output: list[dict[str, Any]] = []
    if isinstance(says, str):
        part: dict[str, Any] = {"type": "output_text", "text": says, "annotations": []}
        item: dict[str, Any] = {
            "id": f"msg_{time.monotonic_ns()}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        yield event("response.output_item.added", output_index=0, item={**item, "content": [], "status": "in_progress"})
        yield event(
            "response.content_part.added",
            item_id=item["id"],
            output_index=0,
            content_index=0,
            part={**part, "text": ""},
        )
        for at in range(0, len(says), 9):
            delta: dict[str, Any] = {"delta": says[at : at + 9], "logprobs": []}
            yield event("response.output_text.delta", item_id=item["id"], output_index=0, content_index=0, **delta)
        output.append(item)
    else:
        for at, (name, arguments) in enumerate(says):
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call = {
                "id": f"fc_{at}",
                "type": "function_call",
                "call_id": f"call_{time.monotonic_ns()}_{at}",
                "name": name,
            }
            output.append({**call, "arguments": given, "status": "completed"})
    for at, item in enumerate(output):
        yield event("response.output_item.done", output_index=at, item=item)
    usage = {
        "input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, 
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    yield event("response.completed", response={**response, "status": "completed", "output": output, "usage": usage})


@contextmanager
def serving(profile: Profile) -> Generator[Script]:
    """A server of this script on a free port."""
    script = Script(profile)
    handler = type("Handler", (_Handler,), {"script": script})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield script
        finally:
            script.over.set()
            server.shutdown()
            thread.join()

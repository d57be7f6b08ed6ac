"""Chat Completions client, for Ollama, llama.cpp, vLLM, LM Studio, hosted models and gateways.

It sends one streaming request per step, using only the standard library, and only to the configured URL. It doesn't
follow redirects or use a proxy.
"""

import json
from typing import Any, NamedTuple

from punchlist_apps.chat.models.port import ModelError, Work
from punchlist_apps.chat.models.requests import Limits, stream
from punchlist_apps.chat.toolset import ToolCall, clean_arguments

_MAX_TEXT = 200_000
_RETRIED = frozenset({"cut", "500", "502", "503"})


class _Answer(NamedTuple):
    text: str
    calls: list[tuple[str, str]]
    usage: dict[str, int]


class Completions:
    """A model at a URL of the form `http://127.0.0.1:11434/v1`."""

    def __init__(self, name: str, base_url: str, key: str = "", limits: Limits | None = None) -> None:
        self.name = name
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._limits = limits or Limits()

    async def run(self, work: Work, instructions: str, definitions: list[dict[str, Any]]) -> tuple[str, dict[str, int]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": instructions}, *work.history]
        for calls, results in work.finished_steps:
            messages += _build_messages(calls, results)
        steps = len(work.finished_steps)
        while True:
            answer = await self._ask(messages, definitions, work, first=not steps)
            if not answer.calls:
                return answer.text, answer.usage
            steps += 1
            calls = [
                ToolCall(f"{steps}-{place}", tool, clean_arguments(arguments))
                for place, (tool, arguments) in enumerate(answer.calls, 1)
            ]
            await work.plan_step(calls, answer.usage)
            results = [await work.make_call(call.id) for call in calls]
            if work.is_finished:
                return answer.text, {}
            messages += _build_messages(calls, results)

    async def _ask(self, messages: list[Any], definitions: list[Any], work: Work, *, first: bool) -> _Answer:
        """Request one response. Retry once if the first request failed before any text arrived."""
        body = {"model": self.name, "messages": messages, "tools": definitions}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        for try_ in (1, 2):
            reader = _AnswerReader()
            try:
                async for event in stream(self._url, self._headers, body, self._limits):
                    if text := reader.add(event):
                        work.add_delta(text)
                return reader.build_answer()
            except ModelError as error:
                if try_ > 1 or not first or reader.text or error.kind not in _RETRIED:
                    raise
        raise AssertionError("a second failure is raised")


def _build_messages(calls: list[ToolCall], results: list[str]) -> list[dict[str, Any]]:
    requests = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
        for call in calls
    ]
    outputs = [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(calls, results, strict=True)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": requests}, *outputs]


class _AnswerReader:
    """Assembles one streamed response."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, list[str]] = {}
        self._usage: dict[str, int] = {}
        self._is_complete = False

    def add(self, event: Any) -> str:  # noqa: C901 - checks an event member by member
        """Add an event and return its text.

        Raises:
            ModelError: The event is malformed.
        """
        try:
            if event is None:
                self._is_complete = True
                return ""
            if event.get("error"):
                raise ModelError("malformed", str(event["error"])[:200])
            if usage := event.get("usage"):
                self._usage = {
                    "input": int(usage.get("prompt_tokens", 0)),
                    "output": int(usage.get("completion_tokens", 0)),
                }
            added: str = ""
            for choice in event.get("choices") or ():
                self._is_complete = self._is_complete or bool(choice.get("finish_reason"))
                piece: Any = choice.get("delta") or choice.get("message") or {}
                added += piece.get("content") or ""
                for index, call in enumerate(piece.get("tool_calls") or ()):
                    function: Any = call.get("function") or {}
                    slot = self.calls.setdefault(int(call.get("index", index)), ["", ""])
                    slot[0] += function.get("name") or ""
                    arguments: Any = function.get("arguments") or ""
                    slot[1] += arguments if isinstance(arguments, str) else json.dumps(arguments)
            added = added.encode("utf-8", "replace").decode()
            self.text += added
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise ModelError("malformed", f"{type(error).__name__} while reading its answer") from None
        if len(self.text) + sum(len(call[1]) for call in self.calls.values()) > _MAX_TEXT:
            raise ModelError("malformed", "its answer is too long")
        return added

    def build_answer(self) -> _Answer:
        """Return the complete response.

        Raises:
            ModelError: The stream ended early.
        """
        if not self._is_complete:
            raise ModelError("cut", "its answer ended in the middle")
        return _Answer(
            self.text, [(name, arguments) for _, (name, arguments) in sorted(self.calls.items())], self._usage
        )

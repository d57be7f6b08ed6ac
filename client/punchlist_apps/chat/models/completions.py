"""A model that speaks Chat Completions: Ollama, llama.cpp, vLLM, LM Studio, hosted ones and gateways.

One request for each step, streamed, by the standard library alone. Nothing is sent anywhere but to the given URL, no
redirect is followed and no proxy is used.
"""

import json
from typing import Any, NamedTuple

from punchlist_apps.chat.models.port import Away, Work
from punchlist_apps.chat.models.requests import Limits, stream
from punchlist_apps.chat.toolset import Wanted, cleaned

_MOST_TEXT = 200_000
_RETRIED = frozenset({"cut", "500", "502", "503"})


class _Answer(NamedTuple):
    text: str
    calls: list[tuple[str, str]]
    usage: dict[str, int]


class Completions:
    """A model behind a URL of the form `http://127.0.0.1:11434/v1`."""

    def __init__(self, name: str, base_url: str, key: str = "", limits: Limits | None = None) -> None:
        self.name = name
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._limits = limits or Limits()

    async def run(self, work: Work, instructions: str, definitions: list[dict[str, Any]]) -> tuple[str, dict[str, int]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": instructions}, *work.history]
        for calls, results in work.taken:
            messages += _as_messages(calls, results)
        steps = len(work.taken)
        while True:
            answer = await self._asked(messages, definitions, work, first=not steps)
            if not answer.calls:
                return answer.text, answer.usage
            steps += 1
            calls = [Wanted(f"{steps}-{at}", tool, cleaned(given)) for at, (tool, given) in enumerate(answer.calls, 1)]
            await work.step(calls, answer.usage)
            results = [await work.call(one.id) for one in calls]
            if work.is_over:
                return answer.text, {}
            messages += _as_messages(calls, results)

    async def _asked(self, messages: list[Any], definitions: list[Any], work: Work, *, first: bool) -> _Answer:
        """One answer; asked for once more if the first try broke before it said anything."""
        body = {"model": self.name, "messages": messages, "tools": definitions}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        for try_ in (1, 2):
            reading = _Reading()
            try:
                async for event in stream(self._url, self._headers, body, self._limits):
                    if text := reading.take(event):
                        work.delta(text)
                return reading.answer()
            except Away as away:
                if try_ > 1 or not first or reading.text or away.kind not in _RETRIED:
                    raise
        raise AssertionError("a second failure is raised")


def _as_messages(calls: list[Wanted], results: list[str]) -> list[dict[str, Any]]:
    made = [
        {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": json.dumps(one.arguments)}}
        for one in calls
    ]
    answers = [
        {"role": "tool", "tool_call_id": one.id, "content": result} for one, result in zip(calls, results, strict=True)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": made}, *answers]


class _Reading:
    """Puts the pieces of one streamed answer together."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, list[str]] = {}
        self._usage: dict[str, int] = {}
        self._is_over = False

    def take(self, event: Any) -> str:  # noqa: C901 - the form of an answer, member by member
        """Take a piece; the text that it adds.

        Raises:
            Away: It has not the form of one.
        """
        try:
            if event is None:
                self._is_over = True
                return ""
            if event.get("error"):
                raise Away("malformed", str(event["error"])[:200])
            if usage := event.get("usage"):
                self._usage = {
                    "input": int(usage.get("prompt_tokens", 0)),
                    "output": int(usage.get("completion_tokens", 0)),
                }
            added: str = ""
            for choice in event.get("choices") or ():
                self._is_over = self._is_over or bool(choice.get("finish_reason"))
                piece: Any = choice.get("delta") or choice.get("message") or {}
                added += piece.get("content") or ""
                for at, call in enumerate(piece.get("tool_calls") or ()):
                    function: Any = call.get("function") or {}
                    slot = self.calls.setdefault(int(call.get("index", at)), ["", ""])
                    slot[0] += function.get("name") or ""
                    given: Any = function.get("arguments") or ""
                    slot[1] += given if isinstance(given, str) else json.dumps(given)
            added = added.encode("utf-8", "replace").decode()
            self.text += added
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise Away("malformed", f"{type(error).__name__} in what it sent") from None
        if len(self.text) + sum(len(call[1]) for call in self.calls.values()) > _MOST_TEXT:
            raise Away("malformed", "its answer has no end")
        return added

    def answer(self) -> _Answer:
        """What was said.

        Raises:
            Away: The stream ended in the middle.
        """
        if not self._is_over:
            raise Away("cut", "its answer ended in the middle")
        return _Answer(self.text, [(name, given) for _, (name, given) in sorted(self.calls.items())], self._usage)

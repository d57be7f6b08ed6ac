"""A scripted model of LangChain."""

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from punchlist_testing.frameworks import Turn


class ScriptedChat(BaseChatModel):
    """A model of LangChain. `respond` receives all messages and returns the turn."""

    respond: Callable[[list[BaseMessage]], Turn]
    tools: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.tools = list(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = self.respond(messages)
        text, calls = (turn, []) if isinstance(turn, str) else ("", turn)
        made = [{"name": name, "args": args, "id": f"{len(messages)}.{i}"} for i, (name, args) in enumerate(calls)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=made))])

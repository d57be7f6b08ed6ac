"""The interface between turns and models."""

from typing import Any, Protocol

from punchlist_apps.chat.toolset import ToolCall


class ModelError(Exception):
    """The model didn't respond, or its response can't be used.

    Attributes:
        kind: A word or an HTTP status, such as `refused`, `unreachable`, `timeout`, `cut`, `malformed`, `steps`, `401`.
        retry_after_s: Seconds that the server asks clients to wait before the next request; None if not given.
    """

    def __init__(self, kind: str, text: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(text or kind)
        self.kind = kind
        self.retry_after_s = retry_after_s


class Work(Protocol):
    """The part of a turn that a model uses."""

    @property
    def history(self) -> list[dict[str, str]]:
        """Earlier messages and this one, each with role (`user`, `assistant`) and content, oldest first."""
        ...

    @property
    def finished_steps(self) -> list[tuple[list[ToolCall], list[str]]]:
        """Finished steps with the results of their calls. A turn that resumes after a crash may start with some."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the model must stop, because the turn was stopped or is waiting for the person's answer."""
        ...

    async def plan_step(self, calls: list[ToolCall], usage: dict[str, int]) -> None:
        """Store the calls in one of the model's responses, before the first of them is made."""
        ...

    async def make_call(self, id: str) -> str:
        """Make a stored call and return the result to show to the model."""
        ...

    def add_delta(self, text: str) -> None:
        """Publish a piece of the model's text."""
        ...


class Model(Protocol):
    """A language model.

    Attributes:
        name: The model's name, for the trace.
    """

    name: str

    async def run(self, work: Work, instructions: str, definitions: list[dict[str, Any]]) -> tuple[str, dict[str, int]]:
        """Run a turn. Return the final text and the usage (`input` and `output`, in tokens).

        Raises:
            ModelError: The model didn't respond, or its response can't be used.
        """
        ...

"""What a model is to a turn, and how it is away."""

from typing import Any, Protocol

from punchlist_apps.chat.toolset import Wanted


class Away(Exception):
    """The model did not answer, or not in a way that can be used.

    Attributes:
        kind: In a word or a number: `refused`, `unreachable`, `timeout`, `cut`, `malformed`, `steps`, `401`, `429`.
        retry_after_s: Seconds after which it wants to be asked again, if it said so.
    """

    def __init__(self, kind: str, text: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(text or kind)
        self.kind = kind
        self.retry_after_s = retry_after_s


class Work(Protocol):
    """What a turn offers to a model."""

    @property
    def history(self) -> list[dict[str, str]]:
        """What was said before and now: role (`user`, `assistant`) and content, oldest first."""
        ...

    @property
    def taken(self) -> list[tuple[list[Wanted], list[str]]]:
        """The steps of this turn that were made already, with the results: after a crash there may be some."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the model has nothing more to do in this turn: the person is being asked."""
        ...

    async def step(self, calls: list[Wanted], usage: dict[str, int]) -> None:
        """Write down the calls of one answer of the model, before the first of them is made."""
        ...

    async def call(self, id: str) -> str:
        """Make a call that was written down; its result for the model."""
        ...

    def delta(self, text: str) -> None:
        """A piece of the text that is being written."""
        ...


class Model(Protocol):
    """A language model.

    Attributes:
        name: As answers name it.
    """

    name: str

    async def run(self, work: Work, instructions: str, definitions: list[dict[str, Any]]) -> tuple[str, dict[str, int]]:
        """Answer a turn: the final text and what it used (`input`, `output`, in tokens).

        Raises:
            Away: It can't.
        """
        ...

"""What the screens know of the program that shows them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from textual.app import App

from punchlist.calls.cursor import Cursor
from punchlist.connection.options import Options
from punchlist_apps.ui.keymap import Keymap
from punchlist_schemas.things import Conversation

T = TypeVar("T")


class Setup(NamedTuple):
    """How `punch ui` was called.

    Attributes:
        options: How to connect.
        glyphs: The signs that the terminal can show.
        conversation: The list to open first; None: the board.
        actor: Who makes the changes, by default the connection's name.
        owner: For whom tasks are claimed.
        read_only: Whether nothing may be changed.
        keys: A file of the user's own keys.
    """

    options: Options
    glyphs: Mapping[str, str]
    conversation: str | None = None
    actor: str | None = None
    owner: str = "punch"
    read_only: bool = False
    keys: Path | None = None


class Program(App[None]):
    """What every screen may ask of the program.

    Attributes:
        setup: How it was called.
        keys: Which key does what.
        cards: Every list, by id.
        away: Why the daemon does not answer; empty: it does.
    """

    setup: Setup
    keys: Keymap
    cards: dict[str, Conversation]
    away: str = ""

    @abstractmethod
    def open_list(self, name: str) -> None:
        """Show one list over the board."""

    @abstractmethod
    def open_who(self) -> None:
        """Show the agents over this screen."""

    @abstractmethod
    async def follow(self, cursor: Cursor[T], take: Callable[[T], None]) -> None:
        """Take what a subscription hands out, for ever. While the daemon is away the last picture stays."""

    @abstractmethod
    async def follow_board(self) -> None:
        """Keep the cards as they are now, for ever. It goes on where it was when it was left."""

"""The program's interface for its screens."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from textual.app import App

from punchlist.calls.cursor import Cursor
from punchlist.clients.aio import AsyncConversation
from punchlist.connection.options import Options
from punchlist_apps.ui.keymap import Keymap
from punchlist_apps.ui.memory import Memory
from punchlist_schemas.things import Conversation

T = TypeVar("T")


class Setup(NamedTuple):
    """Options of `punch ui`.

    Attributes:
        options: Connection options.
        glyphs: The glyphs that the terminal can show.
        conversation: The list to open first; None for the board.
        actor: Actor to record for changes, by default the connection's name.
        owner: Owner of claims.
        read_only: Whether changes are disabled.
        keys: File with the user's own keys.
        memory: File that keeps theme and arrangement; None to keep nothing.
        theme: `dark` or `light`.
        bell: Whether to ring the terminal's bell when a task waits for approval.
    """

    options: Options
    glyphs: Mapping[str, str]
    conversation: str | None = None
    actor: str | None = None
    owner: str = "punch"
    read_only: bool = False
    keys: Path | None = None
    memory: Path | None = None
    theme: str = "dark"
    bell: bool = False


class Program(App[None]):
    """The members of the program that its screens use.

    Attributes:
        memory: What the program keeps between its runs.
        glyphs: The glyphs of the terminal and the program's own signs.
        cards: All lists by id.
        last_list: The list that the user changed last here; empty for none.
        connection_error: Why the daemon doesn't respond; empty while it does.
    """

    setup: Setup
    keys: Keymap
    memory: Memory
    glyphs: Mapping[str, str]
    cards: dict[str, Conversation]
    connection_error: str = ""
    last_list: str = ""

    @property
    @abstractmethod
    def actor(self) -> str:
        """The actor that the log records for the user's changes."""

    @abstractmethod
    def open_conversation(self, name: str) -> AsyncConversation:
        """Return a list, whose changes are made by the user."""

    @abstractmethod
    def open_now(self) -> None:
        """Return to the first screen."""

    @abstractmethod
    def open_board(self) -> None:
        """Open the screen of all lists."""

    @abstractmethod
    def open_list(self, name: str, task: str = "") -> None:
        """Open the screen of a list on top of the first screen or the board, with a task selected."""

    @abstractmethod
    def open_search(self, conversation: str = "") -> None:
        """Open the search over all lists, which shows tasks of one list first."""

    @abstractmethod
    def switch_theme(self) -> None:
        """Change from the dark to the light theme or back, and keep that."""

    @abstractmethod
    def open_who(self) -> None:
        """Open the screen of agents on top of the current one."""

    @abstractmethod
    async def follow(self, cursor: Cursor[T], take: Callable[[T], None]) -> None:
        """Pass the items of a subscription to `take`, forever. Reconnects after losing the connection to the daemon."""

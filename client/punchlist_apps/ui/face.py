"""What the screens have in common: lines between a bar and hints, keys by the table, a clock while it is needed."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, cast

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, Static

from punchlist.base.text import safe
from punchlist.errors import PunchlistError
from punchlist_apps.common.terminal.style import FRAME_S
from punchlist_apps.ui.dialogs import Notice, painted
from punchlist_apps.ui.lines import COLOURS, Lines
from punchlist_apps.ui.parts import DrawContext, Item, Part, fitted, width_of
from punchlist_apps.ui.program import Program

BREATH_S = 0.1
"""However many changes come, the screen is drawn no more often than this, in seconds."""
_NAMED = "up down left right home end pageup pagedown enter escape space tab backspace delete".split()


class Face(Screen[None]):
    """A screen of lines. Its actions are the methods `do_NAME` of the names in `keys.toml`."""

    place: ClassVar[str]
    hints: ClassVar[dict[str, str]]
    """The actions whose keys stand at the bottom, the most wanted first, each in a word."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines(self.draw)
        self.words = ""
        self._ticking: Timer | None = None
        self._breath: Timer | None = None
        self._due = False
        self._colours: dict[str, Any] = {}
        self._hinted = 0
        self._put_last: dict[str, list[list[Part]]] = {}

    @property
    def face(self) -> Program:
        return cast(Program, self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        with Horizontal(id="body"):
            yield self.lines
            yield from self.beside()
        yield Static(id="running")
        yield Static(id="said")
        yield Input(placeholder="words  is:blocked  @ann  p:high  +label  -not", id="words")
        yield Static(id="hints")

    def beside(self) -> ComposeResult:
        yield from ()

    def on_mount(self) -> None:
        self.lines.focus()
        self.arranged()

    # what a screen says itself

    def draw(self, item: Item, width: int) -> list[Part]:
        raise NotImplementedError

    def items(self) -> list[Item]:
        raise NotImplementedError

    def head(self) -> list[Part]:
        raise NotImplementedError

    def spins(self, key: str) -> bool:
        raise NotImplementedError

    def under(self) -> list[list[Part]]:
        """Lines about what is being worked on and can't be seen among the lines."""
        return []

    def empty(self) -> str:
        return ""

    def draw_changes(self) -> None:
        raise NotImplementedError

    # drawing

    def soon(self) -> None:
        """Something changed: draw it now, with what else changes in a moment, or with the spinner's next turn."""
        self._due = True
        if self._breath is None and self._ticking is None:
            self._breathe()

    def _breathe(self) -> None:
        self._breath = self.set_timer(BREATH_S, self._breathe) if self._due else None
        self._draw_due()

    def _draw_due(self) -> None:
        if self._due:
            self._due = False
            self.draw_changes()

    def draw_context(self, width: int) -> DrawContext:
        return DrawContext(self.face.setup.glyphs, int(time.time() * 1000), int(time.monotonic() / FRAME_S), width)

    def arranged(self) -> None:
        items = self.items()
        self.lines.show(items if items else [Item("", 0, line) for line in self.empty().splitlines()])
        self.draw_frame()

    def draw_frame(self) -> None:
        if not self.is_mounted:
            return
        width = self.size.width
        live: Part = ("failed", "● away ") if self.face.away else ("completed", "● live ")
        if self.face.setup.read_only:
            live = (live[0], f"read-only  {live[1]}")
        head = fitted([("", " "), *self.head()], max(width - width_of([live]) - 1, 10))
        space = max(width - width_of([*head, live]), 1)
        self._put("#bar", [[*head, ("", " " * space), live]])
        below = self.under()
        self._put("#running", [fitted(parts, width) for parts in below])
        if self._hinted != width:
            self._hinted = width
            self._put("#hints", [self._hints(width)])
        self._pulse(turns=bool(below))

    def report(self, *sentences: str) -> None:
        for said in self.query("#said").results(Static):  # none when the screen was left meanwhile
            said.display = bool(sentences)
            said.update(Text(safe("   ".join(sentences)), no_wrap=False))

    def on_lines_chosen(self) -> None:
        self.draw_frame()

    def on_resize(self) -> None:
        self.draw_frame()

    def _put(self, name: str, lines: Iterable[list[Part]]) -> None:
        rows = list(lines)
        if self._put_last.get(name) == rows:
            return
        self._put_last[name] = rows
        static = self.query_one(name, Static)
        shown = [painted(parts, self.styles_by_name()) for parts in rows]
        height = len(shown)
        moved = static.display != bool(height) or static.styles.height is None or static.styles.height.value != height
        if moved:
            static.display = bool(height)
            static.styles.height = height
        static.update(Text("\n").join(shown), layout=moved)

    def styles_by_name(self) -> dict[str, Any]:
        if not self._colours:
            self._colours = {name: self.lines.colour(name) for name in COLOURS.split()}
        return self._colours

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._colours = {}
        self._put_last = {}

    def _hints(self, width: int) -> list[Part]:
        parts: list[Part] = []
        for name, word in self.hints.items():
            more: list[Part] = [("in_progress", f" {self.face.keys.hint(name)}"), ("dim", f" {word} ")]
            if self.face.keys.keys[name].keys and width_of([*parts, *more]) <= width:
                parts += more
        return parts

    # the spinner

    def _pulse(self, *, turns: bool) -> None:
        """Let the clock run while something in progress is in view, and at no other time."""
        turns = turns or any(self.spins(item.key) for item in self.lines.in_view)
        wanted = turns and self.face.screen is self
        if wanted and self._ticking is None:
            self._ticking = self.set_interval(FRAME_S, self._tick, name="spinner")
        elif not wanted and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def _tick(self) -> None:
        self._draw_due()
        self.lines.changed({item.key for item in self.lines.in_view if self.spins(item.key)})
        if below := self.under():
            self._put("#running", [fitted(parts, self.size.width) for parts in below])
        self._pulse(turns=bool(below))

    def on_screen_suspend(self) -> None:
        if self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def on_screen_resume(self) -> None:
        self._draw_due()
        self.arranged()

    # keys

    async def on_key(self, event: events.Key) -> None:
        if isinstance(self.focused, Input):
            if event.key in ("escape", "enter", "tab"):
                event.prevent_default().stop()
                self._leave_words(keep=event.key != "escape")
            return
        key = event.key if event.key in _NAMED or event.key.startswith("ctrl+") else event.character or event.key
        action = self.face.keys.action(self.place, key)
        if action is None:
            return
        event.prevent_default().stop()
        self.report()
        await self.act(action)

    async def act(self, action: str) -> None:
        done: Callable[[], Awaitable[None] | None] = getattr(self, f"do_{action}")
        if (waiting := done()) is not None:
            await waiting

    def calls(self, work: Awaitable[None], group: str = "calls", *, exclusive: bool = False) -> None:
        """Let calls be made beside the keys; what the daemon refuses is said."""
        self.run_worker(self._reported(work), group=group, exclusive=exclusive)

    async def _reported(self, work: Awaitable[None]) -> None:
        try:
            await work
        except PunchlistError as error:
            self.report(str(error))

    def do_down(self) -> None:
        self.lines.move(1)

    def do_up(self) -> None:
        self.lines.move(-1)

    def do_first(self) -> None:
        self.lines.choose(0)

    def do_last(self) -> None:
        self.lines.choose(len(self.lines.items) - 1, -1)

    def do_page_down(self) -> None:
        self.lines.move(max(self.lines.size.height - 1, 1))

    def do_page_up(self) -> None:
        self.lines.move(-max(self.lines.size.height - 1, 1))

    def do_filter(self) -> None:
        words = self.query_one("#words", Input)
        words.display = True
        words.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "words":
            self.words = event.value
            self.arranged()

    def _leave_words(self, *, keep: bool) -> None:
        words = self.query_one("#words", Input)
        if not keep:
            words.value = self.words = ""
        words.display = bool(words.value)
        self.lines.focus()
        self.arranged()

    def do_palette(self) -> None:
        self.face.action_command_palette()

    def do_who(self) -> None:
        self.face.open_who()

    def do_help(self) -> None:
        text = Text()
        group = ""
        for key in self.face.keys.keys.values():
            if self.place in key.screens:
                if key.group != group:
                    group = key.group
                    text.append(f"\n{group}\n", "bold")
                text.append(f"  {key.shown:<12}", self.lines.colour("in_progress"))
                text.append(f"{key.does}\n")
        self.face.push_screen(Notice("Keys", lambda: text))

    def do_quit(self) -> None:
        self.face.exit()

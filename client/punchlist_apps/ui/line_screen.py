"""Base class of the screens, with lines between a top bar and key hints, key bindings, and a spinner when needed."""

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
from punchlist_apps.ui.changes import CHANGES, WRITES
from punchlist_apps.ui.dialogs import Notice, Prompt, render_parts
from punchlist_apps.ui.lines import STYLE_NAMES, Lines
from punchlist_apps.ui.parts import DrawContext, Item, Part, fit_parts, width_of
from punchlist_apps.ui.program import Program
from punchlist_apps.ui.undo import undo_own

WIDE = 110
"""Minimum width for a second column, in columns."""
MIN_REDRAW_S = 0.1
"""Minimum interval between redraws, in seconds."""
_JUMP_S = 1.0
"""Time in which the user may not have seen that the cursor has left a line that disappeared, in seconds."""
_MINUTE_S = 60
"""Interval in which ages and dates are drawn again, in seconds."""
_NAMED_KEYS = "up down left right home end pageup pagedown enter escape space tab backspace delete".split()


class LineScreen(Screen[None]):
    """A screen of lines. Its actions are the methods `do_NAME`, with names from `keys.toml`."""

    screen_name: ClassVar[str]
    hints: ClassVar[dict[str, str]]
    """Actions whose keys are shown at the bottom, the most useful first, and the word shown for each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines(self.draw)
        self.filter_text = ""
        self._spinner_timer: Timer | None = None
        self._redraw_timer: Timer | None = None
        self._has_changes = False
        self._styles_by_name: dict[str, Any] = {}
        self._hints_width = 0
        self._drawn_rows: dict[str, list[list[Part]]] = {}

    @property
    def program(self) -> Program:
        return cast(Program, self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        yield Static(id="head")
        with Horizontal(id="body"):
            yield self.lines
            yield from self.compose_side()
        yield Static(id="running")
        yield Static(id="message")
        yield Input(placeholder="words  is:blocked  @ann  p:high  +label  -not", id="filter")
        yield Static(id="hints")

    def compose_side(self) -> ComposeResult:
        yield from ()

    @property
    def all_lines(self) -> tuple[Lines, ...]:
        return (self.lines,)

    def focus_start(self) -> None:
        """Focus what the keys go to when the screen opens."""
        self.lines.focus()

    def on_mount(self) -> None:
        self.focus_start()
        self.set_interval(_MINUTE_S, self.rearrange, name="minute")
        self.rearrange()

    # implemented by each screen

    def draw(self, item: Item, width: int) -> list[Part]:
        raise NotImplementedError

    def build_items(self) -> list[Item]:
        raise NotImplementedError

    def draw_bar(self) -> list[Part]:
        raise NotImplementedError

    def has_spinner(self, key: str) -> bool:
        raise NotImplementedError

    def draw_head(self) -> list[Part]:
        """Render the line above the lines; empty for none."""
        return []

    def draw_running(self) -> list[list[Part]]:
        """Render the tasks in progress that aren't among the visible lines."""
        return []

    def describe_empty(self) -> str:
        return ""

    def draw_changes(self) -> None:
        raise NotImplementedError

    # drawing

    def schedule_draw(self) -> None:
        """Draw changes now, or with the next redraw or spinner frame if one is already due."""
        self._has_changes = True
        if self._redraw_timer is None and self._spinner_timer is None:
            self._redraw_and_wait()

    def _redraw_and_wait(self) -> None:
        self._redraw_timer = self.set_timer(MIN_REDRAW_S, self._redraw_and_wait) if self._has_changes else None
        self._draw_pending()

    def _draw_pending(self) -> None:
        if self._has_changes:
            self._has_changes = False
            self.draw_changes()

    def draw_context(self, width: int) -> DrawContext:
        return DrawContext(self.program.glyphs, int(time.time() * 1000), int(time.monotonic() / FRAME_S), width)

    def rearrange(self) -> None:
        items = self.build_items()
        self.lines.set_items(items if items else [Item("", 0, line) for line in self.describe_empty().splitlines()])
        self.draw_frame()

    def draw_frame(self) -> None:
        if not self.is_mounted:
            return
        width = self.size.width
        live: Part = ("failed", "● away ") if self.program.connection_error else ("completed", "● live ")
        if self.program.setup.read_only:
            live = (live[0], f"read-only  {live[1]}")
        bar = fit_parts([("", " "), *self.draw_bar()], max(width - width_of([live]) - 1, 10))
        space = max(width - width_of([*bar, live]), 1)
        self._update("#bar", [[*bar, ("", " " * space), live]])
        head = self.draw_head()
        self._update("#head", [head] if head else [])
        running = self.draw_running()
        self._update("#running", [fit_parts(parts, width) for parts in running])
        if self._hints_width != width:
            self._hints_width = width
            self._update("#hints", [self._draw_hints(width)])
        self._update_spinner(has_running=bool(running))

    def report(self, *sentences: str) -> None:
        """Show the sentences as a message, or hide the message if there are none."""
        for message in self.query("#message").results(Static):  # No results once the screen is closed.
            message.display = bool(sentences)
            message.update(Text(safe("   ".join(sentences)), no_wrap=False))

    def on_lines_selected(self) -> None:
        self.draw_frame()

    def on_resize(self) -> None:
        self.draw_frame()

    def _update(self, selector: str, lines: Iterable[list[Part]]) -> None:
        rows = list(lines)
        if self._drawn_rows.get(selector) == rows:
            return
        self._drawn_rows[selector] = rows
        static = self.query_one(selector, Static)
        texts = [render_parts(parts, self.styles_by_name()) for parts in rows]
        height = len(texts)
        resized = static.display != bool(height) or static.styles.height is None or static.styles.height.value != height
        if resized:
            static.display = bool(height)
            static.styles.height = height
        static.update(Text("\n").join(texts), layout=resized)

    def styles_by_name(self) -> dict[str, Any]:
        if not self._styles_by_name:
            self._styles_by_name = {name: self.lines.line_style(name) for name in STYLE_NAMES.split()}
        return self._styles_by_name

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles_by_name = {}
        self._drawn_rows = {}

    def _draw_hints(self, width: int) -> list[Part]:
        parts: list[Part] = []
        for name, word in self.hints.items():
            more: list[Part] = [("in_progress", f" {self.program.keys.hint(name)}"), ("dim", f" {word} ")]
            if self.program.keys.keys[name].keys and width_of([*parts, *more]) <= width:
                parts += more
        return parts

    # the spinner

    def _update_spinner(self, *, has_running: bool) -> None:
        """Run the spinner's timer only while a task in progress is visible."""
        has_running = has_running or any(
            self.has_spinner(item.key) for lines in self.all_lines for item in lines.visible_items
        )
        is_needed = has_running and self.program.screen is self
        if is_needed and self._spinner_timer is None:
            self._spinner_timer = self.set_interval(FRAME_S, self._tick, name="spinner")
        elif not is_needed and self._spinner_timer is not None:
            self._spinner_timer.stop()
            self._spinner_timer = None
            if self._has_changes and self._redraw_timer is None:
                # The spinner's next frame would have drawn them.
                self._redraw_timer = self.set_timer(MIN_REDRAW_S, self._redraw_and_wait)

    def _tick(self) -> None:
        self._draw_pending()
        for lines in self.all_lines:
            lines.refresh_keys({item.key for item in lines.visible_items if self.has_spinner(item.key)})
        if running := self.draw_running():
            self._update("#running", [fit_parts(parts, self.size.width) for parts in running])
        self._update_spinner(has_running=bool(running))

    def on_screen_suspend(self) -> None:
        if self._spinner_timer is not None:
            self._spinner_timer.stop()
            self._spinner_timer = None

    def on_screen_resume(self) -> None:
        self._draw_pending()
        self.rearrange()

    # keys

    async def on_key(self, event: events.Key) -> None:
        if isinstance(self.focused, Input):
            if event.key in ("escape", "enter", "tab"):
                event.prevent_default().stop()
                self._close_filter(keep=event.key != "escape")
                self.lines.jumped_at = 0.0
            return
        key = event.key if event.key in _NAMED_KEYS or event.key.startswith("ctrl+") else event.character or event.key
        action = self.program.keys.find_action(self.screen_name, key)
        if action is None:
            return
        event.prevent_default().stop()
        self.report()
        has_jumped = time.monotonic() < self.lines.jumped_at + _JUMP_S
        if has_jumped and action in CHANGES:
            self.report("The selected line has just disappeared. Press the key again to change this one.")
        else:
            await self.act(action)
        self.lines.jumped_at = 0.0

    async def act(self, action: str) -> None:
        if action in WRITES and self.program.setup.read_only:
            self.report("Changes are disabled: punch ui runs with --read-only.")
            return
        if action in CHANGES:
            self.change(action)
            return
        do: Callable[[], Awaitable[None] | None] = getattr(self, f"do_{action}")
        if (awaitable := do()) is not None:
            await awaitable

    def change(self, action: str) -> None:
        """Make one of `CHANGES` to the selected task, with the text that it asks for."""

    def report_gate(self, id: str, approval: str) -> None:
        """Say how to answer a task that waits for an approval."""
        yes, no = self.program.keys.hint("approve"), self.program.keys.hint("reject")
        self.report(f"#{id} waits for {approval}: {yes} approves it, {no} rejects it with a reason.")

    def run_calls(self, calls: Awaitable[object], group: str = "calls", *, exclusive: bool = False) -> None:
        """Make calls in the background, so that the screen still responds to keys. Errors are shown as a message."""
        self.run_worker(self._report_errors(calls), group=group, exclusive=exclusive)

    async def _report_errors(self, calls: Awaitable[object]) -> None:
        try:
            await calls
        except PunchlistError as error:
            self.report(str(error))

    def do_down(self) -> None:
        self.lines.move_cursor(1)

    def do_up(self) -> None:
        self.lines.move_cursor(-1)

    def do_first(self) -> None:
        self.lines.select(0)

    def do_last(self) -> None:
        self.lines.select(len(self.lines.items) - 1, -1)

    def do_page_down(self) -> None:
        self.lines.move_cursor(max(self.lines.size.height - 1, 1))

    def do_page_up(self) -> None:
        self.lines.move_cursor(-max(self.lines.size.height - 1, 1))

    def do_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.filter_text = event.value
            self.rearrange()

    def _close_filter(self, *, keep: bool) -> None:
        field = self.query_one("#filter", Input)
        if not keep:
            field.value = self.filter_text = ""
        field.display = bool(field.value)
        self.lines.focus()
        self.rearrange()

    def do_add(self) -> None:
        """Ask for a name and open the list. A new list is created when its first task is added."""

        def open_named(name: str | None) -> None:
            if not name:
                return
            try:
                self.program.open_list(name)
            except PunchlistError as error:
                self.report(safe(str(error)))

        self.program.push_screen(Prompt("Name of the list (letters, digits, . _ : -)"), open_named)

    def do_undo(self) -> None:
        """Undo the user's newest change of the list that was changed last."""
        self._undo(redo=False)

    def do_redo(self) -> None:
        self._undo(redo=True)

    def _undo(self, *, redo: bool) -> None:
        if not (name := self.program.last_list):
            self.report("You have changed no list yet.")
            return

        async def undo() -> None:
            self.report(*filter(None, [await undo_own(self.program, self.program.open_conversation(name), redo=redo)]))

        self.run_calls(undo(), "undo", exclusive=True)

    def do_search(self) -> None:
        self.program.open_search()

    def do_home(self) -> None:
        self.program.open_now()

    def do_lists(self) -> None:
        self.program.open_board()

    def do_palette(self) -> None:
        self.program.action_command_palette()

    def do_who(self) -> None:
        self.program.open_who()

    def do_help(self) -> None:
        text = Text()
        group = ""
        for key in self.program.keys.keys.values():
            if self.screen_name in key.screens:
                if key.group != group:
                    group = key.group
                    text.append(f"\n{group}\n", "bold")
                text.append(f"  {key.shown:<12}", self.lines.line_style("in_progress"))
                text.append(f"{key.does}\n")
        self.program.push_screen(Notice("Keys", lambda: text))

    def do_quit(self) -> None:
        self.program.exit()

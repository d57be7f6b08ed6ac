"""The dialog that changes what a task waits for."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from punchlist_apps.ui.filters import build_task_test
from punchlist_apps.ui.lines import Lines
from punchlist_apps.ui.parts import Item, Part, sanitize, state
from punchlist_schemas.things import FINISHED, Task

_HINT = "Enter or Space: choose   Enter without words: save   Esc: cancel"


class Picker(ModalScreen[frozenset[str] | None]):
    """Dialog that chooses the tasks which another one waits for, found by words.

    Its result is the chosen ids; None if the user cancels.

    Args:
        task: The waiting task.
        order: The tasks of its list.
        glyphs: The glyphs of the terminal.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss")]

    def __init__(self, task: Task, order: Sequence[Task], glyphs: Mapping[str, str]) -> None:
        super().__init__()
        self._waiter = task
        self._by_id = {other.id: other for other in order}
        self._glyphs = glyphs
        self._chosen = set(task.blocked_by)
        self._waiting = find_waiting(task, self._by_id)
        self._lines = Lines(self._draw)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="wide"):
            yield Label(Text(f"What #{sanitize(self._waiter.id)} waits for", "bold"))
            yield Input(placeholder="words, #number, is:open, +label", id="answer")
            yield self._lines
            yield Static(id="refusal")
            yield Label(Text(_HINT, "dim"))

    def on_mount(self) -> None:
        self._find("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    def _find(self, words: str) -> None:
        test = build_task_test(words)
        found = [task for task in self._by_id.values() if task.id != self._waiter.id and (test is None or test(task))]
        # Without words, finished tasks would hide those that one can wait for.
        if test is None:
            found = [task for task in found if task.status not in FINISHED or task.id in self._chosen]
        found.sort(key=lambda task: task.id not in self._chosen)
        self._lines.set_items([Item(task.id) for task in found] or [Item("", 0, "No task matches.", "dim")])
        self._lines.select(0)

    def _draw(self, item: Item, width: int) -> list[Part]:
        task = self._by_id[item.key]
        shown = state(task)
        through = self._waiting.get(task.id)
        box: Part = ("in_progress", " [x] ") if task.id in self._chosen else ("dim", " [ ] ")
        parts: list[Part] = [box, (shown, f"{self._glyphs[shown]} "), ("dim", f"#{sanitize(task.id)} ")]
        if through is None:
            return [*parts, ("", sanitize(task.title))]
        return [*parts, ("blocked", f"{self._refuse(through)}: "), ("dim", sanitize(task.title))]

    @staticmethod
    def _refuse(through: str) -> str:
        return f"would wait for itself{f' through #{sanitize(through)}' if through else ''}"

    def on_key(self, event: events.Key) -> None:
        words = self.query_one("#answer", Input)
        keys: dict[str, Callable[[], None]] = {
            "down": lambda: self._lines.move_cursor(1),
            "up": lambda: self._lines.move_cursor(-1),
            "enter": self._toggle if words.value else lambda: self.dismiss(frozenset(self._chosen)) and None,
        }
        if not words.value:
            keys["space"] = self._toggle
        if (act := keys.get(event.key)) is not None:
            event.prevent_default().stop()
            act()

    def _toggle(self) -> None:
        """Choose the selected task, or no longer, and begin a new search."""
        key = self._lines.key
        through = self._waiting.get(key)
        refusal = self.query_one("#refusal", Static)
        refusal.update(f"#{sanitize(key)} {self._refuse(through)}." if through is not None else "")
        if not key or through is not None:
            return
        self._chosen ^= {key}
        self.query_one("#answer", Input).value = ""
        self._lines.refresh()


def find_waiting(task: Task, by_id: Mapping[str, Task]) -> dict[str, str]:
    """Return the tasks that wait for a task, directly or not, each with the direct one; "" for direct ones."""
    found: dict[str, str] = {}
    stack = [(name, "") for name in task.blocks]
    while stack:
        name, through = stack.pop()
        if name not in found and name in by_id:
            found[name] = through
            stack += [(next_name, through or name) for next_name in by_id[name].blocks]
    return found

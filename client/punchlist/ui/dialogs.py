"""What stands over a screen for a moment: a question, a preview, a form, a text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static, TextArea

from punchlist.ui.parts import Part


class Ask(ModalScreen[str | None]):
    """Asks for one line; Escape answers None.

    Args:
        question: What is asked.
        value: What stands there already.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss")]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        """The question over its line."""
        with Vertical(id="dialog"):
            yield Label(Text(self._question))
            yield Input(self._value, id="answer", select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter answers."""
        self.dismiss(event.value.strip())


class Sure(ModalScreen[bool]):
    """Shows what would happen; Enter or y does it, everything else does not.

    Args:
        question: What is asked.
        lines: What would happen, harmless for a terminal.
    """

    def __init__(self, question: str, lines: Sequence[str] = ()) -> None:
        super().__init__()
        self._question = question
        self._lines = lines

    def compose(self) -> ComposeResult:
        """The question, what would happen, the answers."""
        with Vertical(id="dialog"):
            yield Label(Text(self._question, "bold"))
            with VerticalScroll(id="preview"):
                yield Static(Text("\n".join(self._lines)))
            yield Label(Text("Enter: yes   Esc: no", "dim"))

    def on_key(self, event: events.Key) -> None:
        """Answer."""
        event.stop()
        if event.key in ("enter", "y"):
            self.dismiss(True)
        elif event.key not in ("up", "down", "pageup", "pagedown"):
            self.dismiss(False)


class Told(ModalScreen[None]):
    """Shows a text until a key is pressed; the arrows scroll it.

    Args:
        title: Its heading.
        text: Harmless for a terminal.
    """

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """The text."""
        with Vertical(id="dialog", classes="wide"):
            yield Label(Text(self._title, "bold"))
            with VerticalScroll(id="told"):
                yield Static(self._text)

    def on_key(self, event: events.Key) -> None:
        """Scroll, or go."""
        event.stop()
        scroll = self.query_one("#told")
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10}
        if event.key in steps:
            scroll.scroll_relative(y=steps[event.key], animate=False)
        else:
            self.dismiss()


class Form(ModalScreen[dict[str, str] | None]):
    """Asks for several members; Ctrl+S or Enter in a line saves, Escape does not.

    Args:
        title: Its heading.
        lines: Members of one line: what each is called, and its value.
        block: The member of several lines.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss"), ("ctrl+s", "save")]
    AUTO_FOCUS = "Input"

    def __init__(self, title: str, lines: Mapping[str, str], block: tuple[str, str]) -> None:
        super().__init__()
        self._title = title
        self._values = dict(lines)
        self._block = block

    def compose(self) -> ComposeResult:
        """One line under the other."""
        with VerticalScroll(id="dialog", classes="wide"):
            yield Label(Text(self._title, "bold"))
            for name, value in self._values.items():
                yield Label(Text(name.replace("_", " "), "dim"))
                yield Input(value, id=name, select_on_focus=False)
            name, value = self._block
            yield Label(Text(name, "dim"))
            yield TextArea(value, id=name)
            yield Label(Text("Ctrl+S: save   Esc: leave it   Tab: next", "dim"))

    def on_input_submitted(self) -> None:
        """Enter saves."""
        self.action_save()

    def action_save(self) -> None:
        """Answer with what differs."""
        given = {name: self.query_one(f"#{name}", Input).value.strip() for name in self._values}
        name, block = self._block
        given[name] = self.query_one(f"#{name}", TextArea).text
        before = {**self._values, name: block}
        self.dismiss({name: value for name, value in given.items() if value != before[name]})


def painted(parts: Iterable[Part], styles: Mapping[str, str]) -> Text:
    """Parts as a text of textual's."""
    return Text.assemble(*((words, styles.get(name, "")) for name, words in parts), no_wrap=True, overflow="ellipsis")

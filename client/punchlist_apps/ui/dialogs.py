"""Dialogs over a screen: a question, a confirmation with a preview, a notice, and a form."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, cast

from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static, TextArea

from punchlist.base.text import safe
from punchlist.errors import PunchlistError
from punchlist_apps.ui.parts import Part


class Prompt(ModalScreen[str | None]):
    """Dialog for one line of text. Its result is None if the user presses Escape.

    Args:
        value: Initial text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss")]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(Text(self._question))
            yield Input(self._value, id="answer", select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class Confirm(ModalScreen[bool]):
    """Dialog that shows a preview. Enter or y confirms; any other key cancels.

    Args:
        lines: The preview, as terminal-escaped text.
    """

    def __init__(self, question: str, lines: Sequence[str] = ()) -> None:
        super().__init__()
        self._question = question
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(Text(self._question, "bold"))
            with VerticalScroll(id="preview"):
                yield Static(Text("\n".join(self._lines)))
            yield Label(Text("Enter: yes   Esc: no", "dim"))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key in ("enter", "y"):
            self.dismiss(True)
        elif event.key not in ("up", "down", "pageup", "pagedown"):
            self.dismiss(False)


class Notice(ModalScreen[None]):
    """Dialog that shows text until a key is pressed. The arrow keys scroll it.

    Args:
        text: Function that returns the text, escaped for the terminal. `refresh_text` calls it again.
    """

    def __init__(self, title: str, text: Callable[[], RenderableType]) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def _fold_text(self) -> RenderableType:
        text = self._text()
        if isinstance(text, Text):
            text.no_wrap, text.overflow = False, "fold"
        return text

    def refresh_text(self) -> None:
        for static in self.query("#notice Static").results(Static):  # Empty until the dialog is mounted.
            static.update(self._fold_text())

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="wide"):
            yield Label(Text(self._title, "bold"))
            with VerticalScroll(id="notice"):
                yield Static(self._fold_text())

    def on_key(self, event: events.Key) -> None:
        event.stop()
        scroll = self.query_one("#notice")
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10}
        if event.key in steps:
            scroll.scroll_relative(y=steps[event.key], animate=False)
        else:
            self.dismiss()


class Field(NamedTuple):
    """A form field: name, label, text, and height in lines."""

    name: str
    label: str
    text: str
    height: int = 1


class Form(ModalScreen[None]):
    """Form with several fields. Ctrl+S saves, as does Enter in a single-line field. Escape cancels.

    If saving fails, the form shows the error and keeps the text of its fields.

    Args:
        save: Called with the changed texts by field name.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss"), ("ctrl+s", "save")]
    AUTO_FOCUS = ""

    def __init__(
        self, title: str, fields: Sequence[Field], save: Callable[[Mapping[str, str]], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._title = title
        self._fields = fields
        self._save = save

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="dialog", classes="wide"):
            yield Label(Text(self._title, "bold"))
            for field in self._fields:
                yield Label(Text(field.label, "dim"))
                if field.height == 1:
                    yield Input(field.text, id=field.name, select_on_focus=False)
                else:
                    area = TextArea(field.text, id=field.name, tab_behavior="focus")
                    area.styles.height = field.height + 2  # its border
                    yield area
            yield Static(id="refusal")
            yield Label(Text("Enter or Ctrl+S: save   Esc: cancel   Tab: next", "dim"))

    def on_mount(self) -> None:
        # Otherwise, focusing the field would scroll to it before the layout is done, and hide the heading.
        self.query(Input).first().focus(scroll_visible=False)

    def on_input_submitted(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        self.run_worker(self._try(), exclusive=True)

    async def _try(self) -> None:
        changed: dict[str, str] = {}
        for field in self._fields:
            widget = self.query_one(f"#{field.name}")
            text = widget.text if isinstance(widget, TextArea) else cast(Input, widget).value.strip()
            if text != field.text:
                changed[field.name] = text
        try:
            await self._save(changed)
        except (PunchlistError, ValueError) as error:
            refusal = self.query_one("#refusal", Static)
            refusal.update(Text(safe(str(error))))
            refusal.scroll_visible(animate=False)
        else:
            self.dismiss()


def render_parts(parts: Iterable[Part], styles: Mapping[str, str]) -> Text:
    return Text.assemble(*((words, styles.get(name, "")) for name, words in parts), no_wrap=True, overflow="ellipsis")

"""What stands over a screen for a moment: a question, a preview, a form, a text."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, cast

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


class Ask(ModalScreen[str | None]):
    """Asks for one line; Escape answers None.

    Args:
        question: What is asked.
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
    """Shows a text until a key is pressed; the arrows scroll it.

    Args:
        title: Its heading.
        text: Gives the text, harmless for a terminal; asked again by `refresh_text`.
    """

    def __init__(self, title: str, text: Callable[[], Text]) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def _folded(self) -> Text:
        text = self._text()
        text.no_wrap, text.overflow = False, "fold"
        return text

    def refresh_text(self) -> None:
        for shown in self.query("#told Static").results(Static):  # none before it is mounted
            shown.update(self._folded())

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="wide"):
            yield Label(Text(self._title, "bold"))
            with VerticalScroll(id="told"):
                yield Static(self._folded())

    def on_key(self, event: events.Key) -> None:
        event.stop()
        scroll = self.query_one("#told")
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10}
        if event.key in steps:
            scroll.scroll_relative(y=steps[event.key], animate=False)
        else:
            self.dismiss()


class Field(NamedTuple):
    """A field of a form: its name, what stands above it, its text, and how many lines it has."""

    name: str
    label: str
    text: str
    height: int = 1


class Form(ModalScreen[None]):
    """Asks for several members; Ctrl+S or Enter in a line saves, Escape does not.

    What is refused is said in the form, which stays as it was filled in.

    Args:
        title: Its heading.
        fields: What is asked for.
        save: Takes the texts that were changed, by their names.
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
                    area.styles.height = field.height
                    yield area
            yield Static(id="refusal")
            yield Label(Text("Enter or Ctrl+S: save   Esc: leave it   Tab: next", "dim"))

    def on_mount(self) -> None:
        """Begin in the first line, with the heading in view: focused otherwise, it is scrolled to before the layout."""
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


def painted(parts: Iterable[Part], styles: Mapping[str, str]) -> Text:
    return Text.assemble(*((words, styles.get(name, "")) for name, words in parts), no_wrap=True, overflow="ellipsis")

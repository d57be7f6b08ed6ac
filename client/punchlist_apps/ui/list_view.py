"""One list on the screen: its tasks live, or as they were at a version; what is chosen and marked in it."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from punchlist.base.tree import find_open_parents
from punchlist.calls.cursor import Cursor, FoldView
from punchlist.calls.rows import Rows
from punchlist.clients.aio import AsyncConversation
from punchlist_apps.ui.detail import detail
from punchlist_apps.ui.dialogs import painted
from punchlist_apps.ui.face import Face
from punchlist_apps.ui.filters import STATES, of_tasks
from punchlist_apps.ui.parts import Item, Part, bar, fitted, shared_text, tally, task_parts, text, tree
from punchlist_apps.ui.past import Picture, at_version
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Task

WIDE = 110
"""From so many columns on the detail stands beside the list."""
RUNNING = 3
"""How many tasks in progress are shown that are not in view."""


class ListView(Face):
    """Shows the tasks of a list.

    Args:
        plan: The list.
    """

    place: ClassVar[str] = "list"

    def __init__(self, plan: AsyncConversation) -> None:
        super().__init__()
        self.plan = plan
        self.rows = Rows()
        self.past: Picture | None = None
        self.marked: set[str] = set()
        self._test = of_tasks("")
        self._known = False
        self._underway = set[str]()
        self._detail: list[Part] = []
        self._numbers = 1

    @property
    def picture(self) -> Rows | Picture:
        return self.past or self.rows

    def beside(self) -> ComposeResult:
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="task")

    def on_mount(self) -> None:
        view = FoldView()
        self.rows = view.rows
        self.run_worker(self.face.follow(Cursor(self.plan.id, view), self._came))

    # what is shown

    def _came(self, rows: Rows) -> None:
        self.soon()

    def draw_changes(self) -> None:
        rows = self.rows
        changed = rows.take_changes()
        if changed is None:
            self._underway = {task.id for task in rows.order if task.status == "in_progress"}
        else:
            self._underway -= changed
            self._underway |= {key for key in changed if rows.by_id[key].status == "in_progress"}
        first, self._known = not self._known, True
        if self.past is not None:
            self.draw_frame()
            return
        index = self.lines.index
        # The state of a part is also that of its parent, for those who look for what is ready.
        moved = self._test and any(
            rows.by_id[key].parent or self._test(rows.by_id[key]) != (key in index) for key in changed or ()
        )
        if changed is None or moved:
            self.arranged()
            if first:
                self._choose_something()
            return
        self.lines.changed(changed)
        self.draw_frame()

    def _choose_something(self) -> None:
        """Begin at what is being worked on, or at the first task that is open."""
        for name in ("running", "open"):
            for task in self.rows.order:
                if STATES[name](task):
                    self.lines.find(task.id)
                    return

    def items(self) -> list[Item]:
        order = self.picture.order
        self._test = of_tasks(self.words, find_open_parents(order)) if self.words else None
        self._numbers = max((len(task.id) for task in order), default=1)
        return tree(order if self._test is None else [task for task in order if self._test(task)])

    def draw(self, item: Item, width: int) -> list[Part]:
        task = self.picture.by_id.get(item.key)
        if task is None:
            return []
        marked = item.key in self.marked
        context = self.draw_context(width) if self.past is None else self.draw_context(width)._replace(now=0)
        return task_parts(task, context, depth=item.depth, numbers=self._numbers, marked=marked)

    def head(self) -> list[Part]:
        """The list's name, how it stands; of a list of the past which one it is."""
        name = text(short_name(self.plan.id, self.face.cards))
        if self.past is not None:
            when: list[Part] = [("title", name), ("failed", f"   version {self.past.version} of {self.rows.version}")]
            return [*when, ("", f"   {self.past.made}"), ("dim", f"   {self.face.keys.hint('now')} now")]
        parts: list[Part] = [("title", f"{name}  "), *bar(self.rows.counts), ("", " "), *tally(self.rows.counts)]
        if self.words:
            parts.append(("marked", f"   [{text(self.words)}]"))
        if self.marked:
            parts.append(("marked", f"   {len(self.marked)} marked"))
        if self.rows.damaged is not None:
            parts.append(("failed", "   damaged: not the whole list"))
        if self.rows.shared is not None:
            parts.append(("paused", f"   {shared_text(self.rows.shared)}"))
        return parts

    def draw_frame(self) -> None:
        super().draw_frame()
        self.set_class(self.past is not None, "past")
        self.set_class(self.size.width >= WIDE, "wide-enough")
        if self.is_mounted and self.size.width >= WIDE:
            task = self.selected
            parts = detail(task, self.picture.by_id, self.draw_context(0)) if task else []
            if parts != self._detail:
                self._detail = parts
                shown = painted(parts, self.styles_by_name())
                shown.no_wrap, shown.overflow = False, "fold"
                self.query_one("#task", Static).update(shown)

    def under(self) -> list[list[Part]]:
        seen = {item.key for item in self.lines.in_view} if self._underway and self.past is None else self._underway
        hidden = sorted((self.rows.by_id[key] for key in self._underway - seen), key=lambda task: (task.rank, task.id))
        most = 1 if self.size.height < 20 else RUNNING  # noqa: PLR2004 - a low window has no room for three
        context = self.draw_context(self.size.width)
        lines = [task_parts(task, context, numbers=self._numbers) for task in hidden[:most]]
        if len(hidden) > most:
            lines[-1] = [*fitted(lines[-1], context.width - 12), ("dim", f"  +{len(hidden) - most} more")]
        return lines

    def spins(self, key: str) -> bool:
        task = None if self.past else self.rows.by_id.get(key)
        return task is not None and task.status == "in_progress"

    def empty(self) -> str:
        if not self._known:
            return ""
        if self.words:
            return "No task has these words; Esc in the filter shows all."
        return "No tasks." if self.past else "This list has no tasks yet: a adds one."

    # what is meant

    @property
    def selected(self) -> Task | None:
        return self.picture.by_id.get(self.lines.key)

    @property
    def meant(self) -> list[Task]:
        """The marked tasks in their order, or else the chosen one."""
        if self.marked:
            return [task for task in self.picture.order if task.id in self.marked]
        return [self.selected] if self.selected else []

    # the past

    def show_version(self, version: int) -> None:
        """Show the list as it stood right after a version."""
        if version >= self.rows.version:
            self.do_now()
            return

        async def read() -> None:
            self.past = await at_version(self.plan, max(version, 1))
            self.marked = set()
            self.arranged()

        self.calls(read(), "past", exclusive=True)

    def do_older(self) -> None:
        self.show_version(self.picture.version - 1)

    def do_newer(self) -> None:
        if self.past is not None:
            self.show_version(self.past.version + 1)

    def do_now(self) -> None:
        self.past = None
        self.arranged()

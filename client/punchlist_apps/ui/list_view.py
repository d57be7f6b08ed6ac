"""Shows the tasks of one list, live or at a version, with selection and marks."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from punchlist.base.tree import find_open_parents
from punchlist.calls.cursor import Cursor, FoldView
from punchlist.calls.rows import Rows
from punchlist.clients.aio import AsyncConversation
from punchlist_apps.ui.detail import draw_detail
from punchlist_apps.ui.dialogs import render_parts
from punchlist_apps.ui.filters import STATES, build_task_test
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import (
    Item,
    Part,
    build_tree,
    draw_counts,
    draw_progress,
    draw_task,
    fit_parts,
    format_sharing,
    sanitize,
)
from punchlist_apps.ui.past import PastList, load_version
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Task

WIDE = 110
"""Minimum width for showing details next to the list, in columns."""
MAX_NAMED = 3
"""Maximum number of off-screen tasks in progress shown below the list, and maximum number of tasks and errors named in
a message."""


class ListView(LineScreen):
    """Base class of a list's screen. Shows the tasks without changing them."""

    screen_name: ClassVar[str] = "list"

    def __init__(self, conversation: AsyncConversation) -> None:
        super().__init__()
        self.conversation = conversation
        self.rows = Rows()
        self.past: PastList | None = None
        self.marked: set[str] = set()
        self._test = build_task_test("")
        self._is_loaded = False
        self._running_ids = set[str]()
        self._detail: list[Part] = []
        self._id_width = 1

    @property
    def shown_list(self) -> Rows | PastList:
        return self.past or self.rows

    def compose_side(self) -> ComposeResult:
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="task")

    def on_mount(self) -> None:
        view = FoldView()
        self.rows = view.rows
        self.run_worker(self.program.follow(Cursor(self.conversation.id, view), lambda _rows: self.schedule_draw()))

    # shown content

    def draw_changes(self) -> None:
        rows = self.rows
        changed = rows.take_changes()
        if changed is None:
            self._running_ids = {task.id for task in rows.order if task.status == "in_progress"}
        else:
            self._running_ids -= changed
            self._running_ids |= {key for key in changed if rows.by_id[key].status == "in_progress"}
        is_first, self._is_loaded = not self._is_loaded, True
        if self.past is not None:
            self.draw_frame()
            return
        index = self.lines.index
        # A subtask's state also decides whether its parent matches `is:ready`.
        is_moved = self._test and any(
            rows.by_id[key].parent or self._test(rows.by_id[key]) != (key in index) for key in changed or ()
        )
        if changed is None or is_moved:
            self.rearrange()
            if is_first:
                self._select_start()
            return
        self.lines.refresh_keys(changed)
        self.draw_frame()

    def _select_start(self) -> None:
        """Select the first task in progress, or else the first open task."""
        for name in ("running", "open"):
            for task in self.rows.order:
                if STATES[name](task):
                    self.lines.select_key(task.id)
                    return

    def build_items(self) -> list[Item]:
        order = self.shown_list.order
        self._test = build_task_test(self.filter_text, find_open_parents(order)) if self.filter_text else None
        self._id_width = max((len(task.id) for task in order), default=1)
        return build_tree(order if self._test is None else [task for task in order if self._test(task)])

    def draw(self, item: Item, width: int) -> list[Part]:
        task = self.shown_list.by_id.get(item.key)
        if task is None:
            return []
        is_marked = item.key in self.marked
        context = self.draw_context(width) if self.past is None else self.draw_context(width)._replace(now=0)
        return draw_task(task, context, depth=item.depth, id_width=self._id_width, marked=is_marked)

    def draw_bar(self) -> list[Part]:
        name = sanitize(short_name(self.conversation.id, self.program.cards))
        if self.past is not None:
            version: list[Part] = [
                ("title", name),
                ("failed", f"   version {self.past.version} of {self.rows.version}"),
            ]
            return [*version, ("", f"   {self.past.change}"), ("dim", f"   {self.program.keys.hint('now')} now")]
        parts: list[Part] = [
            ("title", f"{name}  "),
            *draw_progress(self.rows.counts),
            ("", " "),
            *draw_counts(self.rows.counts),
        ]
        if self.filter_text:
            parts.append(("marked", f"   [{sanitize(self.filter_text)}]"))
        if self.marked:
            parts.append(("marked", f"   {len(self.marked)} marked"))
        if self.rows.damaged is not None:
            parts.append(("failed", "   damaged: not the whole list"))
        if self.rows.shared is not None:
            parts.append(("paused", f"   {format_sharing(self.rows.shared)}"))
        return parts

    def draw_frame(self) -> None:
        super().draw_frame()
        self.set_class(self.past is not None, "past")
        self.set_class(self.size.width >= WIDE, "wide-enough")
        if self.is_mounted and self.size.width >= WIDE:
            task = self.selected
            parts = draw_detail(task, self.shown_list.by_id, self.draw_context(0)) if task else []
            if parts != self._detail:
                self._detail = parts
                text = render_parts(parts, self.styles_by_name())
                text.no_wrap, text.overflow = False, "fold"
                self.query_one("#task", Static).update(text)

    def draw_running(self) -> list[list[Part]]:
        if not self._running_ids or self.past is not None:
            return []
        invisible = self._running_ids - {item.key for item in self.lines.visible_items}
        hidden = sorted((self.rows.by_id[key] for key in invisible), key=lambda task: (task.rank, task.id))
        count = 1 if self.size.height < 20 else MAX_NAMED  # noqa: PLR2004 - a low window has no room for three
        context = self.draw_context(self.size.width)
        lines = [draw_task(task, context, id_width=self._id_width) for task in hidden[:count]]
        if len(hidden) > count:
            lines[-1] = [*fit_parts(lines[-1], context.width - 12), ("dim", f"  +{len(hidden) - count} more")]
        return lines

    def has_spinner(self, key: str) -> bool:
        task = None if self.past else self.rows.by_id.get(key)
        return task is not None and task.status == "in_progress"

    def describe_empty(self) -> str:
        if not self._is_loaded:
            return ""
        if self.filter_text:
            return "No task matches the filter; Esc in the filter shows all."
        return "No tasks." if self.past else "This list has no tasks yet; press a to add one."

    # the targets of an action

    @property
    def selected(self) -> Task | None:
        return self.shown_list.by_id.get(self.lines.key)

    @property
    def targets(self) -> list[Task]:
        """The marked tasks in list order, or else the selected one."""
        if self.marked:
            return [task for task in self.shown_list.order if task.id in self.marked]
        return [self.selected] if self.selected else []

    # the past

    def show_version(self, version: int) -> None:
        """Show the list as it was at a version."""
        if version >= self.rows.version:
            self.do_now()
            return

        async def read() -> None:
            self.past = await load_version(self.conversation, max(version, 1))
            self.marked = set()
            self.rearrange()

        self.run_calls(read(), "past", exclusive=True)

    def do_older(self) -> None:
        self.show_version(self.shown_list.version - 1)

    def do_newer(self) -> None:
        if self.past is not None:
            self.show_version(self.past.version + 1)

    def do_now(self) -> None:
        self.past = None
        self.rearrange()

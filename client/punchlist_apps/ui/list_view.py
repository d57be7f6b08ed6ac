"""Shows the tasks of one list, live or at a version, with selection and marks."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from punchlist.base.tree import find_open_parents
from punchlist.calls.cursor import Cursor, FoldView
from punchlist.calls.rows import Rows
from punchlist.clients.aio import AsyncConversation
from punchlist_apps.ui.columns import Fits, draw_head, draw_task, fit_columns, measure
from punchlist_apps.ui.detail import draw_detail
from punchlist_apps.ui.filters import STATES, build_task_test
from punchlist_apps.ui.groups import GROUPINGS, SORTS, Placed, arrange, task_of_key
from punchlist_apps.ui.line_screen import WIDE, LineScreen
from punchlist_apps.ui.markdown import render_blocks
from punchlist_apps.ui.parts import (
    Item,
    Part,
    draw_counts,
    draw_progress,
    fit_parts,
    format_sharing,
    sanitize,
)
from punchlist_apps.ui.past import PastList, load_version
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Task

_MIN_REARRANGE_S = 0.5
"""Minimum interval between two arrangements of the lines after changes of tasks, in seconds."""
MAX_NAMED = 3
"""Maximum number of off-screen tasks in progress shown below the list, and maximum number of tasks and errors named in
a message."""


def _find_next(values: Sequence[str], value: str) -> str:
    return values[(values.index(value) + 1) % len(values)]


class ListView(LineScreen):
    """Base class of a list's screen. Shows the tasks without changing them."""

    screen_name: ClassVar[str] = "list"

    def __init__(self, conversation: AsyncConversation, task: str = "") -> None:
        super().__init__()
        self._start = task
        self._opened = frozenset[str]()
        """Keys of groups that are shown here although they are folded elsewhere."""
        self.conversation = conversation
        self.rows = Rows()
        self.past: PastList | None = None
        self.marked: set[str] = set()
        self._test = build_task_test("")
        self._is_loaded = False
        self._running_ids = set[str]()
        self._asking_ids = set[str]()
        self._open_parents = frozenset[str | None]()
        self._placed: dict[str, Placed] = {}
        self._moved = False
        """Whether lines have to be arranged again after changes."""
        self._is_stale = True
        """Whether everything that was worked out about the tasks has to be worked out again."""
        self._arranged_at = 0.0
        self._pinned: list[list[Part]] = []
        self.groups: dict[str, str] = {}
        """The group's key for each line's key."""
        self._needed: dict[str, int] = {}
        self._fits: tuple[int, Fits] = (0, {})
        self._detail: list[Part] = []
        self._id_width = 1

    @property
    def is_wide(self) -> bool:
        """Whether details are shown next to the list."""
        return self.size.width >= WIDE

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
        for ids, test in ((self._running_ids, STATES["running"]), (self._asking_ids, STATES["asks"])):
            if changed is None:
                ids.clear()
            ids.difference_update(changed or ())
            ids.update(key for key in (rows.by_id if changed is None else changed) if test(rows.by_id[key]))
        is_first, self._is_loaded = not self._is_loaded, True
        if self.past is not None:
            self.draw_frame()
            return
        if changed is None:
            self.rearrange()
            if is_first:
                self._select_start()
            return
        is_waiting = self._moved
        for key in changed:
            self._moved |= self._is_moved(rows.by_id[key])
        # Lines of a long list take long to arrange, and shouldn't jump too often.
        wait_s = self._arranged_at + _MIN_REARRANGE_S - time.monotonic()
        if self._moved and wait_s <= 0:
            super().rearrange()
            return
        if self._moved and not is_waiting:
            self.set_timer(wait_s, self._arrange_moved)
        self.lines.refresh_keys(changed)
        self.draw_frame()

    def _arrange_moved(self) -> None:
        if self._moved and self.past is None:
            super().rearrange()

    def _is_moved(self, task: Task) -> bool:
        """Return whether a change of a task may change the lines or the columns. Record what it changes."""
        # A subtask's state also decides whether its parent is ready.
        self._is_stale = self._is_stale or task.parent is not None
        needed = measure([task])
        wider = {name: width for name, width in needed.items() if width > self._needed[name]}
        self._needed |= wider
        before = self._placed.get(task.id)
        is_shown = self._test is None or self._test(task)
        if wider or self._is_stale or before is None or not is_shown:
            return bool(wider) or self._is_stale or is_shown != (before is not None)
        after = self.program.memory.arrangement.place(task, self._open_parents)
        return (after.groups, after.order) != (before.groups, before.order)

    def _select_start(self) -> None:
        """Select the task that was asked for, or else the first one in progress, or the first open one."""
        if (task := self.rows.by_id.get(self._start)) is not None:
            how = self.program.memory.arrangement
            self._opened = frozenset(how.build_key(name) for name in how.find_groups(task, self._open_parents))
            self.rearrange()
            self.lines.select_key(task.id)
            return
        for name in ("running", "open"):
            for item in self.lines.items:
                task = self.task_of(item.key)
                if task is not None and STATES[name](task):
                    self.lines.select_key(item.key)
                    return

    def rearrange(self) -> None:
        """Arrange all lines again, because anything may have changed."""
        self._is_stale = True
        super().rearrange()

    def build_items(self) -> list[Item]:
        order = self.shown_list.order
        how = self.program.memory.arrangement
        how = how._replace(folded=how.folded - self._opened)
        if self._is_stale:
            self._placed = {}
            self._open_parents = frozenset(find_open_parents(order))
            self._test = build_task_test(self.filter_text, self._open_parents) if self.filter_text else None
            self._id_width = max((len(task.id) for task in order), default=1)
            self._needed = measure(order)
        known, self._placed = self._placed, {}
        for task in order:
            placed = known.get(task.id)
            if placed is None or placed.task is not task:
                if self._test is not None and not self._test(task):
                    continue
                placed = how.place(task, self._open_parents)
            self._placed[task.id] = placed
        glyphs = self.draw_context(0).glyphs
        # A filter shows all that it finds, also in folded groups.
        items, self.groups = arrange(
            self._placed.values(), how, (glyphs["open"], glyphs["folded"]), fold=self._test is None
        )
        self._fits = (0, {})
        self._moved = self._is_stale = False
        self._arranged_at = time.monotonic()
        return items

    def task_of(self, key: str) -> Task | None:
        """Return the task of a line."""
        return self.shown_list.by_id.get(task_of_key(key))

    @property
    def _head_width(self) -> int:
        return 3 + self._id_width + 2 + 2

    def _fit(self, width: int) -> Fits:
        """Return the columns that fit into a row."""
        if self._fits[0] != width:
            self._fits = width, fit_columns(width - self._head_width, self._needed)
        return self._fits[1]

    def draw(self, item: Item, width: int) -> list[Part]:
        task = self.task_of(item.key)
        if task is None:
            return []
        context = self.draw_context(width) if self.past is None else self.draw_context(width)._replace(now=0)
        is_tree = self.program.memory.arrangement.grouping == "parent"
        parent = None if is_tree else self.shown_list.by_id.get(task.parent or "")
        return draw_task(
            task,
            context,
            self._fit(width),
            depth=item.depth,
            parent=parent.title if parent is not None else "",
            id_width=self._id_width,
            marked=task.id in self.marked,
        )

    def draw_head(self) -> list[Part]:
        width = self.lines.row_width
        sort = self.program.memory.arrangement.sort
        return draw_head(self._fit(width), self._head_width, width, sort) if self._placed else []

    def draw_bar(self) -> list[Part]:
        name = sanitize(short_name(self.conversation.id, self.program.cards))
        if self.past is not None:
            version: list[Part] = [
                ("title", name),
                ("failed", f"   version {self.past.version} of {self.rows.version}"),
            ]
            return [*version, ("", f"   {self.past.change}"), ("dim", f"   {self.program.keys.hint('reject')} now")]
        parts: list[Part] = [
            ("title", f"{name}  "),
            *draw_progress(self.rows.counts),
            ("", " "),
            *draw_counts(self.rows.counts, len(self._asking_ids)),
        ]
        if self.filter_text:
            parts.append(("marked", f"   [{sanitize(self.filter_text)}]"))
        if self.marked:
            parts.append(("marked", f"   {len(self.marked)} marked"))
        if self.rows.damaged is not None:
            parts.append(("failed", "   damaged: not the whole list"))
        if self.rows.shared is not None:
            parts.append(("paused", f"   {format_sharing(self.rows.shared)}"))
        how = self.program.memory.arrangement
        return [*parts, ("dim", "   group "), ("", how.grouping), ("dim", " · sort "), ("", how.sort)]

    def draw_frame(self) -> None:
        super().draw_frame()
        self.set_class(self.past is not None, "past")
        self.set_class(self.is_wide, "wide-enough")
        if self.is_mounted and self.is_wide:
            task = self.selected
            parts = draw_detail(task, self.shown_list.by_id, self.draw_context(0)) if task else []
            if parts != self._detail:
                self._detail = parts
                self.query_one("#task", Static).update(render_blocks(parts, self.styles_by_name()))

    def draw_running(self) -> list[list[Part]]:
        if not self._running_ids or self.past is not None:
            return []
        if self._moved:
            # A task that has just started may be among the visible lines as soon as they are arranged.
            return self._pinned
        invisible = self._running_ids - {task_of_key(item.key) for item in self.lines.visible_items}
        hidden = sorted((self.rows.by_id[key] for key in invisible), key=lambda task: (task.rank, task.id))
        count = 1 if self.size.height < 20 else MAX_NAMED  # noqa: PLR2004 - a low window has no room for three
        context = self.draw_context(self.lines.row_width)
        fits = self._fit(self.lines.row_width)
        lines = [draw_task(task, context, fits, id_width=self._id_width) for task in hidden[:count]]
        if len(hidden) > count:
            lines[-1] = [*fit_parts(lines[-1], context.width - 12), ("dim", f"  +{len(hidden) - count} more")]
        self._pinned = lines
        return lines

    def has_spinner(self, key: str) -> bool:
        task = None if self.past else self.task_of(key)
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
        return self.task_of(self.lines.key)

    @property
    def targets(self) -> list[Task]:
        """The marked tasks in list order, or else the selected one."""
        if self.marked:
            return [task for task in self.shown_list.order if task.id in self.marked]
        return [self.selected] if self.selected else []

    # the arrangement

    def do_sort(self) -> None:
        """Sort by the next column."""
        self._arrange(sort=_find_next(list(SORTS), self.program.memory.arrangement.sort))

    def do_group(self) -> None:
        self._arrange(grouping=_find_next(GROUPINGS, self.program.memory.arrangement.grouping))

    def do_left(self) -> None:
        """Fold the group of the selected line."""
        if key := self.groups.get(self.lines.key):
            self._opened -= {key}
            self._arrange(folded=self.program.memory.arrangement.folded | {key})
            self.lines.select_key(key)

    def do_right(self) -> None:
        """Unfold the selected group, and select its first task."""
        key = self.lines.key
        if key and key == self.groups.get(key):
            self._arrange(folded=self.program.memory.arrangement.folded - {key})
            self.lines.select_key(next((item.key for item in self.lines.items if self.groups.get(item.key) == key), ""))

    def _arrange(self, **members: Any) -> None:
        memory = self.program.memory
        memory.arrangement = memory.arrangement._replace(**members)
        memory.save()
        self.rearrange()

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

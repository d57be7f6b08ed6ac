"""One list: its tasks live, or as they were; what the keys do to them."""

import contextlib
import shlex
import subprocess
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from punchlist.aio import AsyncConversation
from punchlist.cli.reasons import reason_lines
from punchlist.cli.style import Style
from punchlist.cursor import Cursor, FoldView
from punchlist.errors import PunchlistError
from punchlist.rows import Rows
from punchlist.text import safe
from punchlist.ui.changes import CHANGES, WRITES, Wish
from punchlist.ui.detail import dependencies, detail
from punchlist.ui.dialogs import Ask, Field, Form, Notice, Sure, painted
from punchlist.ui.face import Face
from punchlist.ui.filters import STATES, of_tasks
from punchlist.ui.members import MEMBERS, changes
from punchlist.ui.parts import Item, Part, bar, fitted, tally, task_parts, text, tree
from punchlist.ui.past import History, Picture, at_version, latest
from punchlist_schemas.things import Task

WIDE = 110
"""From so many columns on the detail stands beside the list."""
_RUNNING = 3


class OneList(Face):
    """The tasks of a list.

    Args:
        plan: The list.
    """

    place: ClassVar[str] = "list"
    hints: ClassVar[dict[str, str]] = {
        **{"back": "back", "filter": "filter", "start": "start", "done": "done", "add": "add", "undo": "undo"},
        **{
            "older": "past",
            "why": "why",
            "help": "all keys",
            "edit": "edit",
            "note": "note",
            "next_filter": "next filter",
        },
        **{"view_history": "history", "view_graph": "depends", "mark": "mark", "palette": "go to", "quit": "quit"},
    }

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
        self._repeat: tuple[str, str] | None = None

    @property
    def picture(self) -> Rows | Picture:
        """The list that is shown."""
        return self.past or self.rows

    def beside(self) -> ComposeResult:
        """The detail of the chosen task."""
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="task")

    def on_mount(self) -> None:
        """Begin to follow."""
        view = FoldView()
        self.rows = view.rows
        self.run_worker(self.face.follow(Cursor(self.plan.id, view), self._came))

    # what is shown

    def _came(self, rows: Rows) -> None:
        """Rows came."""
        self.soon()

    def draw_changes(self) -> None:
        """Draw the rows that changed, or all where some came, went or moved."""
        rows = self.rows
        changed = rows.taken_changes()
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
        if changed is None or (self._test and any(self._test(rows.by_id[key]) != (key in index) for key in changed)):
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
        """The tasks that the words let through, as a tree."""
        self._test = of_tasks(self.words)
        order = self.picture.order
        self._numbers = max((len(task.id) for task in order), default=1)
        return tree(order if self._test is None else [task for task in order if self._test(task)])

    def draw(self, item: Item, width: int) -> list[Part]:
        """One task."""
        task = self.picture.by_id.get(item.key)
        if task is None:
            return []
        marked = item.key in self.marked
        context = self.draw_context(width) if self.past is None else self.draw_context(width)._replace(now=0)
        return task_parts(task, context, depth=item.depth, numbers=self._numbers, marked=marked)

    def head(self) -> list[Part]:
        """The list's name, how it stands; of a list of the past which one it is."""
        name = text(self.plan.id)
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
        return parts

    def draw_frame(self) -> None:
        """Draw what stands around the lines, and the detail."""
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
        """What is in progress and not in view."""
        seen = {item.key for item in self.lines.in_view} if self._underway and self.past is None else self._underway
        hidden = sorted((self.rows.by_id[key] for key in self._underway - seen), key=lambda task: (task.rank, task.id))
        most = 1 if self.size.height < 20 else _RUNNING  # noqa: PLR2004 - a low window has no room for three
        context = self.draw_context(self.size.width)
        lines = [task_parts(task, context, numbers=self._numbers) for task in hidden[:most]]
        if len(hidden) > most:
            lines[-1] = [*fitted(lines[-1], context.width - 12), ("dim", f"  +{len(hidden) - most} more")]
        return lines

    def spins(self, key: str) -> bool:
        """Whether a task is in progress, now."""
        task = None if self.past else self.rows.by_id.get(key)
        return task is not None and task.status == "in_progress"

    def empty(self) -> str:
        """What a new user reads."""
        if not self._known:
            return ""
        if self.words:
            return "No task has these words; Esc in the filter shows all."
        return "No tasks." if self.past else "This list has no tasks yet: a adds one."

    # what is meant

    @property
    def selected(self) -> Task | None:
        """The chosen task."""
        return self.picture.by_id.get(self.lines.key)

    @property
    def meant(self) -> list[Task]:
        """The marked tasks in their order, or else the chosen one."""
        if self.marked:
            return [task for task in self.picture.order if task.id in self.marked]
        return [self.selected] if self.selected else []

    async def act(self, action: str) -> None:
        """Do what an action's name says, unless nothing may be changed here."""
        if action in WRITES and self.face.setup.read_only:
            self.report("Nothing is changed here: punch ui runs with --read-only.")
        elif action in WRITES and self.past is not None:
            hint = self.face.keys.hint("now")
            self.report(f"This is the list of version {self.past.version}, which stays as it was; {hint} goes to now.")
        elif action in CHANGES:
            self._change(action)
        else:
            await super().act(action)

    def _change(self, action: str) -> None:
        if not (tasks := self.meant):
            return
        asks = CHANGES[action].asks
        if not asks:
            self.calls(self._make(action, tasks, ""))
            return

        def answered(said: str | None) -> None:
            if said or (said is not None and action != "note"):
                self.calls(self._make(action, tasks, said))

        names = ", ".join(f"#{text(task.id)}" for task in tasks[:_RUNNING]) + (" …" if len(tasks) > _RUNNING else "")
        self.face.push_screen(Ask(f"{names}  {asks}"), answered)

    async def _make(self, action: str, tasks: list[Task], said: str) -> None:
        """Change tasks, one after the other; those that are refused stay marked."""
        change = CHANGES[action]
        refused: dict[str, str] = {}
        for task in tasks:
            try:
                await change.call(self.plan, task, Wish(said, self.face.setup.owner))
            except PunchlistError as error:
                refused[task.id] = str(error)
        self._repeat = (action, said)
        done = len(tasks) - len(refused)
        words = [f"{done} {change.said}"] if len(tasks) > 1 else []
        self.marked &= set(refused)
        self.lines.refresh()
        self.report(*words, *list(refused.values())[:_RUNNING])

    def do_repeat(self) -> None:
        """Make the last change again, of what is meant now."""
        if self._repeat is None:
            self.report("Nothing was changed here yet.")
        elif tasks := self.meant:
            self.calls(self._make(self._repeat[0], tasks, self._repeat[1]))

    def do_mark(self) -> None:
        """Mark a task for a change of several, or unmark it."""
        if self.lines.key:
            self.marked ^= {self.lines.key}
            self.lines.move(1)

    def do_mark_all(self) -> None:
        """Mark all that are shown; if they are, none."""
        shown = set(self.lines.index)
        self.marked = set() if shown <= self.marked else self.marked | shown
        self.lines.refresh()
        self.draw_frame()

    # going about

    def do_back(self) -> None:
        """Leave the past, marks, words; at last the list."""
        if self.past is not None:
            self.do_now()
        elif self.marked:
            self.marked = set()
            self.lines.refresh()
            self.draw_frame()
        elif self.words:
            self._leave_words(keep=False)
        else:
            self.face.pop_screen()

    def do_next_filter(self) -> None:
        """Go on to the next state, at last to all of them."""
        names = ["", *(f"is:{name}" for name in STATES)]
        at = names.index(self.words) if self.words in names else 0
        self.words = names[(at + 1) % len(names)]
        self.arranged()

    def do_open(self) -> None:
        """Show everything about a task."""
        if task := self.selected:
            shown = painted(detail(task, self.picture.by_id, self.draw_context(0)), self.styles_by_name())
            self._show_notice("", shown)

    def on_lines_opened(self) -> None:
        """The chosen line was clicked twice."""
        self.do_open()

    def do_view_list(self) -> None:
        """The list is what there is."""
        self._leave_words(keep=False)

    def do_view_graph(self) -> None:
        """Show what a task waits for and what waits for it."""
        if task := self.selected:
            shown = painted(dependencies(task, self.picture.by_id, self.draw_context(0)), self.styles_by_name())
            self._show_notice(f"#{text(task.id)} {text(task.title)}", shown)

    def _show_notice(self, title: str, shown: Text) -> None:
        shown.no_wrap, shown.overflow = False, "fold"
        self.face.push_screen(Notice(title, shown))

    def do_view_history(self) -> None:
        """Show what happened."""

        async def read() -> None:
            changes = await latest(self.plan, self.rows.seq)
            self.face.push_screen(History(text(self.plan.id), changes, self.show_version))

        self.calls(read(), "past", exclusive=True)

    def do_why(self) -> None:
        """Say why a task can't be started."""
        if task := self.selected:

            async def explain() -> None:
                explained = await self.plan.client.run(self.plan.calls.explain(task.id))
                lines = reason_lines(msgspec.to_builtins(explained), Style(now=self.draw_context(0).now))
                free = [name for name in task.blocks if self._waits_for_it_alone(name, task.id)]
                frees = "Done, it frees " + ", ".join(f"#{text(name)}" for name in free) if free else ""
                self._show_notice(f"#{text(task.id)} {text(task.title)}", Text("\n".join([*lines, "", frees]).rstrip()))

            self.calls(explain())

    def _waits_for_it_alone(self, name: str, blocker: str) -> bool:
        waiting = self.rows.by_id.get(name)
        return waiting is not None and waiting.open_blockers == (blocker,)

    def do_copy(self) -> None:
        """Copy number and title."""
        if task := self.selected:
            self.face.copy_to_clipboard(f"#{text(task.id)} {text(task.title)}")
            self.report(f"Copied #{task.id} and its title.")

    # changing

    def do_add(self) -> None:
        """Add a task."""

        def titled(title: str | None) -> None:
            if title:
                self.calls(self._add(title))

        self.face.push_screen(Ask("Title of the new task"), titled)

    async def _add(self, title: str) -> None:
        task = await self.plan.add(title)
        self.report(f"Added #{task.id}.")

    def do_edit(self) -> None:
        """Change the members of a task."""
        if not (task := self.selected):
            return
        fields = [Field(one.name, one.label, one.text(task), one.height) for one in MEMBERS]

        async def save(texts: Mapping[str, str]) -> None:
            if texts:
                await self.plan.edit(task.id, **changes(texts))

        self.face.push_screen(Form(f"Edit #{text(task.id)}", fields, save))

    async def _done(self, call: Awaitable[Any]) -> None:
        await call

    def do_delete(self) -> None:
        """Delete tasks, after a question."""
        if not (tasks := self.meant):
            return

        def agreed(yes: bool | None) -> None:
            if yes:
                self.marked = set()
                self.calls(self._done(self.plan.delete(*(task.id for task in tasks))))

        lines = [f"#{text(task.id)} {text(task.title)}" for task in tasks]
        self.face.push_screen(Sure(f"Delete {len(tasks)} of the tasks? Undo brings them back.", lines), agreed)

    def do_move_down(self) -> None:
        """Put a task behind the one below it."""
        self._move(1)

    def do_move_up(self) -> None:
        """Put a task in front of the one above it."""
        self._move(-1)

    def _move(self, step: int) -> None:
        if not (task := self.selected):
            return
        shown = self.lines.index
        siblings = [one.id for one in self.rows.order if one.parent == task.parent and one.id in shown]
        at = siblings.index(task.id) + step
        if 0 <= at < len(siblings):
            place: dict[str, Any] = {"after" if step > 0 else "before": siblings[at]}
            self.calls(self._done(self.plan.move(task.id, **place)), "move")

    def do_undo(self) -> None:
        """Show what an undo takes back, then do it if that is wanted."""
        version = self.rows.version

        async def preview() -> None:
            lines = await self.plan.undo(preview=True)
            if not lines:
                self.report("There is nothing to undo.")
                return
            if await self.face.push_screen_wait(Sure("Undo the last call?", [safe(line) for line in lines])):
                undone = await self.plan.undo(expect_version=version)
                self.report(f"Undone: {len(undone)} changes.")

        self.calls(preview(), "undo", exclusive=True)

    def do_own(self) -> None:
        """Run a command of the user's, with the task's id in it."""
        if not (task := self.selected):
            return

        def given(line: str | None) -> None:
            if line:
                values = {"id": task.id, "title": shlex.quote(text(task.title)), "list": shlex.quote(self.plan.id)}
                for name, value in values.items():
                    line = line.replace(f"{{{name}}}", value)
                with self.face.suspend():
                    subprocess.run(line, shell=True, check=False)
                    with contextlib.suppress(EOFError):
                        input("\nEnter: back to the list ")

        self.face.push_screen(Ask("Command ({id}, {title} and {list} stand for the task's)"), given)

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
        """A version back."""
        self.show_version(self.picture.version - 1)

    def do_newer(self) -> None:
        """A version forward."""
        if self.past is not None:
            self.show_version(self.past.version + 1)

    def do_now(self) -> None:
        """Back to now."""
        self.past = None
        self.arranged()

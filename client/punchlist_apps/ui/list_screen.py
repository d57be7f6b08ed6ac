"""The screen of one list, with the actions of its keys."""

import contextlib
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
from rich.console import RenderableType
from rich.text import Text

from punchlist.base.text import safe_block
from punchlist.clients.aio import AsyncConversation
from punchlist.errors import PunchlistError
from punchlist_apps.common.terminal.reasons import format_reasons
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.changes import CHANGES, WRITES, Request
from punchlist_apps.ui.detail import draw_dependencies, draw_detail
from punchlist_apps.ui.dialogs import Confirm, Field, Form, Notice, Prompt
from punchlist_apps.ui.filters import STATES
from punchlist_apps.ui.list_view import MAX_NAMED, ListView
from punchlist_apps.ui.markdown import render_blocks
from punchlist_apps.ui.members import MEMBERS, parse_changes
from punchlist_apps.ui.parts import DrawContext, Part, describe_gate, sanitize, sort_children_first
from punchlist_apps.ui.past import History, read_latest
from punchlist_apps.ui.picker import Picker
from punchlist_apps.ui.undo import undo_call
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Task


class ListScreen(ListView):
    """Screen of a list, with the actions that change it."""

    hints: ClassVar[dict[str, str]] = {
        **{"back": "back", "search": "search", "start": "start", "done": "done", "add": "add", "undo": "undo"},
        **{
            "approve": "approve",
            "reject": "reject",
            "help": "all keys",
            "quit": "quit",
            "filter": "filter",
            "edit": "edit",
        },
        **{"blockers": "waits for", "sort": "sort", "group": "group", "left": "fold", "older": "past", "why": "why"},
        **{"note": "note", "view_history": "history", "view_graph": "depends", "mark": "mark", "palette": "go to"},
    }

    def __init__(self, conversation: AsyncConversation, task: str = "") -> None:
        super().__init__(conversation, task)
        self._last_change: tuple[str, str] | None = None

    async def act(self, action: str) -> None:
        if self.past is not None and action == "reject":
            self.do_now()
        elif action in WRITES and self.past is not None and not self.program.setup.read_only:
            hint = self.program.keys.hint("reject")
            self.report(
                f"This is version {self.past.version} of the list, which can't be changed; {hint} returns to now."
            )
        else:
            if action in WRITES:
                self.program.last_list = self.conversation.id
            await super().act(action)

    def change(self, action: str) -> None:
        if not (tasks := self.targets):
            return
        if action == "approve" and len(tasks) == 1 and not self.is_wide:
            self._read_and_approve(tasks[0])
            return
        change = CHANGES[action]
        waiting = next((task for task in tasks if task.waits_for == "yes"), None) if change.leaves_gates else None
        if waiting is not None:
            self.report_gate(waiting.id, describe_gate(waiting))
            return
        if not change.question:
            self.run_calls(self._change(action, tasks, ""))
            return

        def change_with(text: str | None) -> None:
            if text or (text is not None and not change.needs_text):
                self.run_calls(self._change(action, tasks, text))

        names = ", ".join(f"#{sanitize(task.id)}" for task in tasks[:MAX_NAMED])
        names += " …" if len(tasks) > MAX_NAMED else ""
        self.program.push_screen(Prompt(f"{names}  {change.question}"), change_with)

    def _read_and_approve(self, task: Task) -> None:
        """Approve a task after its result has been shown. A wide window shows it with the list."""

        def approve(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self.run_calls(self._change("approve", [task], ""))

        lines = safe_block(task.result_summary or "It was completed without a result.").split("\n")
        self.program.push_screen(Confirm(f"Approve {_heading(task)}?", lines), approve)

    async def _change(self, action: str, tasks: list[Task], text: str) -> None:
        """Change tasks, subtasks before their parents. Tasks whose change is rejected remain marked."""
        change = CHANGES[action]
        errors: dict[str, str] = {}
        self.lines.leaving |= {self.lines.key, *(task.id for task in tasks)}
        for task in sort_children_first(tasks):
            try:
                await change.call(self.conversation, task, Request(text, self.program.setup.owner))
            except PunchlistError as error:
                errors[task.id] = str(error)
        self._last_change = (action, text)
        done = [task for task in tasks if task.id not in errors]
        names = f"#{done[0].id}" if len(tasks) == 1 and done else str(len(done))
        summary = [f"{names} {change.result} ({self.program.keys.hint('undo')}: undo)"] if done else []
        self.marked &= set(errors)
        self.lines.refresh()
        self.report(*summary, *list(errors.values())[:MAX_NAMED])

    def do_repeat(self) -> None:
        """Repeat the last change on the current targets."""
        if self._last_change is None:
            self.report("No change to repeat yet.")
        elif tasks := self.targets:
            action, text = self._last_change
            self.run_calls(self._change(action, tasks, text))

    def do_mark(self) -> None:
        if task := self.selected:
            self.marked ^= {task.id}
            self.lines.move_cursor(1)

    def do_mark_all(self) -> None:
        """Mark all tasks shown, or unmark them if all are marked."""
        shown = {task.id for item in self.lines.items if (task := self.task_of(item.key))}
        self.marked = set() if shown <= self.marked else self.marked | shown
        self.lines.refresh()
        self.draw_frame()

    # views

    def do_back(self) -> None:
        """Leave the past, else clear the marks, else clear the filter, else close the list."""
        if self.past is not None:
            self.do_now()
        elif self.marked:
            self.marked = set()
            self.lines.refresh()
            self.draw_frame()
        elif self.filter_text:
            self._close_filter(keep=False)
        else:
            self.program.pop_screen()

    def do_next_filter(self) -> None:
        filters = ["", *(f"is:{name}" for name in STATES)]
        index = filters.index(self.filter_text) if self.filter_text in filters else 0
        self.filter_text = filters[(index + 1) % len(filters)]
        self.rearrange()

    def do_open(self) -> None:
        if task := self.selected:
            self._show_parts("", draw_detail, task)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_view_list(self) -> None:
        self._close_filter(keep=False)

    def do_view_graph(self) -> None:
        if task := self.selected:
            self._show_parts(_heading(task), draw_dependencies, task)

    def _show_parts(
        self, title: str, draw: Callable[[Task, Mapping[str, Task], DrawContext], list[Part]], task: Task
    ) -> None:
        """Show what `draw` renders for a task, in a notice that follows the task's changes until it is deleted."""
        last = task

        def render() -> RenderableType:
            nonlocal last
            last = self.shown_list.by_id.get(task.id, last)
            return render_blocks(draw(last, self.shown_list.by_id, self.draw_context(0)), self.styles_by_name())

        self.program.push_screen(Notice(title, render))

    def draw_changes(self) -> None:
        super().draw_changes()
        if isinstance(self.program.screen, Notice):
            self.program.screen.refresh_text()

    def do_view_history(self) -> None:
        async def read() -> None:
            changes = await read_latest(self.conversation, self.rows.seq)
            name = sanitize(short_name(self.conversation.id, self.program.cards))
            self.program.push_screen(History(name, changes, self.show_version, self._undo_call))

        self.run_calls(read(), "past", exclusive=True)

    def do_why(self) -> None:
        if task := self.selected:

            async def explain() -> None:
                calls = self.conversation.calls
                result = await self.conversation.client.run(calls.explain(task.id, owner=self.program.setup.owner))
                lines = format_reasons(msgspec.to_builtins(result), Style(now=self.draw_context(0).now))
                freed = [id for id in task.blocks if self._is_blocked_only_by(id, task.id)]
                frees = "Done, it frees " + ", ".join(f"#{sanitize(id)}" for id in freed) if freed else ""
                text = "\n".join([*lines, "", frees]).rstrip()
                self.program.push_screen(Notice(_heading(task), lambda: Text(text)))

            self.run_calls(explain())

    def _is_blocked_only_by(self, id: str, blocker: str) -> bool:
        task = self.rows.by_id.get(id)
        return task is not None and task.open_blockers == (blocker,)

    def do_copy(self) -> None:
        if task := self.selected:
            self.program.copy_to_clipboard(_heading(task))
            self.report(f"Copied #{task.id} and its title.")

    # changes

    def do_add(self) -> None:
        def add(title: str | None) -> None:
            if title:
                self.run_calls(self._add(title))

        self.program.push_screen(Prompt("Title of the new task"), add)

    async def _add(self, title: str) -> None:
        task = await self.conversation.add(title)
        self.report(f"Added #{task.id}.")

    def do_edit(self) -> None:
        if not (task := self.selected):
            return
        fields = [Field(member.name, member.label, member.text(task), member.height) for member in MEMBERS]

        seen = task

        async def save(texts: Mapping[str, str]) -> None:
            nonlocal seen
            before, seen = seen, self.rows.by_id.get(task.id, seen)
            for member in MEMBERS:
                if member.name in texts and (now := member.text(seen)) not in (member.text(before), texts[member.name]):
                    raise ValueError(f"{member.name} was changed meanwhile: {now}; save again to overwrite it.")
            if texts:
                await self.conversation.edit(task.id, **parse_changes(texts))

        self.program.push_screen(Form(f"Edit #{sanitize(task.id)}", fields, save))

    def do_blockers(self) -> None:
        """Choose what the selected task waits for."""
        if not (task := self.selected):
            return

        def save(chosen: frozenset[str] | None) -> None:
            before = frozenset(task.blocked_by)
            if chosen is not None and chosen != before:
                added, removed = sorted(chosen - before), sorted(before - chosen)
                self.run_calls(self.conversation.edit(task.id, add_blocked_by=added, remove_blocked_by=removed))

        self.program.push_screen(Picker(task, self.rows.order, self.program.glyphs), save)

    def do_search(self) -> None:
        self.program.open_search(self.conversation.id)

    def do_delete(self) -> None:
        """Delete the targets after confirmation."""
        if not (tasks := self.targets):
            return

        def delete(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self.marked = set()
                self.run_calls(self.conversation.delete(*(task.id for task in tasks)))

        count = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
        self.program.push_screen(Confirm(f"Delete {count}? Undo restores them.", [*map(_heading, tasks)]), delete)

    def do_move_down(self) -> None:
        self._move(1)

    def do_move_up(self) -> None:
        self._move(-1)

    def _move(self, step: int) -> None:
        if not (task := self.selected):
            return
        if self.program.memory.arrangement.sort != "order":
            self.report(f"Tasks can be moved in list order: {self.program.keys.hint('sort')} sorts.")
            return
        groups = self.groups
        siblings = [
            other.id
            for other in self.rows.order
            if other.parent == task.parent
            and other.id in self.lines.index
            and groups.get(other.id) == groups.get(task.id)
        ]
        index = siblings.index(task.id) + step
        if 0 <= index < len(siblings):
            place: dict[str, Any] = {"after" if step > 0 else "before": siblings[index]}
            self.run_calls(self.conversation.move(task.id, **place), "move")

    def _undo_call(self, call: int, actor: str) -> None:
        """Undo a call from the history, made by any actor, after a preview."""

        async def undo() -> None:
            self.report(*filter(None, [await undo_call(self.program, self.conversation, call, actor)]))

        self.run_calls(undo(), "undo", exclusive=True)

    def do_own(self) -> None:
        """Run the user's own shell command with the task's id, title and list."""
        if not (task := self.selected):
            return

        def run(line: str | None) -> None:
            if line:
                title, name = shlex.quote(sanitize(task.title)), shlex.quote(self.conversation.id)
                for placeholder, value in (("{id}", task.id), ("{title}", title), ("{list}", name)):
                    line = line.replace(placeholder, value)
                with self.program.suspend():
                    subprocess.run(line, shell=True, check=False)
                    with contextlib.suppress(EOFError):
                        input("\nEnter: back to the list ")

        self.program.push_screen(Prompt("Command ({id}, {title} and {list} are replaced by the task's)"), run)


def _heading(task: Task) -> str:
    return f"#{sanitize(task.id)} {sanitize(task.title)}"

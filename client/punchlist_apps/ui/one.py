"""What the keys do on the screen of one list."""

import contextlib
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import msgspec
from rich.text import Text

from punchlist.base.actors import THREADS, chats_about
from punchlist.base.text import safe
from punchlist.clients.aio import AsyncConversation
from punchlist.errors import PunchlistError, RequestRefused
from punchlist_apps.common.terminal.reasons import format_reasons
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.changes import CHANGES, WRITES, Wish
from punchlist_apps.ui.detail import dependencies, detail
from punchlist_apps.ui.dialogs import Ask, Field, Form, Notice, Sure, painted
from punchlist_apps.ui.filters import STATES
from punchlist_apps.ui.list_view import RUNNING, ListView
from punchlist_apps.ui.members import MEMBERS, changes
from punchlist_apps.ui.parts import DrawContext, Part, below_first, gate_wait, text
from punchlist_apps.ui.past import History, latest
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Task


class OneList(ListView):
    """The tasks of a list, and what the keys do to them.

    Args:
        plan: The list.
    """

    hints: ClassVar[dict[str, str]] = {
        **{"back": "back", "filter": "filter", "start": "start", "done": "done", "add": "add", "undo": "undo"},
        **{
            "older": "past",
            "why": "why",
            "help": "all keys",
            "edit": "edit",
            "note": "note",
            "approve": "approve",
            "reject": "reject",
            "next_filter": "next filter",
        },
        **{"view_history": "history", "view_graph": "depends", "mark": "mark", "palette": "go to", "quit": "quit"},
    }

    def __init__(self, plan: AsyncConversation) -> None:
        super().__init__(plan)
        self._repeat: tuple[str, str] | None = None

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
        change = CHANGES[action]
        asks = change.asks
        held = next((task for task in tasks if task.waits_for == "yes"), None) if change.leaves_gates else None
        if held is not None:
            yes, no = self.face.keys.hint("approve"), self.face.keys.hint("reject")
            said = f"#{held.id} waits for {gate_wait(held)}: {yes} approves it, {no} rejects it with a reason."
            self.report(said)
            return
        if not asks:
            self.calls(self._make(action, tasks, ""))
            return

        def answered(said: str | None) -> None:
            if said or (said is not None and not change.needs_text):
                self.calls(self._make(action, tasks, said))

        names = ", ".join(f"#{text(task.id)}" for task in tasks[:RUNNING]) + (" …" if len(tasks) > RUNNING else "")
        self.face.push_screen(Ask(f"{names}  {asks}"), answered)

    async def _make(self, action: str, tasks: list[Task], said: str) -> None:
        """Change tasks, those below a task before it; those that are refused stay marked."""
        change = CHANGES[action]
        refused: dict[str, str] = {}
        for task in below_first(tasks):
            try:
                await change.call(self.plan, task, Wish(said, self.face.setup.owner))
            except PunchlistError as error:
                refused[task.id] = str(error)
        self._repeat = (action, said)
        done = len(tasks) - len(refused)
        words = [f"{done} {change.said}"] if len(tasks) > 1 else []
        self.marked &= set(refused)
        self.lines.refresh()
        self.report(*words, *list(refused.values())[:RUNNING])

    def do_repeat(self) -> None:
        """Make the last change again, of what is meant now."""
        if self._repeat is None:
            self.report("Nothing was changed here yet.")
        elif tasks := self.meant:
            self.calls(self._make(self._repeat[0], tasks, self._repeat[1]))

    def do_mark(self) -> None:
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
        if task := self.selected:
            self._show_parts("", detail, task)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_view_list(self) -> None:
        """The list is what there is."""
        self._leave_words(keep=False)

    def do_view_graph(self) -> None:
        """Show what a task waits for and what waits for it."""
        if task := self.selected:
            self._show_parts(f"#{text(task.id)} {text(task.title)}", dependencies, task)

    def _show_parts(
        self, title: str, draw: Callable[[Task, Mapping[str, Task], DrawContext], list[Part]], task: Task
    ) -> None:
        """Show what `draw` makes of a task, over the list, and follow its changes; one that is gone stays as it was."""
        last = task

        def shown() -> Text:
            nonlocal last
            last = self.picture.by_id.get(task.id, last)
            return painted(draw(last, self.picture.by_id, self.draw_context(0)), self.styles_by_name())

        self.face.push_screen(Notice(title, shown))

    def draw_changes(self) -> None:
        """Draw what changed, also in a notice that is over the list."""
        super().draw_changes()
        if isinstance(self.face.screen, Notice):
            self.face.screen.refresh_text()

    def do_view_history(self) -> None:
        async def read() -> None:
            changes = await latest(self.plan, self.rows.seq)
            name = text(short_name(self.plan.id, self.face.cards))
            self.face.push_screen(History(name, changes, self.show_version, self._undo_or_say))

        self.calls(read(), "past", exclusive=True)

    def do_why(self) -> None:
        if task := self.selected:

            async def explain() -> None:
                explained = await self.plan.client.run(self.plan.calls.explain(task.id, owner=self.face.setup.owner))
                lines = format_reasons(msgspec.to_builtins(explained), Style(now=self.draw_context(0).now))
                free = [name for name in task.blocks if self._waits_for_it_alone(name, task.id)]
                frees = "Done, it frees " + ", ".join(f"#{text(name)}" for name in free) if free else ""
                shown = "\n".join([*lines, "", frees]).rstrip()
                self.face.push_screen(Notice(f"#{text(task.id)} {text(task.title)}", lambda: Text(shown)))

            self.calls(explain())

    def _waits_for_it_alone(self, name: str, blocker: str) -> bool:
        waiting = self.rows.by_id.get(name)
        return waiting is not None and waiting.open_blockers == (blocker,)

    def do_copy(self) -> None:
        if task := self.selected:
            self.face.copy_to_clipboard(f"#{text(task.id)} {text(task.title)}")
            self.report(f"Copied #{task.id} and its title.")

    # changing

    def do_add(self) -> None:
        def titled(title: str | None) -> None:
            if title:
                self.calls(self._add(title))

        self.face.push_screen(Ask("Title of the new task"), titled)

    async def _add(self, title: str) -> None:
        task = await self.plan.add(title)
        self.report(f"Added #{task.id}.")

    def do_edit(self) -> None:
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
        """Show what an undo of one's own last change takes back, then do it if that is wanted."""
        self.calls(self._take_back("Undo your last change?", "undo"), "undo", exclusive=True)

    def do_redo(self) -> None:
        """Show what a redo of one's own last undo brings back, then do it if that is wanted."""
        self.calls(self._take_back("Redo what you undid?", "redo", redo=True), "undo", exclusive=True)

    def _undo_or_say(self, call: int, actor: str) -> None:
        """Undo a call out of the history, where anything may be changed."""
        if self.face.setup.read_only:
            self.report("Nothing is changed here: punch ui runs with --read-only.")
        else:
            self._undo_call(call, actor)

    def _undo_call(self, call: int, actor: str) -> None:
        """Show what an undo of a call out of the history takes back, whoever's it is, then do it if that is wanted."""
        question = f"Undo this change by {text(actor)}?"
        self.calls(self._take_back(question, "undo", call=call), "undo", exclusive=True)

    async def _take_back(self, question: str, what: str, **which: Any) -> None:
        """Ask with a preview, which names the call, so that other changes don't matter; a refusal is shown in it."""
        person = self.plan.calls.actor or self.face.setup.options.get("name", "punch ui")
        how: dict[str, Any] = {"conversation": self.plan.id, "actor": person, "whole": True, "claims": True}
        if "call" not in which:
            chats = await self.plan.client.conversations(kind="chat", limit=THREADS)
            also = chats_about(self.plan.id, msgspec.to_builtins(chats.conversations))
            which |= {"of": person, "count": 1, "also": also}
        would = await self.plan.client.call("list.undo", {**how, **which, "preview": True})
        if not would["undone"]:
            self.report(f"You have nothing to {what} here; the history shows the changes of others.")
            return
        lines = [safe(line) for line in would["undone"]]
        refused: list[str] = []
        while await self.face.push_screen_wait(Sure(question, [*lines, *refused])):
            try:
                done = await self.plan.client.call("list.undo", {**how, "call": would["calls"][0]})
            except RequestRefused as error:
                refused = ["", safe(str(error))]
            else:
                count = len(done["undone"])
                self.report(f"{'Redone' if what == 'redo' else 'Undone'}: {count} change{'' if count == 1 else 's'}.")
                return

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

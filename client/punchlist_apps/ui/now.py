"""The first screen: what needs the user, the agents at work, and what happens, in all lists."""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult

from punchlist.base.actors import is_chat
from punchlist.base.departures import departure, facts_of
from punchlist_apps.common.terminal.render import count_columns, format_short_duration, truncate
from punchlist_apps.ui.changes import CHANGES, Request
from punchlist_apps.ui.dialogs import Prompt
from punchlist_apps.ui.happened import Happened
from punchlist_apps.ui.line_screen import WIDE, LineScreen
from punchlist_apps.ui.lines import Lines
from punchlist_apps.ui.parts import DrawContext, Item, Part, fit_parts, hue, sanitize, width_of
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Conversation, Need, Running

_MAX_OF_LIST = 3
"""Maximum number of failed tasks shown of one list. A list can fail by hundreds."""
_MAX_TEXT_LINES = 2
_MAX_RUNNING = 3
_MAX_RESULTS = 3
_MOST_FREED = 99
"""Number up to which the daemon counts the tasks that a task frees."""
_LATE_CHECK_MS = 600_000
"""Time after which a check that nothing answers needs the user, in milliseconds."""
_KINDS = {"yes": ("asks", "asks"), "failed": ("failed", "failed"), "check": ("blocked", "blocked")}
"""The glyph and the style of each kind of need, in the order shown."""


class Entry(NamedTuple):
    """What a line stands for: a task of a list, or a list."""

    conversation: str
    task: Need | Running | None = None
    id: str = ""


class Now(LineScreen):
    """Screen of all lists' work.

    Args:
        cards: The lists by id, updated by the program.
        happened: The last changes, updated by the program.
    """

    screen_name: ClassVar[str] = "now"
    hints: ClassVar[dict[str, str]] = {
        **{"approve": "approve", "reject": "reject", "reopen": "retry", "hand": "hand to", "open": "open"},
        **{"next_column": "column", "search": "search", "undo": "undo", "lists": "lists", "help": "all keys"},
        "quit": "quit",
    }

    def __init__(self, cards: dict[str, Conversation], happened: Happened) -> None:
        super().__init__()
        self.cards = cards
        self.happened = happened
        self._needs_lines, self._work_lines = self.lines, Lines(self.draw)
        self._work_lines.is_active = False
        self._entries: dict[str, Entry] = {}
        self._answered: dict[tuple[str, str], int] = {}
        """Version of each task that was answered here. It is hidden until its list's card is pushed."""

    @property
    def all_lines(self) -> tuple[Lines, ...]:
        return self._needs_lines, self._work_lines

    def compose_side(self) -> ComposeResult:
        yield self._work_lines

    # drawing

    def rearrange(self) -> None:
        if not self.is_mounted:
            return
        is_wide = self.size.width >= WIDE
        self._entries = {}
        for lines, build in ((self._needs_lines, self._build_needs), (self._work_lines, self._build_work)):
            lines.display = is_wide or lines is self.lines
            lines.set_items(build(self.draw_context(lines.row_width or self.size.width)))
        self.set_class(is_wide, "wide-enough")
        self.draw_frame()

    def on_resize(self) -> None:
        self.rearrange()

    def update_cards(self) -> None:
        """Draw the cards or the changes again."""
        if self.program.screen is self:
            self.schedule_draw()

    def draw_changes(self) -> None:
        self.rearrange()

    def draw_bar(self) -> list[Part]:
        cards = self.cards.values()
        running = sum(card.counts.in_progress for card in cards)
        needs = sum(card.counts.failed + card.waiting for card in cards)
        parts: list[Part] = [("title", "Now"), ("dim", f"   {len(self.cards)} lists")]
        parts += [("dim", " · "), ("in_progress", f"{running} in progress")] if running else []
        parts += [("dim", " · "), ("asks", f"{needs} need you" if needs > 1 else "1 needs you")] if needs else []
        return parts

    def find_needs(self, now: int) -> list[tuple[str, Need]]:
        """Return what needs the user: questions, failures and late checks, those that free the most first."""
        found: list[tuple[str, Need]] = []
        for card in self.cards.values():
            for need in card.needs:
                is_answered = self._answered.get((card.conversation, need.id)) == need.version
                if not is_answered and (need.kind != "check" or now - need.since > _LATE_CHECK_MS):
                    found.append((card.conversation, need))
        kinds = list(_KINDS)
        return sorted(found, key=lambda pair: (kinds.index(pair[1].kind), -pair[1].frees, pair[1].since, pair[0]))

    def _build_needs(self, context: DrawContext) -> list[Item]:
        found = self.find_needs(context.now)
        total = sum(card.counts.failed + card.waiting for card in self.cards.values())
        items = [Item("", 0, f"NEEDS YOU {max(total - len(self._answered), len(found)) or ''}".rstrip(), "asks")]
        shown: dict[str, int] = {}
        for name, need in found:
            if need.kind == "failed":
                shown[name] = shown.get(name, 0) + 1
                if shown[name] > _MAX_OF_LIST:
                    continue
            key = f"need {name} {need.id}"
            self._entries[key] = Entry(name, need, need.id)
            items += [Item(key), *(Item("", parts=row) for row in self._draw_need_text(name, need, context))]
            items.append(Item("", 0, " "))
        for name, count in shown.items():
            more = self.cards[name].counts.failed - min(count, _MAX_OF_LIST)
            if more > 0:
                key = f"more {name}"
                self._entries[key] = Entry(name)
                items.append(Item(key, 0, f"and {more} more failed in {self._title_of(name)}", "dim"))
        items += [
            Item("", 0, f"{self._title_of(card.conversation)} is damaged: not the whole list", "failed")
            for card in self.cards.values()
            if card.damaged is not None
        ]
        if len(items) == 1:
            words = "Nothing needs you." if self.cards else "No lists yet. Press a to create one."
            items += [Item("", 0, words, "dim")]
        return items

    def _draw_need_text(self, name: str, need: Need, context: DrawContext) -> list[list[Part]]:
        style = _KINDS[need.kind][1]
        if need.kind == "yes":
            first = f"waits for {_describe_approval(need)}"
        elif need.kind == "failed":
            first = f"try {need.attempts} of {need.max_attempts}" if need.max_attempts > 1 else "failed"
        else:
            first = "waits for its check"
        facts = [
            first,
            self._title_of(name),
            f"frees {need.frees}{'+' if need.frees >= _MOST_FREED else ''}" if need.frees else "",
        ]
        rows: list[list[Part]] = [[("dim", f" {context.glyphs['dot']} ".join(filter(None, facts)))]]
        room = max(context.width - 5, 8)
        words = sanitize(need.text)
        for number in range(_MAX_TEXT_LINES):
            if not words:
                break
            line = truncate(words, room, "") if number < _MAX_TEXT_LINES - 1 else words
            if line != words and " " in line[len(line) // 2 :]:
                line = line[: line.rindex(" ")]
            rows.append([("failed" if need.kind == "failed" else "", truncate(line, room, context.glyphs["cut"]))])
            words = words[len(line) :].strip()
        return [[(style, " ▌  "), *row] for row in rows]

    def _build_work(self, context: DrawContext) -> list[Item]:
        lanes: dict[str, list[tuple[str, Running]]] = {}
        for card in self.cards.values():
            for task in card.running:
                lanes.setdefault(task.owner, []).append((card.conversation, task))
        for owner in self.happened.results:
            if owner != self.program.actor and not is_chat(owner):
                lanes.setdefault(owner, [])
        items = [Item("", 0, f"AGENTS {len(lanes) or ''}".rstrip(), "title")]
        for owner in sorted(lanes, key=lambda owner: (not lanes[owner], owner.casefold())):
            tasks = sorted(lanes[owner], key=lambda pair: pair[1].since)
            done, failed = self.happened.count_today(owner)
            facts = [f"{done} done" if done else "", f"{failed} failed" if failed else ""]
            today = f"  {', '.join(filter(None, facts))} today" if done or failed else ""
            items.append(Item("", parts=((hue(owner), f" ■ {sanitize(owner) or 'nobody'}"), ("dim", today))))
            for name, task in tasks[:_MAX_RUNNING]:
                key = f"run {owner} {name} {task.id}"
                self._entries[key] = Entry(name, task, task.id)
                items.append(Item(key))
            if len(tasks) > _MAX_RUNNING:
                items.append(Item("", 0, f"  and {len(tasks) - _MAX_RUNNING} more", "dim"))
            for result in self.happened.results.get(owner, ())[:_MAX_RESULTS]:
                key = f"result {owner} {result.at} {result.conversation} {result.task}"
                self._entries[key] = Entry(result.conversation, None, result.task)
                items.append(Item(key, parts=self._draw_result(result, context)))
            items.append(Item("", 0, " "))
        if len(items) == 1:
            items.append(Item("", 0, "No agent is at work.", "dim"))
            items.append(Item("", 0, " "))
        items.append(Item("", 0, "WHAT HAPPENS", "title"))
        for line in self.happened.lines:
            key = f"event {line.seq}"
            self._entries[key] = Entry(line.conversation, None, line.task)
            mine = line.actor == self.program.actor
            who: Part = ("title", " ● you ") if mine else (hue(line.actor), f" ■ {sanitize(line.actor)} ")
            items.append(Item(key, parts=(("dim", f" {line.clock}"), who, *line.parts)))
        return items

    def _draw_result(self, result: Any, context: DrawContext) -> tuple[Part, ...]:
        age = format_short_duration(context.now - result.at).rjust(4) if context.now else ""
        head: list[Part] = [(result.style, f" {context.glyphs[result.style]} "), ("", result.title)]
        head += [("dim", f"   {result.text}")] if result.text else []
        head = fit_parts(head, context.width - 5, context.glyphs["cut"])
        return (*head, ("", " " * (context.width - 5 - width_of(head))), ("dim", age))

    def draw(self, item: Item, width: int) -> list[Part]:
        entry = self._entries.get(item.key)
        if entry is None or entry.task is None:
            return []
        context = self.draw_context(width)
        cut = context.glyphs["cut"]
        task = entry.task
        age = format_short_duration(context.now - task.since)
        if isinstance(task, Need):
            glyph, style = _KINDS[task.kind]
            head: list[Part] = [(style, f" ▌{context.glyphs[glyph]} ")]
        else:
            head = [("in_progress", f" {context.spinner} ")]
        number = f" #{sanitize(task.id)}"
        room = max(width - width_of(head) - len(number) - len(age) - 2, 8)
        head += [("title", truncate(sanitize(task.title), room, cut)), ("dim", number)]
        if isinstance(task, Running):
            left = departure(facts_of(task), context.now)
            doing = left or sanitize(task.active_form) or self._title_of(entry.conversation)
            room = width - width_of(head) - len(age) - 5
            if room >= min(count_columns(doing), 8):
                head.append(("failed" if left else "in_progress", f"  {truncate(doing, room, cut)}"))
        return [*head, ("dim", age.rjust(max(width - width_of(head) - 1, 0)))]

    def has_spinner(self, key: str) -> bool:
        return key.startswith("run ")

    def _title_of(self, conversation: str) -> str:
        card = self.cards.get(conversation)
        return sanitize(card.title if card and card.title else short_name(conversation, self.cards))

    # keys

    def change(self, action: str) -> None:
        entry = self._entries.get(self.lines.key)
        if entry is None or entry.task is None:
            return
        change = CHANGES[action]
        task = entry.task
        approval = _describe_approval(task)
        if approval and change.leaves_gates:
            self.report_gate(task.id, approval)
            return
        if not approval and action in ("approve", "reject"):
            self.report(f"#{task.id} doesn't wait for a yes.")
            return
        if not change.question:
            self.run_calls(self._change(action, entry, ""))
            return

        def change_with(text: str | None) -> None:
            if text or (text is not None and not change.needs_text):
                self.run_calls(self._change(action, entry, text))

        self.program.push_screen(Prompt(f"#{sanitize(task.id)}  {change.question}"), change_with)

    async def _change(self, action: str, entry: Entry, text: str) -> None:
        change, task, place = CHANGES[action], entry.task, (entry.conversation, entry.id)
        if task is None:
            return
        self.program.last_list = entry.conversation
        if isinstance(task, Need):
            self._answered[place] = task.version
            self.lines.leaving.add(f"need {entry.conversation} {entry.id}")
            self.rearrange()
        try:
            await change.call(
                self.program.open_conversation(entry.conversation), task, Request(text, self.program.setup.owner)
            )
        except BaseException:
            self._answered.pop(place, None)
            self.rearrange()
            raise
        self.report(f"#{task.id} {task.title}: {change.result} ({self.program.keys.hint('undo')}: undo)")

    def forget_answers(self, cards: Iterable[str]) -> None:
        """Forget what was answered in lists whose card is newer than the answer."""
        names = set(cards)
        self._answered = {place: version for place, version in self._answered.items() if place[0] not in names}

    def do_next_column(self) -> None:
        """Change to the other column."""
        self._enter(self._work_lines if self.lines is self._needs_lines else self._needs_lines)

    def do_left(self) -> None:
        self._enter(self._needs_lines)

    def do_right(self) -> None:
        self._enter(self._work_lines)

    def _enter(self, lines: Lines) -> None:
        for each in self.all_lines:
            each.is_active = each is lines
            each.refresh()
        self.lines = lines
        self.rearrange()
        top = lines.scroll_offset.y
        if not top <= lines.cursor < top + lines.size.height:
            lines.select(top)
        lines.focus()

    def do_open(self) -> None:
        if entry := self._entries.get(self.lines.key):
            self.program.open_list(entry.conversation, entry.id)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        """Stay: there is no screen below this one."""


def _describe_approval(task: Need | Running) -> str:
    """Return whose approval a task waits for; empty for none."""
    if not isinstance(task, Need) or task.kind != "yes":
        return ""
    return f"{sanitize(task.by)}'s yes" if task.by else "your yes"

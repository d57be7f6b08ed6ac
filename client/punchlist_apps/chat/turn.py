"""One turn: from what a person said to one answer, whatever crashes in between.

The order is fixed: what was said before is fetched, the message is appended (`Thread.send` has done that), the model or
the rules say which calls they want, the calls are written down, made, and what came of each is written down; then the
answer is made from the receipts and written down; then it is told. Whoever goes on after a crash reads what is written
and does the rest: calls that were made are found in the log by their keys.
"""

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import msgspec

from punchlist.base import dates
from punchlist.base.actors import belongs_to_person
from punchlist.calls.cursor import TaskList
from punchlist_apps.chat import small_talk
from punchlist_apps.chat.live import Tell
from punchlist_apps.chat.models.away import Circuit, note_of
from punchlist_apps.chat.models.port import Away, Model
from punchlist_apps.chat.questions import Known, Question, open_question, question_for, question_of
from punchlist_apps.chat.receipts import Done, chips, mark_of, receipts, sentences
from punchlist_apps.chat.rules.reading import Context, Intent, interpret
from punchlist_apps.chat.rules.references import Item
from punchlist_apps.chat.rules.replies import Reply, read_reply
from punchlist_apps.chat.thread import Exchange, Thread, text_of
from punchlist_apps.chat.toolset import ASKING, DIALECT, Wanted, made, tasks_named
from punchlist_apps.chat.trace import log_call
from punchlist_apps.chat.usage import Limits, day_of, used
from punchlist_schemas.things import Task

STALE_S = 120.0
"""After so many seconds nothing new is begun for a message: what was begun is told, and what was not."""

MOST_STEPS, MOST_CALLS = 8, 32
"""So many steps a model may take in a turn, and so many calls in one of them."""

CONTEXT_CHARACTERS, MESSAGE_CHARACTERS = 24_000, 4_000
"""How much goes to a model: together, and of each message that was said before. The oldest is left out first.

A message that is longer than all of it is not sent: a model that has read its half does half of what is wanted.
"""

_FOR_MODELS = ("new", "unclear")
"""Outcomes of a reply that a model reads, if there is one."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The calls that are to be made together, as it is written down before the first of them.

    `known` are the tasks that they name, as they were; `count` is how many tasks the list had; `left_out` is how many
    more calls the model wanted.
    """

    calls: tuple[Wanted, ...]
    source: str
    known: dict[str, Known] = {}
    count: int = 0
    usage: dict[str, int] = {}
    intent: str = ""
    ids: tuple[str, ...] = ()
    status: str = ""
    left_out: int = 0


class Turn:
    """A turn of a thread.

    Args:
        id: The turn, which is the id of the person's message.
        model: Who reads the message; None: the rules alone.
        circuit: Whether that model is worth asking.
        tell: Hears what happens, at once. What it raises ends the turn as a crash would.
        stale_s: After so many seconds nothing new is begun.
    """

    def __init__(  # noqa: PLR0913 - what a turn is made of
        self,
        thread: Thread,
        id: str,
        *,
        model: Model | None = None,
        circuit: Circuit | None = None,
        tell: Tell | None = None,
        limits: Limits | None = None,
        stale_s: float = STALE_S,
    ) -> None:
        self.thread = thread
        self.id = id
        self.stopped = anyio.Event()
        self._model = model
        self._circuit = circuit or Circuit()
        self._tell: Tell = tell or (lambda _name, _data: None)
        self._limits = limits or Limits()
        self._stale_s = stale_s
        self._text = ""
        self._past: list[Exchange] = []
        self._question: Question | None = None
        self._steps: list[Step] = []
        self._done: dict[str, Done] = {}
        self._said = ""
        self._usage: dict[str, int] = {}
        self._notes: list[str] = []
        self._new = 1
        self._calling = anyio.Lock()
        self._listed: TaskList | None = None

    # what a model is offered (`models.port.Work`)

    @property
    def history(self) -> list[dict[str, str]]:
        shown = [{"role": "user", "content": self._text}]
        room = CONTEXT_CHARACTERS - len(self._text)
        for past in reversed(self._past):
            pair = [past.text[:MESSAGE_CHARACTERS], str(past.answer.get("text", ""))[:MESSAGE_CHARACTERS]]
            room -= sum(map(len, pair))
            if room < 0:
                break
            shown[:0] = [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
        return shown

    @property
    def taken(self) -> list[tuple[list[Wanted], list[str]]]:
        return [
            (list(step.calls), [self._done[f"c{n}.{m}"].text for m in range(1, len(step.calls) + 1)])
            for n, step in enumerate(self._steps, start=1)
        ]

    @property
    def is_over(self) -> bool:
        return self.stopped.is_set() or any(one.question for one in self._done.values())

    async def step(self, calls: list[Wanted], usage: dict[str, int]) -> None:
        self._use(usage)
        self._tell("model", {})
        if len(self._steps) >= MOST_STEPS:
            raise Away("steps", f"the model wanted more than {MOST_STEPS} steps")
        if 0 < self._limits.turn_tokens <= sum(self._usage.values()):
            raise Away("budget", f"the model used {sum(self._usage.values()):,} tokens in this turn")
        kept = [
            msgspec.structs.replace(one, words=self._agreement(one) if one.tool in ASKING else "")
            for one in calls[:MOST_CALLS]
        ]
        await self._plan(kept, "model", usage=usage, left_out=len(calls) - len(kept))
        self._note_left_out(self._steps[-1])

    async def call(self, id: str) -> str:
        number = len(self._steps)
        for place, wanted in enumerate(self._steps[-1].calls, start=1):
            if wanted.id == id:
                async with self._calling:  # some models' loops make all calls of a step at once
                    for one in range(1, place):
                        await self._make(number, one)
                    return (await self._make(number, place)).text
        return '{"status":"error","error":"too many calls at once: this one was not made"}'

    def delta(self, text: str) -> None:
        self._said += text
        self._tell("delta", {"text": text})

    @property
    def _results(self) -> list[Done]:
        return [self._done[id] for id in sorted(self._done, key=lambda id: [int(one) for one in id[1:].split(".")])]

    # the turn

    async def run(self) -> dict[str, Any]:
        """Answer, or find the answer that is there: the content of the message."""
        message, written, self._past = await self.thread.begin(self.id)
        if "a" in written:
            return written["a"]
        self._text = text_of(message.content)
        self._question = open_question(self._past[-1].answer if self._past else None)
        self._read(written)
        self._tell("turn.started", {"turn": self.id})
        late = time.time() - message.at / 1000 > self._stale_s
        for number, step in enumerate(self._steps, start=1):
            for place in range(1, len(step.calls) + 1):
                await self._make(number, place, settle=late)
        if late and not self._steps:
            return await self._answer(
                "This was not answered in time, so nothing was done. Please say it again.", "late"
            )
        if self.stopped.is_set() or late:
            return await self._respond()
        return await self._go_on()

    def _read(self, written: dict[str, dict[str, Any]]) -> None:
        while (content := written.get(f"s{len(self._steps) + 1}")) is not None:
            self._steps.append(msgspec.convert(content, Step))
            self._note_left_out(self._steps[-1])
        self._new = len(self._steps) + 1
        for id, content in written.items():
            if id.startswith("c"):
                self._done[id] = msgspec.convert(content, Done)

    async def _go_on(self) -> dict[str, Any]:
        source = self._steps[-1].source if self._steps else ""
        if source in ("rules", "answer") or self.is_over:
            return await self._respond()
        if self._model is None:
            return await (self._by_rules() if not self._steps else self._respond())
        # An answer is the rules' to take: a model could take it for another one.
        if not self._steps and self._question is not None and (await self._read_message()).outcome not in _FOR_MODELS:
            return await self._by_rules()
        return await self._by_model(self._model)

    # who decides

    async def _by_model(self, model: Model) -> dict[str, Any]:
        text, false = "", list[str]()
        if len(self._text) > CONTEXT_CHARACTERS:
            self._note(f"the model was not asked: it is sent at most {CONTEXT_CHARACTERS:,} characters of a message")
        elif self._circuit.is_open:
            self._note(f"rules only ({self._circuit.why})")
        else:
            try:
                text, usage = await self._asked(model)
            except Away as away:
                self._circuit.failed(away)
                if not self.stopped.is_set():
                    self._note(note_of(away))
                if self._steps:  # of the calls that are written down none is left out
                    await self._make_all()
            else:
                self._circuit.answered()
                from punchlist_apps.chat.claims import untrue  # its many patterns are a model's alone

                self._use(usage)
                false = untrue(text, self._results)
        changed = any(one.changes for one in self._done.values())
        if text.strip() and not (false or changed or self.is_over):
            failed = sentences(one for one in self._results if one.refused)
            told = "\n".join(filter(None, (text.strip(), failed)))
            return await self._answer(told, "model", model_text=failed and text, mark=mark_of(self._results))
        if self._steps or self.is_over:  # what it did must not be done a second time
            return await self._respond(model_text=text, untrue=false)
        if false:
            self._note("what the model said was not so, and is left out")
        return await self._by_rules(model_text=text, untrue=false)

    async def _asked(self, model: Model) -> tuple[str, dict[str, int]]:
        """Ask the model until it has answered or the turn is stopped. A call that has begun is never cut off."""
        from punchlist.tools.schema import definitions

        bound = self._limits.day_tokens
        today = day_of(time.time())
        if bound and sum((await used(self.thread.client, day=today)).get(today, {}).values()) >= bound:
            raise Away("budget", f"models have used {bound:,} tokens today")
        answer: tuple[str, dict[str, int]] | None = None
        fault = Away("timeout", "it took too long")
        async with anyio.create_task_group() as group:

            async def poll() -> None:
                await self.stopped.wait()
                group.cancel_scope.cancel()

            group.start_soon(poll)
            group.cancel_scope.deadline = anyio.current_time() + self._limits.turn_s
            try:
                answer = await model.run(self, DIALECT.prompt, definitions(DIALECT, "openai"))
            except Away as away:
                fault = away
            group.cancel_scope.cancel()
        if answer is None:
            raise Away("stopped") if self.stopped.is_set() else fault
        return answer

    async def _by_rules(self, **members: Any) -> dict[str, Any]:
        reply = await self._read_message()
        question, intent = self._question, reply.intent
        if question is not None and reply.outcome != "new":
            if reply.outcome == "drop":
                return await self._answer("Nothing was changed.", "rules", **members)
            if reply.outcome in ("ask", "unclear"):
                lead = "Nothing was changed." if question.need else "Please answer yes or no; nothing was changed."
                return await self._answer(f"{lead} {question.text}", "rules", asks=question, **members)
            asked = question.tasks if reply.outcome == "do" else {id: question.tasks.get(id) for id in intent.ids}
            known = await self._known(asked)
            moved = ", ".join(id for id, task in asked.items() if known.get(id) != task)
            if moved:
                text = f"Nothing was changed: task {moved} is not what it was when I asked."
                return await self._answer(text, "rules", **members)
            if reply.outcome == "do":
                words = self._text.strip()
                await self._plan([msgspec.structs.replace(one, words=words) for one in question.calls], "answer")
                await self._make_all()
                return await self._respond(**members)
        calls = self._calls_of(intent)
        if not calls:
            text = small_talk.reply(intent, self._text, self._items)
            members["refused"] = bool(intent.need) or text == small_talk.NOT_UNDERSTOOD
            members["asks"] = question_for(intent, text, await self._known(intent.ids))
            return await self._answer(text, "rules", **members)
        await self._plan(calls, "rules", intent=intent)
        await self._make_all()
        return await self._respond(**members)

    async def _read_message(self) -> Reply:
        """What the rules make of the message: what it does to the open question, or else what it asks for."""
        tasks = await self._tasks()
        self._items = [Item(task.id, task.title, task.status) for task in tasks]
        last = self._past[-1].answer if self._past else {}
        said = Context(tuple(map(str, last.get("shown", ()))), tuple(map(str, last.get("last", ()))))
        return read_reply(self._text, self._items, said, None if self._question is None else self._question.pending)

    def _calls_of(self, intent: Intent) -> list[Wanted]:
        parts = intent.parts or (intent,)
        calls: list[Wanted] = []
        for part in parts:
            if part.name in ("undo", "redo"):
                calls.append(Wanted("", f"{part.name}_changes"))
            else:
                made = _CALLS[part.name](part) if part.name in _CALLS else []
                words = {"words": self._text.strip()} if part.name == "approve" and not part.doubtful else {}
                calls += [msgspec.structs.replace(one, doubtful=part.doubtful, **words) for one in made]
        return [msgspec.structs.replace(one, id=str(at)) for at, one in enumerate(calls, start=1)]

    def _agreement(self, wanted: Wanted) -> str:
        """The person's own words in this message by which they agree to just this call."""
        intent = interpret(self._text, [Item(id, f"\0{id}", "pending") for id in tasks_named(wanted)])
        same = set(tasks_named(wanted)) == set(intent.ids)
        tools = {"delete": "delete_todo_task", "update": "update_todo_task", "approve": "approve_todo_task"}
        if not same or tools.get(intent.name) != wanted.tool:
            return ""
        return self._text.strip() if intent.name == "approve" else intent.confirmed  # to say so is to agree

    # steps and calls

    async def _plan(
        self,
        calls: list[Wanted],
        source: str,
        *,
        usage: dict[str, int] | None = None,
        intent: Intent | None = None,
        left_out: int = 0,
    ) -> None:
        number = len(self._steps) + 1
        for at, one in enumerate(calls):
            if one.tool == "undo_changes":
                calls[at] = msgspec.structs.replace(one, arguments={"count": await self._last_changes()})
        named = any(one.tool in ASKING or tasks_named(one) for one in calls)
        step = Step(
            calls=tuple(calls),
            source=source,
            known=await self._known(id for one in calls for id in tasks_named(one)),
            count=(await self._tasks()).total if named else 0,
            usage=usage or {},
            intent="" if intent is None else intent.name,
            left_out=left_out,
        )
        content = await self.thread.append(f"{self.id}.s{number}", "step", msgspec.to_builtins(step))
        self._steps.append(msgspec.convert(content, Step))
        self._tell("step", {"calls": len(calls)})

    async def _last_changes(self) -> int:
        """Return how many calls changed something in the newest turn that was not undone yet."""
        taken_back = 0
        for answer in await self.thread.answers():
            undos = set(answer.get("undos", ()))
            changes = {one.get("key") for one in answer.get("receipts", ())} - undos
            if changes and not taken_back:
                return len(changes)
            taken_back += len(undos) - bool(changes)
        return 1

    async def _known(self, ids: Iterable[str]) -> dict[str, Known]:
        names = set(ids)
        if not names:
            return {}
        return {
            task.id: Known(task.title, task.created_at, self._at_work(task))
            for task in await self._tasks()
            if task.id in names
        }

    def _at_work(self, task: Task) -> str:
        """Who works on a task, if that is neither the person nor a chat of theirs."""
        is_own = task.owner == self.thread.actor or belongs_to_person(task.owner, self.thread.person)
        return "" if task.status != "in_progress" or is_own else task.owner

    async def _tasks(self) -> TaskList:
        """The list as it is since this turn's last call."""
        if self._listed is None:
            self._listed = await self.thread.tasks.list()
        return self._listed

    async def _make_all(self) -> None:
        number = len(self._steps)
        for place in range(1, len(self._steps[-1].calls) + 1):
            await self._make(number, place)

    async def _make(self, number: int, place: int, *, settle: bool = False) -> Done:
        """Make one call, or find what came of it. Nobody can stop it between the call and its receipt."""
        id = f"c{number}.{place}"
        if id in self._done:
            return self._done[id]
        step = self._steps[number - 1]
        wanted = step.calls[place - 1]
        done = Done(wanted.tool)
        with anyio.CancelScope(shield=True):
            if wanted.waits:
                done = await self._asking(step, wanted)
            elif self.stopped.is_set() or settle:
                done = await self._found(id, step, wanted) or _not_made(
                    wanted, "it was stopped" if not settle else "it is too late"
                )
            else:
                self._tell("tool.started", {"id": id, "tool": wanted.tool, "arguments": wanted.arguments})
                # Of what this try has written down itself nothing was made before.
                found = await self._found(id, step, wanted) if number < self._new else None
                done = found or await self._called(id, step, wanted)
                self._tell("tool", {"tool": wanted.tool})
            content = await self.thread.append(f"{self.id}.{id}", "tool", msgspec.to_builtins(done))
            done = self._done[id] = msgspec.convert(content, Done)
            log_call(self.thread.id, id, wanted, done)
            told = {"id": id, "tool": wanted.tool, "arguments": wanted.arguments, "chips": chips([done])}
            self._tell("tool.completed", told if done.question else {**told, "result": done.text})
        return done

    async def _asking(self, step: Step, wanted: Wanted) -> Done:
        named = tasks_named(wanted)
        missing = [one for one in named if one not in step.known]
        if missing or not named:
            data = {"status": "error", "error": f"task {', '.join(missing) or '?'} not found"}
            return Done(wanted.tool, wanted.arguments, msgspec.json.encode(data).decode(), data, refused=True)
        text = '{"status":"confirmation_required","note":"The user is being asked. Say nothing more."}'
        return Done(wanted.tool, wanted.arguments, text, question=True)

    async def _found(self, id: str, step: Step, wanted: Wanted) -> Done | None:
        """What the log has of a call that an earlier try has made."""
        changes = await self._receipts(id, step)
        if not changes:
            return None
        return Done(wanted.tool, wanted.arguments, '{"status":"done"}', changes=changes)

    async def _called(self, id: str, step: Step, wanted: Wanted) -> Done:
        self._listed = None
        reply = await made(self.thread, wanted, self.thread.key(self.id, id))
        return Done(
            wanted.tool,
            wanted.arguments,
            reply.text,
            reply.data,
            refused=reply.refused,
            changes=await self._receipts(id, step),
        )

    async def _receipts(self, id: str, step: Step) -> Any:
        key = self.thread.key(self.id, id)
        titles = {name: task.title for name, task in step.known.items()}
        # An earlier call of this step may have added the task, or renamed it.
        prefix = f"{id.partition('.')[0]}."
        earlier = [done for name, done in self._done.items() if name.startswith(prefix)]
        titles |= {change.task: change.title for done in earlier for change in done.changes if change.title}
        return receipts(await self.thread.tasks.find(key), key, titles)

    # the answer

    async def _respond(self, **members: Any) -> dict[str, Any]:
        """The answer from what was done: the receipts' sentences, and the question if there is one."""
        done = self._results
        text = sentences(done)
        waiting = [
            step.calls[place - 1]
            for number, step in enumerate(self._steps, start=1)
            for place in range(1, len(step.calls) + 1)
            if self._done[f"c{number}.{place}"].question
        ]
        if waiting and not self.stopped.is_set():
            known = {id: task for step in self._steps for id, task in step.known.items()}
            asks = question_of(waiting, known, self._steps[-1].count)
            text = "\n".join(filter(None, (text, asks.text)))
            members["asks"] = asks
        if self.stopped.is_set():
            text = "\n".join(filter(None, (text, "Stopped.")))
            members["model_text"] = members.get("model_text") or self._said
        return await self._answer(
            text or "Nothing was changed.", "stopped" if self.stopped.is_set() else "receipts", **members
        )

    async def _answer(self, text: str, source: str, *, asks: Question | None = None, **members: Any) -> dict[str, Any]:
        done = self._results
        last = self._past[-1].answer if self._past else {}
        shown = [str(row["id"]) for one in done for row in one.rows if row.get("id")]
        named = list(dict.fromkeys(change.task for one in done for change in one.changes if change.task))
        named = named or [str(one.facts["id"]) for one in done if one.facts.get("id")]
        if asks is not None and asks.need != "which":
            named = named or list(asks.ids)
        undos = [change.key for one in done if one.tool == "undo_changes" for change in one.changes]
        content: dict[str, Any] = {
            "text": text,
            "source": source,
            "receipts": [msgspec.to_builtins(change) for one in done for change in one.changes],
            "shown": shown or last.get("shown", []),
            "last": named or ([] if shown else last.get("last", [])),
            "usage": self._usage,
            "notes": self._notes,
            "refused": any(one.refused for one in done) or any(step.left_out for step in self._steps),
            "undos": list(dict.fromkeys(undos)),
            **_open(asks),
            **{name: value for name, value in members.items() if value},
        }
        self._tell("answer", {})
        content = await self.thread.append(f"{self.id}.a", "assistant", {k: v for k, v in content.items() if v})
        self._tell("message", content)
        return content

    def _use(self, usage: dict[str, int]) -> None:
        for name, count in usage.items():
            self._usage[name] = self._usage.get(name, 0) + count

    def _note_left_out(self, step: Step) -> None:
        if step.left_out:
            wanted = len(step.calls) + step.left_out
            self._note(f"the model wanted {wanted} calls at once: only the first {len(step.calls)} were made")

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._tell("notice", {"text": text})


def _open(question: Question | None) -> dict[str, Any]:
    """The members of an answer that leave a question open: faces show buttons for `asks`, which waits for yes or no."""
    if question is None:
        return {}
    members = msgspec.to_builtins(question)
    return {"needs": members} if question.need else {"asks": members, "about": question.about}


def _not_made(wanted: Wanted, why: str) -> Done:
    data = {"status": "error", "error": f"{wanted.tool} was not called, since {why}"}
    return Done(wanted.tool, wanted.arguments, msgspec.json.encode(data).decode(), data, refused=True)


_Calls = Callable[[Intent], list[Wanted]]


def _each(tool: str) -> _Calls:
    return lambda intent: [Wanted("", tool, {"task_id": id}) for id in intent.ids]


def _new(title: str, intent: Intent) -> dict[str, Any]:
    found = _DUE.fullmatch(title)
    due = dates.parse(found["due"]) if found is not None else None
    members = {} if found is None or due is None else due.members("due") | {"title": found["title"]}
    return {"title": title, **({"priority": intent.priority} if intent.priority else {}), **members}


_DUE = re.compile(r"(?P<title>.*[^\s,]),? \(?due(?: (?:on|by|at))? (?P<due>[^()]+)\)?", re.I | re.S)
"""A title that ends in a due date."""


def _deletion(intent: Intent) -> list[Wanted]:
    first, *also = intent.ids
    arguments: dict[str, Any] = {"task_id": first, **({"also": also} if also else {})}
    deletion = Wanted("", "delete_todo_task", arguments, words=intent.confirmed)
    return [deletion, Wanted("", "list_todo_tasks")] if intent.all and intent.confirmed else [deletion]


_CALLS: dict[str, _Calls] = {
    "create": lambda intent: [Wanted("", "create_todo_task", _new(title, intent)) for title in intent.titles],
    "get": _each("get_todo_task"),
    "list": lambda intent: [Wanted("", "list_todo_tasks", {} if intent.status == "all" else {"status": intent.status})],
    "update": lambda intent: [
        Wanted("", "update_todo_task", {"task_id": intent.ids[0], "title": intent.title}, words=intent.confirmed)
    ],
    "complete": _each("complete_todo_task"),
    "reopen": _each("reopen_todo_task"),
    "start": _each("start_todo_task"),
    "approve": _each("approve_todo_task"),
    "assign": lambda intent: [
        Wanted("", "assign_todo_task", {"task_id": id, "owner": intent.title}) for id in intent.ids
    ],
    "priority": lambda intent: [
        Wanted("", "set_todo_priority", {"task_id": id, "priority": intent.priority}) for id in intent.ids
    ],
    "delete": _deletion,
}
"""The decision table: what is wanted → the calls that do it."""

"""One turn: from a person's message to one answer, even across crashes.

`Thread.send` has already appended the message. The order of a turn is fixed. The earlier exchanges are read. The model
or the rules choose calls, which are stored and then made, and each result is stored. The answer is built from the
receipts, stored, and published. A worker that resumes after a crash reads the stored records and continues from there.
It finds out from the log, by the calls' keys, which calls were made.
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
from punchlist_apps.chat.live import Publish
from punchlist_apps.chat.models.circuit import Circuit, describe_error
from punchlist_apps.chat.models.port import Model, ModelError
from punchlist_apps.chat.questions import (
    NamedTask,
    Question,
    build_missing_question,
    build_question,
    parse_question,
)
from punchlist_apps.chat.receipts import ToolResult, build_receipts, format_chips, format_results, mark_of
from punchlist_apps.chat.rules.reading import Context, Intent, interpret
from punchlist_apps.chat.rules.references import Item
from punchlist_apps.chat.rules.replies import Reply, read_reply
from punchlist_apps.chat.thread import Exchange, Thread, text_of
from punchlist_apps.chat.toolset import DIALECT, TOOLS_TO_CONFIRM, ToolCall, make_call, task_ids_of
from punchlist_apps.chat.trace import log_call
from punchlist_apps.chat.usage import Limits, day_of, read_usage
from punchlist_schemas.repository import stem_of
from punchlist_schemas.things import Task

STALE_S = 120.0
"""Maximum age of a message, in seconds. For an older message, no new calls are made, and the answer reports only
earlier calls."""

MAX_STEPS, MAX_CALLS = 8, 32
"""Upper limits for a model: steps in a turn, and calls in a step."""

MAX_CONTEXT_CHARS, MAX_MESSAGE_CHARS = 24_000, 4_000
"""Upper limits in characters for text sent to a model: in total, and per earlier message. The oldest messages are
dropped first.

A message above the first limit isn't sent to the model at all, because a model would do only half of the work for half
of a message.
"""

_READ_BY_MODEL = ("new", "unclear")
"""Effects of a reply that make the model read the message, if a model is configured."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The calls of one step, stored before the first of them is made.

    Attributes:
        source: The origin of the calls: `model`, `rules`, or `answer` for the calls of a question that was confirmed.
        known: The tasks that the calls name, as they were before the step.
        count: Number of tasks in the list.
        left_out: Number of calls beyond `MAX_CALLS`, which are not made.
    """

    calls: tuple[ToolCall, ...]
    source: str
    known: dict[str, NamedTask] = {}
    count: int = 0
    usage: dict[str, int] = {}
    intent: str = ""
    ids: tuple[str, ...] = ()
    status: str = ""
    left_out: int = 0


class Turn:
    """A turn in a thread.

    Args:
        id: The turn's id, which is the id of the person's message.
        model: Model that reads the message; None to use only the rules.
        circuit: Circuit breaker of the model.
        publish: Called with the events of the turn. If it raises an exception, the turn ends as after a crash.
        stale_s: Maximum age of the message, in seconds; see `STALE_S`.
    """

    def __init__(  # noqa: PLR0913 - what a turn is made of
        self,
        thread: Thread,
        id: str,
        *,
        model: Model | None = None,
        circuit: Circuit | None = None,
        publish: Publish | None = None,
        limits: Limits | None = None,
        stale_s: float = STALE_S,
    ) -> None:
        self.thread = thread
        self.id = id
        self.stopped = anyio.Event()
        self._model = model
        self._circuit = circuit or Circuit()
        self._publish: Publish = publish or (lambda _name, _data: None)
        self._limits = limits or Limits()
        self._stale_s = stale_s
        self._text = ""
        self._past: list[Exchange] = []
        self._question: Question | None = None
        self._steps: list[Step] = []
        self._results: dict[str, ToolResult] = {}
        self._model_text = ""
        self._usage: dict[str, int] = {}
        self._notes: list[str] = []
        self._first_new_step = 1
        self._call_lock = anyio.Lock()
        self._list: TaskList | None = None

    # the interface for models (`models.port.Work`)

    @property
    def history(self) -> list[dict[str, str]]:
        messages = [{"role": "user", "content": self._text}]
        room = MAX_CONTEXT_CHARS - len(self._text)
        for past in reversed(self._past):
            question, answer = past.text[:MAX_MESSAGE_CHARS], str(past.answer.get("text", ""))[:MAX_MESSAGE_CHARS]
            room -= len(question) + len(answer)
            if room < 0:
                break
            messages[:0] = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return messages

    @property
    def finished_steps(self) -> list[tuple[list[ToolCall], list[str]]]:
        return [
            (list(step.calls), [self._results[f"c{n}.{m}"].text for m in range(1, len(step.calls) + 1)])
            for n, step in enumerate(self._steps, start=1)
        ]

    @property
    def is_finished(self) -> bool:
        return self.stopped.is_set() or any(result.question for result in self._results.values())

    async def plan_step(self, calls: list[ToolCall], usage: dict[str, int]) -> None:
        self._add_usage(usage)
        self._publish("model", {})
        if len(self._steps) >= MAX_STEPS:
            raise ModelError("steps", f"the model requested more than {MAX_STEPS} steps")
        if 0 < self._limits.turn_tokens <= sum(self._usage.values()):
            raise ModelError("budget", f"the model used {sum(self._usage.values()):,} tokens in this turn")
        kept = [
            msgspec.structs.replace(call, words=self._find_agreement(call) if call.tool in TOOLS_TO_CONFIRM else "")
            for call in calls[:MAX_CALLS]
        ]
        await self._store_step(kept, "model", usage=usage, left_out=len(calls) - len(kept))
        self._note_left_out(self._steps[-1])

    async def make_call(self, id: str) -> str:
        number = len(self._steps)
        for place, call in enumerate(self._steps[-1].calls, start=1):
            if call.id == id:
                # Some models' loops make all calls of a step concurrently. The lock keeps the calls in order.
                async with self._call_lock:
                    for earlier in range(1, place):
                        await self._make(number, earlier)
                    return (await self._make(number, place)).text
        return '{"status":"error","error":"too many calls in one step: this one was not made"}'

    def add_delta(self, text: str) -> None:
        self._model_text += text
        self._publish("delta", {"text": text})

    @property
    def _sorted_results(self) -> list[ToolResult]:
        ids = sorted(self._results, key=lambda id: [int(number) for number in id[1:].split(".")])
        return [self._results[id] for id in ids]

    # the turn

    async def run(self) -> dict[str, Any]:
        """Run the turn and return the answer's content. If the turn has already finished, return the stored answer."""
        message, records, self._past = await self.thread.load_turn(self.id)
        if "a" in records:
            return records["a"]
        self._text = text_of(message.content)
        self._question = parse_question(self._past[-1].answer if self._past else None)
        self._load_records(records)
        self._publish("turn.started", {"turn": self.id})
        is_stale = time.time() - message.at / 1000 > self._stale_s
        for number, step in enumerate(self._steps, start=1):
            for place in range(1, len(step.calls) + 1):
                await self._make(number, place, settle=is_stale)
        if is_stale and not self._steps:
            return await self._answer(
                "This was not answered in time, so nothing was done. Please say it again.", "late"
            )
        if self.stopped.is_set() or is_stale:
            return await self._respond()
        return await self._continue()

    def _load_records(self, records: dict[str, dict[str, Any]]) -> None:
        while (content := records.get(f"s{len(self._steps) + 1}")) is not None:
            self._steps.append(msgspec.convert(content, Step))
            self._note_left_out(self._steps[-1])
        self._first_new_step = len(self._steps) + 1
        for id, content in records.items():
            if id.startswith("c"):
                self._results[id] = msgspec.convert(content, ToolResult)

    async def _continue(self) -> dict[str, Any]:
        source = self._steps[-1].source if self._steps else ""
        if source in ("rules", "answer") or self.is_finished:
            return await self._respond()
        if self._model is None:
            return await (self._answer_by_rules() if not self._steps else self._respond())
        # Replies to a question are read by the rules, because a model could misread them.
        is_reply = not self._steps and self._question is not None
        if is_reply and (await self._read_message()).outcome not in _READ_BY_MODEL:
            return await self._answer_by_rules()
        return await self._answer_by_model(self._model)

    # model or rules

    async def _answer_by_model(self, model: Model) -> dict[str, Any]:
        text, untrue = "", list[str]()
        if len(self._text) > MAX_CONTEXT_CHARS:
            self._note(f"the model was not asked: the message has more than {MAX_CONTEXT_CHARS:,} characters")
        elif self._circuit.is_open:
            self._note(f"rules only ({self._circuit.reason})")
        else:
            try:
                text, usage = await self._ask_model(model)
            except ModelError as error:
                self._circuit.record_failure(error)
                if not self.stopped.is_set():
                    self._note(describe_error(error))
                # All calls that were stored must be made.
                if self._steps:
                    await self._make_all()
            else:
                self._circuit.record_success()
                from punchlist_apps.chat.claims import find_untrue  # Compiles many patterns, which only models need.

                self._add_usage(usage)
                untrue = find_untrue(text, self._sorted_results)
        has_changed = any(result.changes for result in self._results.values())
        if text.strip() and not (untrue or has_changed or self.is_finished):
            results = self._sorted_results
            failures = format_results(result for result in results if result.refused)
            answer = "\n".join(filter(None, (text.strip(), failures)))
            return await self._answer(answer, "model", model_text=failures and text, mark=mark_of(results))
        # The rules must not repeat calls that the model has made.
        if self._steps or self.is_finished:
            return await self._respond(model_text=text, untrue=untrue)
        if untrue:
            self._note("the model's answer was not true and is omitted")
        return await self._answer_by_rules(model_text=text, untrue=untrue)

    async def _ask_model(self, model: Model) -> tuple[str, dict[str, int]]:
        """Run the model until it has answered or the turn is stopped. Calls that are in flight always finish."""
        from punchlist.tools.schema import definitions

        limit = self._limits.day_tokens
        today = day_of(time.time())
        if limit and sum((await read_usage(self.thread.client, day=today)).get(today, {}).values()) >= limit:
            raise ModelError("budget", f"models have used {limit:,} tokens today")
        answer: tuple[str, dict[str, int]] | None = None
        failure = ModelError("timeout", "it took too long")
        async with anyio.create_task_group() as group:

            async def cancel_when_stopped() -> None:
                await self.stopped.wait()
                group.cancel_scope.cancel()

            group.start_soon(cancel_when_stopped)
            group.cancel_scope.deadline = anyio.current_time() + self._limits.turn_s
            try:
                answer = await model.run(self, DIALECT.prompt, definitions(DIALECT, "openai"))
            except ModelError as error:
                failure = error
            group.cancel_scope.cancel()
        if answer is None:
            raise ModelError("stopped") if self.stopped.is_set() else failure
        return answer

    async def _answer_by_rules(self, **members: Any) -> dict[str, Any]:
        reply = await self._read_message()
        question, intent = self._question, reply.intent
        if question is not None and reply.outcome != "new":
            if reply.outcome == "drop":
                return await self._answer("Nothing was changed.", "rules", **members)
            if reply.outcome in ("ask", "unclear"):
                lead = "Nothing was changed." if question.need else "Please answer yes or no; nothing was changed."
                return await self._answer(f"{lead} {question.text}", "rules", asks=question, **members)
            asked = question.tasks if reply.outcome == "do" else {id: question.tasks.get(id) for id in intent.ids}
            current = await self._find_named(asked)
            changed = ", ".join(id for id, task in asked.items() if current.get(id) != task)
            if changed:
                text = f"Nothing was changed: task {changed} has changed since I asked."
                return await self._answer(text, "rules", **members)
            if reply.outcome == "do":
                words = self._text.strip()
                calls = [msgspec.structs.replace(call, words=words) for call in question.calls]
                await self._store_step(calls, "answer")
                await self._make_all()
                return await self._respond(**members)
        if elsewhere := await self._find_other_list(intent):
            text = f"This chat is about {self.thread.list}, not about {elsewhere}."
            return await self._answer(text, "rules", elsewhere=elsewhere, refused=True)
        calls = self._build_calls(intent)
        if not calls:
            text = small_talk.reply(intent, self._text, self._items)
            members["refused"] = bool(intent.need) or text == small_talk.NOT_UNDERSTOOD
            members["help"] = small_talk.EXAMPLES if intent.name == "help" else ()
            if text == small_talk.NOT_UNDERSTOOD:
                members["offers"] = small_talk.find_nearest(self._text)
                text = small_talk.build_offer(members["offers"])
            members["asks"] = build_missing_question(intent, text, await self._find_named(intent.ids))
            return await self._answer(text, "rules", **members)
        await self._store_step(calls, "rules", intent=intent)
        await self._make_all()
        return await self._respond(**members)

    async def _find_other_list(self, intent: Intent) -> str:
        """Return the name of another list that the message asks about; empty if it asks about the thread's list.

        A turn never reads another list, because the token that started it may be limited to this one.
        """
        named = [part.title for part in intent.parts or (intent,) if part.name == "list" and part.title]
        if not named:
            return ""
        info = await self.thread.tasks.info()
        own = {self.thread.list, stem_of(self.thread.list), info.title}
        return next((name for name in named if name.casefold() not in {one.casefold() for one in own if one}), "")

    async def _read_message(self) -> Reply:
        """Interpret the message with the rules, as a reply to the open question or as a request."""
        tasks = await self._list_tasks()
        self._items = [Item(task.id, task.title, task.status) for task in tasks]
        last = self._past[-1].answer if self._past else {}
        context = Context(tuple(map(str, last.get("shown", ()))), tuple(map(str, last.get("last", ()))))
        pending = None if self._question is None else self._question.pending_intent
        return read_reply(self._text, self._items, context, pending)

    def _build_calls(self, intent: Intent) -> list[ToolCall]:
        calls: list[ToolCall] = []
        for part in intent.parts or (intent,):
            if part.name in ("undo", "redo"):
                calls.append(ToolCall("", f"{part.name}_changes"))
            elif part.name in _CALL_BUILDERS:
                words = {"words": self._text.strip()} if part.name == "approve" and not part.doubtful else {}
                calls += [
                    msgspec.structs.replace(call, doubtful=part.doubtful, **words)
                    for call in _CALL_BUILDERS[part.name](part)
                ]
        return [msgspec.structs.replace(call, id=str(place)) for place, call in enumerate(calls, start=1)]

    def _find_agreement(self, call: ToolCall) -> str:
        """Return the words of this message that confirm exactly this call; empty if there are none."""
        intent = interpret(self._text, [Item(id, f"\0{id}", "pending") for id in task_ids_of(call)])
        is_same = set(task_ids_of(call)) == set(intent.ids)
        tools = {"delete": "delete_todo_task", "update": "update_todo_task", "approve": "approve_todo_task"}
        if not is_same or tools.get(intent.name) != call.tool:
            return ""
        # A request for approval also confirms it.
        return self._text.strip() if intent.name == "approve" else intent.confirmed

    # steps and calls

    async def _store_step(
        self,
        calls: list[ToolCall],
        source: str,
        *,
        usage: dict[str, int] | None = None,
        intent: Intent | None = None,
        left_out: int = 0,
    ) -> None:
        number = len(self._steps) + 1
        for index, call in enumerate(calls):
            if call.tool == "undo_changes":
                calls[index] = msgspec.structs.replace(call, arguments={"count": await self._count_last_changes()})
        names_tasks = any(call.tool in TOOLS_TO_CONFIRM or task_ids_of(call) for call in calls)
        step = Step(
            calls=tuple(calls),
            source=source,
            known=await self._find_named(id for call in calls for id in task_ids_of(call)),
            count=(await self._list_tasks()).total if names_tasks else 0,
            usage=usage or {},
            intent="" if intent is None else intent.name,
            left_out=left_out,
        )
        # Another worker may have stored this step first. In that case, make the calls that it stored.
        content = await self.thread.append(f"{self.id}.s{number}", "step", msgspec.to_builtins(step))
        self._steps.append(msgspec.convert(content, Step))
        self._publish("step", {"calls": len(calls)})

    async def _count_last_changes(self) -> int:
        """Return the number of calls that made changes in the newest turn that hasn't been undone yet."""
        undone_turns = 0
        for answer in await self.thread.list_answers():
            undos = set(answer.get("undos", ()))
            changes = {receipt.get("key") for receipt in answer.get("receipts", ())} - undos
            if changes and not undone_turns:
                return len(changes)
            undone_turns += len(undos) - bool(changes)
        return 1

    async def _find_named(self, ids: Iterable[str]) -> dict[str, NamedTask]:
        ids = set(ids)
        if not ids:
            return {}
        return {
            task.id: NamedTask(task.title, task.created_at, self._find_worker(task))
            for task in await self._list_tasks()
            if task.id in ids
        }

    def _find_worker(self, task: Task) -> str:
        """Return the owner who works on a task; empty if that is the person or one of their chats."""
        is_own = task.owner == self.thread.actor or belongs_to_person(task.owner, self.thread.person)
        return "" if task.status != "in_progress" or is_own else task.owner

    async def _list_tasks(self) -> TaskList:
        """Return the list, cached until this turn's next call."""
        if self._list is None:
            self._list = await self.thread.tasks.list()
        return self._list

    async def _make_all(self) -> None:
        number = len(self._steps)
        for place in range(1, len(self._steps[-1].calls) + 1):
            await self._make(number, place)

    async def _make(self, number: int, place: int, *, settle: bool = False) -> ToolResult:
        """Make a step's call exactly once and store its result.

        Args:
            settle: Only find out whether the call was already made; don't make it now.
        """
        id = f"c{number}.{place}"
        if id in self._results:
            return self._results[id]
        step = self._steps[number - 1]
        call = step.calls[place - 1]
        result = ToolResult(call.tool)
        # Cancellation must not come between a call and its receipt.
        with anyio.CancelScope(shield=True):
            if call.needs_confirmation:
                result = _build_unconfirmed(step, call)
            elif self.stopped.is_set() or settle:
                reason = "it is too late" if settle else "it was stopped"
                result = await self._find_made(id, step, call) or _build_not_made(call, reason)
            else:
                self._publish("tool.started", {"id": id, "tool": call.tool, "arguments": call.arguments})
                # Only calls in steps stored by an earlier attempt can already have been made.
                made = await self._find_made(id, step, call) if number < self._first_new_step else None
                result = made or await self._call(id, step, call)
                self._publish("tool", {"tool": call.tool})
            content = await self.thread.append(f"{self.id}.{id}", "tool", msgspec.to_builtins(result))
            result = self._results[id] = msgspec.convert(content, ToolResult)
            log_call(self.thread.id, id, call, result)
            event = {"id": id, "tool": call.tool, "arguments": call.arguments, "chips": format_chips([result])}
            self._publish("tool.completed", event if result.question else {**event, "result": result.text})
        return result

    async def _find_made(self, id: str, step: Step, call: ToolCall) -> ToolResult | None:
        """Return the result of a call whose events are already in the log."""
        changes = await self._find_receipts(id, step)
        if not changes:
            return None
        return ToolResult(call.tool, call.arguments, '{"status":"done"}', changes=changes)

    async def _call(self, id: str, step: Step, call: ToolCall) -> ToolResult:
        self._list = None
        reply = await make_call(self.thread, call, self.thread.call_key(self.id, id))
        return ToolResult(
            call.tool,
            call.arguments,
            reply.text,
            reply.data,
            refused=reply.refused,
            changes=await self._find_receipts(id, step),
        )

    async def _find_receipts(self, id: str, step: Step) -> Any:
        key = self.thread.call_key(self.id, id)
        titles = {task_id: task.title for task_id, task in step.known.items()}
        # An earlier call in this step may have added or renamed the task.
        prefix = f"{id.partition('.')[0]}."
        earlier = [result for other, result in self._results.items() if other.startswith(prefix)]
        titles |= {change.task: change.title for result in earlier for change in result.changes if change.title}
        return build_receipts(await self.thread.tasks.find(key), key, titles)

    # the answer

    async def _respond(self, **members: Any) -> dict[str, Any]:
        """Answer from the results of the calls, with a question about the unconfirmed calls."""
        text = format_results(self._sorted_results)
        unconfirmed = [
            step.calls[place - 1]
            for number, step in enumerate(self._steps, start=1)
            for place in range(1, len(step.calls) + 1)
            if self._results[f"c{number}.{place}"].question
        ]
        if unconfirmed and not self.stopped.is_set():
            known = {id: task for step in self._steps for id, task in step.known.items()}
            asks = build_question(unconfirmed, known, self._steps[-1].count)
            text = "\n".join(filter(None, (text, asks.text)))
            members["asks"] = asks
        if self.stopped.is_set():
            text = "\n".join(filter(None, (text, "Stopped.")))
            members["model_text"] = members.get("model_text") or self._model_text
        return await self._answer(
            text or "Nothing was changed.", "stopped" if self.stopped.is_set() else "receipts", **members
        )

    async def _answer(self, text: str, source: str, *, asks: Question | None = None, **members: Any) -> dict[str, Any]:
        """Store and publish the answer. Empty members are omitted."""
        results = self._sorted_results
        last = self._past[-1].answer if self._past else {}
        shown = [str(row["id"]) for result in results for row in result.rows if row.get("id")]
        named = list(dict.fromkeys(change.task for result in results for change in result.changes if change.task))
        named = named or [str(result.facts["id"]) for result in results if result.facts.get("id")]
        if asks is not None and asks.need != "which":
            named = named or list(asks.ids)
        undos = [change.key for result in results if result.tool == "undo_changes" for change in result.changes]
        content: dict[str, Any] = {
            "text": text,
            "source": source,
            "receipts": [msgspec.to_builtins(change) for result in results for change in result.changes],
            "shown": shown or last.get("shown", []),
            "last": named or ([] if shown else last.get("last", [])),
            "usage": self._usage,
            "notes": self._notes,
            "refused": any(result.refused for result in results) or any(step.left_out for step in self._steps),
            "undos": list(dict.fromkeys(undos)),
            **_build_question_members(asks),
            **{name: value for name, value in members.items() if value},
        }
        self._publish("answer", {})
        content = await self.thread.append(f"{self.id}.a", "assistant", {k: v for k, v in content.items() if v})
        self._publish("message", content)
        return content

    def _add_usage(self, usage: dict[str, int]) -> None:
        for name, count in usage.items():
            self._usage[name] = self._usage.get(name, 0) + count

    def _note_left_out(self, step: Step) -> None:
        if step.left_out:
            count = len(step.calls) + step.left_out
            self._note(f"the model requested {count} calls in one step: only the first {len(step.calls)} were made")

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._publish("notice", {"text": text})


def _build_question_members(question: Question | None) -> dict[str, Any]:
    """Return the members of an answer that hold its open question. Clients show buttons for `asks` (yes or no)."""
    if question is None:
        return {}
    members = msgspec.to_builtins(question)
    return {"needs": members} if question.need else {"asks": members, "about": question.about}


def _build_unconfirmed(step: Step, call: ToolCall) -> ToolResult:
    """Return the result of a call that waits for confirmation, or an error if it names a task that doesn't exist."""
    ids = task_ids_of(call)
    missing = [id for id in ids if id not in step.known]
    if missing or not ids:
        return _build_error(call, f"task {', '.join(missing) or '?'} not found")
    text = '{"status":"confirmation_required","note":"The user is being asked. Say nothing more."}'
    return ToolResult(call.tool, call.arguments, text, question=True)


def _build_not_made(call: ToolCall, reason: str) -> ToolResult:
    return _build_error(call, f"{call.tool} was not called, since {reason}")


def _build_error(call: ToolCall, error: str) -> ToolResult:
    data = {"status": "error", "error": error}
    return ToolResult(call.tool, call.arguments, msgspec.json.encode(data).decode(), data, refused=True)


_CallBuilder = Callable[[Intent], list[ToolCall]]


def _for_each_task(tool: str) -> _CallBuilder:
    return lambda intent: [ToolCall("", tool, {"task_id": id}) for id in intent.ids]


def _build_new_task(title: str, intent: Intent) -> dict[str, Any]:
    match = _DUE.fullmatch(title)
    due = dates.parse(match["due"]) if match is not None else None
    members = {} if match is None or due is None else due.members("due") | {"title": match["title"]}
    return {"title": title, **({"priority": intent.priority} if intent.priority else {}), **members}


_DUE = re.compile(r"(?P<title>.*[^\s,]),? \(?due(?: (?:on|by|at))? (?P<due>[^()]+)\)?", re.I | re.S)
"""A title that ends in a due date."""


def _build_deletion(intent: Intent) -> list[ToolCall]:
    first, *also = intent.ids
    arguments: dict[str, Any] = {"task_id": first, **({"also": also} if also else {})}
    deletion = ToolCall("", "delete_todo_task", arguments, words=intent.confirmed)
    return [deletion, ToolCall("", "list_todo_tasks")] if intent.all and intent.confirmed else [deletion]


_CALL_BUILDERS: dict[str, _CallBuilder] = {
    "create": lambda intent: [
        ToolCall("", "create_todo_task", _build_new_task(title, intent)) for title in intent.titles
    ],
    "get": _for_each_task("get_todo_task"),
    "list": lambda intent: [
        ToolCall("", "list_todo_tasks", {} if intent.status == "all" else {"status": intent.status})
    ],
    "update": lambda intent: [
        ToolCall("", "update_todo_task", {"task_id": intent.ids[0], "title": intent.title}, words=intent.confirmed)
    ],
    "complete": _for_each_task("complete_todo_task"),
    "reopen": _for_each_task("reopen_todo_task"),
    "start": _for_each_task("start_todo_task"),
    "approve": _for_each_task("approve_todo_task"),
    "assign": lambda intent: [
        ToolCall("", "assign_todo_task", {"task_id": id, "owner": intent.title}) for id in intent.ids
    ],
    "priority": lambda intent: [
        ToolCall("", "set_todo_priority", {"task_id": id, "priority": intent.priority}) for id in intent.ids
    ],
    "delete": _build_deletion,
}
"""The decision table: intent → calls."""

"""`punch chat`: talk to the list; what was done is proved by the log."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from punchlist.base.text import safe, safe_block
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag, value
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import INTERRUPTED, REFUSED
from punchlist_apps.cli.printing.failure import UsageError

if TYPE_CHECKING:
    from punchlist.clients.aio import AsyncClient
    from punchlist_apps.chat.models.port import Model
    from punchlist_apps.chat.settings import ChatSettings
    from punchlist_apps.chat.thread import Thread
    from punchlist_apps.chat.worker import Worker

COMMANDS = {
    "chat": Usage(
        (
            Argument(
                ("text",), "what you say; without it you are asked, line by line", {"metavar": "TEXT", "nargs": "*"}
            ),
            value("--thread", text="go on with this thread (default: the newest one about the list)", metavar="ID"),
            flag("--new", text="begin a new thread"),
            flag("--threads", text="show the threads about the list, and end"),
            flag("--stop", text="stop the turn that is under way, in whatever process, and end"),
            value("--model", metavar="NAME", text="let this model read what you say (default: PUNCHLIST_CHAT_MODEL)"),
            value(
                "--base-url",
                text="where the model is served, such as http://127.0.0.1:11434/v1 (default: PUNCHLIST_CHAT_BASE_URL)",
                metavar="URL",
            ),
            choice(
                "--api",
                text="chat: Chat Completions (default); sdk: by the Agents SDK; responses: OpenAI's Responses",
                choices=("chat", "sdk", "responses"),
            ),
            flag("--rules", text="ask no model, even if one is set"),
            flag("--usage", text="show how many tokens models used on this list, and end"),
            flag("--verbose", text="print the agent's tools and each call with its outcome to standard error"),
            value("--user", text="talk as this user, about this user's lists", metavar="NAME"),
        ),
        (
            'punch chat "add buy milk"',
            'punch chat "delete 3"; punch chat yes',
            "punch chat --new",
            "punch chat --model qwen3 --base-url http://127.0.0.1:11434/v1",
            "punch chat --threads",
        ),
    ),
}

_SLASHES = {
    "/help": "shows this; “help” shows what you can say",
    "/why": "shows what the last answer did",
    "/undo": "takes it back",
    "/new": "begins a thread",
    "/quit": "leaves, as do /exit, quit, exit, an empty line at the prompt and Ctrl-D",
}
"""What is a command when it is a whole line that is typed → what it does."""
_SLASH = re.compile(r"/[a-z]+")
_LEAVING = frozenset({"/quit", "/exit", "quit", "exit"})

_STOPPED = "stopped"
_HELLO = "Say what you want, for example: add buy milk. “help” shows more, an empty line or Ctrl-D leaves."


def run_chat(context: Context) -> int:
    """Say something and print the answer; exit code 1 if something was refused or a question is open."""
    args = context.args
    if (args.threads or args.stop or args.usage) and (args.text or args.new):
        raise UsageError("--threads, --stop and --usage go without a text and without --new")
    if args.new and args.thread:
        raise UsageError("--new begins a thread, --thread goes on with one: give one of them")
    _ = context.caller
    return asyncio.run(_run(context))


async def _run(context: Context) -> int:
    from punchlist.base.project import own
    from punchlist.clients.aio import connect_async
    from punchlist_apps.chat.trace import print_to_stderr
    from punchlist_apps.chat.usage import Limits
    from punchlist_apps.chat.worker import Worker

    args = context.args
    options = context.options_of("punch chat")
    if args.verbose:
        print_to_stderr()
    if args.user:
        options["user"] = args.user
    name = own(context.conversation, args.user)
    async with connect_async(**options) as client:
        if args.threads:
            return await _show_threads(context, client, name)
        thread = await _thread(context, client, name)
        if args.stop:
            stopped = thread is not None and await thread.stop()
            return context.answer({"stopped": stopped}, ["stopped" if stopped else "nothing is being worked on"])
        if args.usage:
            return await _show_usage(context, client, name)
        settings, model = _model(context)
        worker = Worker(model, limits=Limits(settings.turn_s, settings.max_turn_tokens, settings.max_day_tokens))
        return await _Talk(context, client, name, thread, worker).run()


def _model(context: Context) -> "tuple[ChatSettings, Model | None]":
    """The model that is named, if one is and it may be asked."""
    from punchlist_apps.chat.settings import BadSettings, ChatSettings, model_of, settings_of

    args = context.args
    if args.rules:
        return ChatSettings(), None
    try:
        settings = settings_of(os.environ, model=args.model, base_url=args.base_url, api=args.api)
        return settings, model_of(settings, os.environ)
    except BadSettings as error:
        raise UsageError(str(error)) from None


async def _show_usage(context: Context, client: "AsyncClient", name: str) -> int:
    from punchlist_apps.chat.usage import used

    days = await used(client, name)
    lines = [f"{day}  {one['input']:>10,} in  {one['output']:>10,} out" for day, one in sorted(days.items())]
    return context.answer(days, lines or ["no model was asked about this list"])


async def _show_threads(context: Context, client: "AsyncClient", name: str) -> int:
    import msgspec

    from punchlist_apps.chat.thread import Thread

    threads = await Thread.about(client, name)
    shown = [f"{one.conversation}  {safe(one.title) or '(nothing said yet)'}" for one in threads]
    return context.answer(
        msgspec.to_builtins(threads), shown or [f"no thread about {safe(name)} yet: punch chat begins one"]
    )


async def _thread(context: Context, client: "AsyncClient", name: str) -> "Thread | None":
    from punchlist.base.project import own
    from punchlist_apps.chat.thread import Thread

    args = context.args
    if args.new:
        return None
    if args.thread:
        try:
            return await Thread.find(client, own(args.thread, args.user))
        except ValueError as error:
            raise UsageError(str(error)) from None
    threads = await Thread.about(client, name)
    return Thread.of(client, threads[0]) if threads else None


class _Talk:
    """One run of the command."""

    def __init__(
        self, context: Context, client: "AsyncClient", name: str, thread: "Thread | None", worker: "Worker"
    ) -> None:
        self._context, self._client, self._name = context, client, name
        self._thread, self._worker = thread, worker
        self._tty = context.can_ask
        self._person = "" if context.args.user else context.actor
        self._answering: asyncio.Task[Any] | None = None
        self._turn = ""
        self._answer: dict[str, Any] = {}

    async def run(self) -> int:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupted)
        if self._thread is not None:
            self._thread.person = self._person
            await self._worker.settle(self._thread)
        if self._context.args.text:
            return await self._send(" ".join(self._context.args.text))
        if self._tty:
            self._context.print_lines([_HELLO])
        code = 0
        while (line := await self._line()) is not None:
            code = await self._typed(line)
        return code if not self._tty else 0

    async def _line(self) -> str | None:
        if self._tty:
            sys.stdout.write("› ")
            sys.stdout.flush()
        line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        text = line.strip()
        if not line or text in _LEAVING or (self._tty and not text):
            return None
        return text

    async def _typed(self, line: str) -> int:
        if not line:
            return 0
        if line == "/new":
            self._thread = None
            return 0
        if line == "/why":
            self._context.print_lines(_receipts(self._answer) or ["the last answer changed nothing"])
            return 0
        if _SLASH.fullmatch(line) and line != "/undo":
            shown = [f"  {name:<6}  {text}" for name, text in _SLASHES.items()]
            self._context.print_lines(shown if line == "/help" else [f"There is no {line} here, but:", *shown])
            return 0 if line == "/help" else REFUSED
        return await self._send("undo that" if line == "/undo" else line)

    async def _send(self, text: str) -> int:
        from punchlist_apps.chat.thread import Thread, thread_title

        if self._thread is None:
            self._thread = await Thread.open(self._client, self._name, title=thread_title(text))
            self._thread.person = self._person
        try:
            self._turn = await self._thread.send(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._answering = asyncio.ensure_future(self._worker.answer(self._thread, self._turn))
        try:
            self._answer = await self._answering
        except asyncio.CancelledError:
            return INTERRUPTED
        finally:
            self._answering = None
        if changes := self._answer.get("receipts"):
            stored.record_tasks(self._thread.list, [one["task"] for one in changes if one.get("task")])
        self._show(self._answer)
        return REFUSED if any(self._answer.get(one) for one in ("asks", "needs", "refused")) else 0

    def _show(self, answer: dict[str, Any]) -> None:
        context = self._context
        if context.args.json:
            assert self._thread is not None
            context.print_json({"thread": self._thread.id, "turn": self._turn, **answer})
            return
        for note in answer.get("notes", ()):
            context.note(f"({note})")
        proof = _receipts(answer) if context.style.terminal else ()
        context.print_lines(
            context.style.paint("dim", f"  {line}") for line in (*map(safe, answer.get("about", ())), *proof)
        )
        context.print_lines(safe_block(str(answer.get("text", ""))).splitlines())
        if mark := answer.get("mark"):
            context.print_lines([context.style.paint("dim", f"  {mark}")])

    def _interrupted(self) -> None:
        """Ctrl-C: stop the turn, and the second time leave it to the next process."""
        if self._answering is None:
            os._exit(INTERRUPTED)
        if self._turn and self._thread is not None and not self._answer.get(_STOPPED):
            self._answer = {_STOPPED: True}
            self._stopping = asyncio.ensure_future(self._thread.stop(self._turn))
        else:
            self._answering.cancel()


def _receipts(answer: dict[str, Any]) -> list[str]:
    receipts: Iterable[dict[str, Any]] = answer.get("receipts", ())
    lines: list[str] = []
    for one in receipts:
        task = f" #{one['task']} {safe(str(one.get('title', '')))}".rstrip() if one.get("task") else ""
        lines.append(f"✓ {one['type']}{task} (seq {one['seq']})")
    return lines

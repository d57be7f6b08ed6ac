"""`punch chat`: change the list with sentences in plain language. Replies refer to events in the log as evidence."""

import asyncio
import os
import re
import shlex
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
                ("text",), "the message (default: read lines from standard input)", {"metavar": "TEXT", "nargs": "*"}
            ),
            value("--thread", text="continue this thread (default: the latest one about the list)", metavar="ID"),
            flag("--new", text="start a new thread"),
            flag("--threads", text="list the threads about the list, and exit"),
            flag("--stop", text="stop the current turn, in any process, and exit"),
            value("--model", metavar="NAME", text="use this model (default: PUNCHLIST_CHAT_MODEL)"),
            value(
                "--base-url",
                text="base URL of the model, such as http://127.0.0.1:11434/v1 (default: PUNCHLIST_CHAT_BASE_URL)",
                metavar="URL",
            ),
            choice(
                "--api",
                text="use the Chat Completions API (chat, the default), the Agents SDK or OpenAI's Responses API",
                choices=("chat", "sdk", "responses"),
            ),
            flag("--rules", text="use no model, even if one is configured"),
            flag("--usage", text="show the tokens used by models on this list, and exit"),
            flag("--verbose", text="print the agent's tools, calls and results to standard error"),
            value("--user", text="chat as this user about this user's lists", metavar="NAME"),
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

_SLASH_COMMANDS = {
    "/help": "show this; “help” shows examples of messages",
    "/why": "show the changes made by the last answer",
    "/undo": "undo the last change",
    "/new": "start a new thread",
    "/quit": "quit, as do /exit, quit, exit, an empty line at the prompt and Ctrl-D",
}
"""Command that is entered alone on a line → its help text."""
_SLASH_COMMAND = re.compile(r"/[a-z]+")
_QUIT = frozenset({"/quit", "/exit", "quit", "exit"})

_STOPPED = "stopped"
_HELLO = "Type a request, such as: add buy milk. “help” shows more; an empty line or Ctrl-D quits."


def run_chat(context: Context) -> int:
    """Send messages and print replies. Return exit code 1 if a request was rejected or a question is open."""
    args = context.args
    if (args.threads or args.stop or args.usage) and (args.text or args.new):
        raise UsageError("--threads, --stop and --usage can't be combined with a message or --new; leave these out")
    if args.new and args.thread:
        raise UsageError("--new and --thread can't be combined; leave one out")
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
        thread = await _find_thread(context, client, name)
        if args.stop:
            stopped = thread is not None and await thread.stop()
            return context.answer({"stopped": stopped}, ["stopped" if stopped else "no turn is running"])
        if args.usage:
            return await _show_usage(context, client, name)
        settings, model = _build_model(context)
        worker = Worker(model, limits=Limits(settings.turn_s, settings.max_turn_tokens, settings.max_day_tokens))
        return await _Chat(context, client, name, thread, worker).run()


def _build_model(context: Context) -> "tuple[ChatSettings, Model | None]":
    """Return the configured model; None if no model is configured or with `--rules`."""
    from punchlist_apps.chat.settings import BadSettings, ChatSettings, build_model, load_settings

    args = context.args
    if args.rules:
        return ChatSettings(), None
    try:
        settings = load_settings(os.environ, model=args.model, base_url=args.base_url, api=args.api)
        return settings, build_model(settings, os.environ)
    except BadSettings as error:
        raise UsageError(str(error)) from None


async def _show_usage(context: Context, client: "AsyncClient", name: str) -> int:
    from punchlist_apps.chat.usage import read_usage

    days = await read_usage(client, name)
    lines = [f"{day}  {tokens['input']:>10,} in  {tokens['output']:>10,} out" for day, tokens in sorted(days.items())]
    return context.answer(days, lines or ["no model was used on this list"])


async def _show_threads(context: Context, client: "AsyncClient", name: str) -> int:
    import msgspec

    from punchlist_apps.chat.thread import Thread

    threads = await Thread.find_all(client, name)
    lines = [f"{thread.conversation}  {safe(thread.title) or '(empty)'}" for thread in threads]
    return context.answer(
        msgspec.to_builtins(threads), lines or [f"no thread about {safe(name)} yet; to start one: punch chat"]
    )


async def _find_thread(context: Context, client: "AsyncClient", name: str) -> "Thread | None":
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
    threads = await Thread.find_all(client, name)
    return Thread.from_conversation(client, threads[0]) if threads else None


class _Chat:
    """The state of one run of the command."""

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
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._on_interrupt)
        if self._thread is not None:
            self._thread.person = self._person
            await self._worker.settle(self._thread)
        if self._context.args.text:
            return await self._send(" ".join(self._context.args.text))
        if self._tty:
            self._context.print_lines([_HELLO])
        code = 0
        while (line := await self._read_line()) is not None:
            code = await self._handle_line(line)
        return code if not self._tty else 0

    async def _read_line(self) -> str | None:
        if self._tty:
            sys.stdout.write("› ")
            sys.stdout.flush()
        line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        text = line.strip()
        if not line or text in _QUIT or (self._tty and not text):
            return None
        return text

    async def _handle_line(self, line: str) -> int:
        if not line:
            return 0
        if line == "/new":
            self._thread = None
            return 0
        if line == "/why":
            self._context.print_lines(_format_receipts(self._answer) or ["the last answer changed nothing"])
            return 0
        if _SLASH_COMMAND.fullmatch(line) and line != "/undo":
            help_lines = [f"  {name:<6}  {text}" for name, text in _SLASH_COMMANDS.items()]
            self._context.print_lines(
                help_lines if line == "/help" else [f"Unknown command {line}. Commands:", *help_lines]
            )
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
            stored.record_tasks(self._thread.list, [change["task"] for change in changes if change.get("task")])
        self._show(self._answer)
        if elsewhere := self._answer.get("elsewhere"):
            self._context.note(f"ask there: {shlex.join(['punch', 'chat', '-c', elsewhere, text])}")
        return REFUSED if any(self._answer.get(name) for name in ("asks", "needs", "refused")) else 0

    def _show(self, answer: dict[str, Any]) -> None:
        context = self._context
        if context.args.json:
            assert self._thread is not None
            context.print_json({"thread": self._thread.id, "turn": self._turn, **answer})
            return
        for note in answer.get("notes", ()):
            context.note(f"({note})")
        proof = _format_receipts(answer) if context.style.terminal else ()
        context.print_lines(
            context.style.paint("dim", f"  {line}") for line in (*map(safe, answer.get("about", ())), *proof)
        )
        context.print_lines(safe_block(str(answer.get("text", ""))).splitlines())
        if mark := answer.get("mark"):
            context.print_lines([context.style.paint("dim", f"  {mark}")])

    def _on_interrupt(self) -> None:
        """Stop the turn on the first Ctrl-C. On the second, exit and leave the turn to the next process."""
        if self._answering is None:
            os._exit(INTERRUPTED)
        if self._turn and self._thread is not None and not self._answer.get(_STOPPED):
            self._answer = {_STOPPED: True}
            self._stopping = asyncio.ensure_future(self._thread.stop(self._turn))
        else:
            self._answering.cancel()


def _format_receipts(answer: dict[str, Any]) -> list[str]:
    receipts: Iterable[dict[str, Any]] = answer.get("receipts", ())
    return [f"✓ {safe(str(receipt.get('text') or receipt['type']))} (seq {receipt['seq']})" for receipt in receipts]

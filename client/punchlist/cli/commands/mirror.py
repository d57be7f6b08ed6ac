"""`punch mirror`: which directories mirror what, and the process in the foreground that keeps them so."""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from punchlist.cli import stored
from punchlist.cli.argument_types import milliseconds
from punchlist.cli.arguments import Argument, Usage, choice, flag, value
from punchlist.cli.context import Context
from punchlist.cli.exit_codes import CONFIGURATION, LOST_RACE, REFUSED
from punchlist.cli.failure import UsageError, show_error
from punchlist.options import Options
from punchlist.taskfiles.config import Config, ConfigError, Entry
from punchlist.taskfiles.report import Problem, Report, status
from punchlist.text import safe

COMMANDS = {
    "mirror": Usage(
        (
            choice("action", text="what to do", choices=("add", "list", "remove", "run")),
            Argument(
                ("directory",), "where the files are, or a Markdown file", {"metavar": "PATH", "nargs": "?"}, "file"
            ),
            flag("--all", text="mirror all lists, those of the future too"),
            choice(
                "--format",
                text="checklist: one file for each list; claude: one for each task",
                choices=("checklist", "claude"),
            ),
            value("--idle", text="with run: end after this long without a change", metavar="TIME", type=milliseconds),
        ),
        (
            "punch mirror add PLAN.md",
            "punch mirror add . -c website",
            "punch mirror add ~/tasks --all",
            "punch mirror run",
            "punch mirror list",
        ),
    ),
}

if TYPE_CHECKING:
    import anyio

    from punchlist.mirror.inbox import Inbox

_IDLE_LOOK_S = 5.0
_MARKDOWN = (".md", ".markdown")


def run_mirror(context: Context) -> int:
    """Add, list, remove, or run."""
    actions = {"add": _add, "list": _list, "remove": _remove, "run": _run}
    try:
        return actions[context.args.action](context)
    except ConfigError as error:
        show_error("configuration", str(error), "put it right, or remove it: it is written by punch mirror add")
        return CONFIGURATION


def _add(context: Context) -> int:
    args = context.args
    directory = _directory(context)
    if directory.lower().endswith(_MARKDOWN) and os.path.isfile(directory):
        return _add_plan(context, directory)
    if directory.lower().endswith(_MARKDOWN) and not os.path.exists(directory):
        show_error("file", f"there is no file {directory}", f"punch export {directory} writes the list to it first")
        return REFUSED
    if not os.path.isdir(directory):
        show_error("file", f"{directory} is not a directory", f"mkdir {directory}")
        return REFUSED
    if args.all and args.conversation:
        raise UsageError("name one list, or --all")
    names = None if args.all else (context.conversation,)
    entry = Entry(directory, args.format or "checklist", names)
    entries = Config(context.target.data_dir).add(entry)
    stored.record(f"the mirror in {directory}")
    what = "all lists" if names is None else context.conversation
    lines = [f"{safe(directory)} mirrors {what} ({entry.format})", "  keep it going: punch mirror run"]
    return context.answer({"mirrors": entries}, lines)


def _add_plan(context: Context, path: str) -> int:
    if context.args.all or context.args.format:
        raise UsageError("a Markdown file has the tasks of one list; leave --all and --format out")
    Config(context.target.data_dir).set_plan(path, context.conversation)
    stored.record(f"the mirror in {path}")
    lines = [
        f"{safe(path)} and the list {safe(context.conversation)} are kept in step",
        "  keep it going: punch mirror run",
    ]
    return context.answer({"plan": path, "conversation": context.conversation}, lines)


def _list(context: Context) -> int:
    entries = Config(context.target.data_dir).load()
    found = status(context.target.data_dir)
    problems = found.problems if found else ()
    lines = [f"{safe(one.directory)}  {one.format}  {', '.join(one.conversations or ('all',))}" for one in entries]
    inbound = Config(context.target.data_dir).inbound()
    lines += [f"{safe(one)}  claude, one way in" for one in inbound]
    plans = Config(context.target.data_dir).plans()
    lines += [f"{safe(one.path)}  markdown  {safe(one.conversation)}" for one in plans]
    lines += [f"  {one.kind}: {safe(one.file)}: {safe(one.text)}" for one in problems]
    value = {"mirrors": entries, "inbound": inbound, "plans": plans, "problems": problems}
    return context.answer(value, lines or ["nothing is mirrored"])


def _remove(context: Context) -> int:
    directory = _directory(context)
    if Config(context.target.data_dir).set_plan(directory, None):
        stored.record(f"the end of the mirror in {directory}")
        return context.answer({"removed": directory}, [f"{safe(directory)} is no longer kept up; it stays as it is"])
    if not Config(context.target.data_dir).remove(directory, context.args.conversation):
        show_error("not_found", f"{directory} mirrors no such thing", "punch mirror list shows what there is")
        return REFUSED
    stored.record(f"the end of the mirror in {directory}")
    return context.answer({"removed": directory}, [f"{safe(directory)} is no longer kept up; its files stay"])


def _run(context: Context) -> int:
    import anyio

    return anyio.run(_running, context)


async def _running(context: Context) -> int:
    import anyio

    from punchlist.aio import connect_async
    from punchlist.mirror.inbox import Inbox
    from punchlist.mirror.plans import Plans
    from punchlist.mirror.runner import AlreadyRunning, Runner

    target = context.target
    options: Options = {"name": "punch mirror", "autostart": target.autostart}
    options |= target.options
    async with connect_async(**options) as client:
        report = Report(target.data_dir, _log)
        runner = Runner(client, target.data_dir, report)
        inbox = Inbox(client, target.data_dir, report)
        try:
            lock = runner.acquire()
        except AlreadyRunning as error:
            show_error("already_running", str(error), "punch mirror list shows what it mirrors")
            return LOST_RACE
        with lock:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_signal, group.cancel_scope)
                if context.args.idle is not None:
                    group.start_soon(_until_idle, group.cancel_scope, context.args.idle / 1000, inbox, target.data_dir)
                group.start_soon(inbox.run)
                group.start_soon(Plans(client, target.data_dir, report).run)
                await runner.run()
    return 0


async def _until_signal(scope: "anyio.CancelScope") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _until_idle(scope: "anyio.CancelScope", idle_s: float, inbox: "Inbox", data_dir: str) -> None:
    """End a mirror that nobody needs: nothing changed for this long, and no files but Claude Code's are kept up."""
    import anyio

    while Config(data_dir).load() or Config(data_dir).plans() or time.monotonic() < inbox.active_at + idle_s:  # noqa: ASYNC110 - time alone counts
        await anyio.sleep(min(idle_s, _IDLE_LOOK_S))
    scope.cancel()


def _log(problem: Problem) -> None:
    """One line for each problem, on standard error."""
    stamp = time.strftime("%H:%M:%S")
    print(f"{stamp} {problem.kind}: {safe(problem.file)}: {safe(problem.text)}", file=sys.stderr, flush=True)


def _directory(context: Context) -> str:
    if not context.args.directory:
        raise UsageError("name a directory or a Markdown file")
    return os.path.realpath(os.path.expanduser(context.args.directory))

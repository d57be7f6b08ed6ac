"""Read-only commands: list, show, list all, daemon status."""

import re
import time
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from punchlist.base.text import safe
from punchlist_apps.cli.calling import warm_process
from punchlist_apps.cli.calling.context import Context, parse_task_id
from punchlist_apps.cli.parsing.arguments import TASK, Usage, choice, flag, owner_option, value
from punchlist_apps.cli.parsing.saved_filters import SORTS, load_filter
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.cli.printing.summaries import count_errors
from punchlist_apps.common.terminal.argument_types import parse_history_point, parse_positive, parse_time
from punchlist_apps.common.terminal.render import (
    format_details,
    format_header,
    format_list,
    format_need,
    format_progress,
    format_shared_note,
    format_short_duration,
    format_status_line,
)
from punchlist_apps.common.terminal.style import Style
from punchlist_schemas.directory import OUTSIDE
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.rendezvous import status_path
from punchlist_schemas.vocabulary import STATUSES

COMMANDS = {
    "list": Usage(
        (
            flag("-a", "--all", text="also show old finished tasks of a long list"),
            choice(
                "-s", "--status", text="show only tasks with this status; repeatable", choices=STATUSES, action="append"
            ),
            owner_option("show only this owner's tasks: a name, its beginning or #3"),
            flag("--ready", text="show only tasks that can be started now"),
            value("--label", text="show only tasks with this label; repeatable", metavar="LABEL", action="append"),
            value("--parent", text="show only the subtasks of this task", metavar="ID"),
            value(
                "--due",
                text="show only tasks due by the end of this day, or before this time: today, friday, 7d",
                metavar="TIME",
                type=parse_time,
            ),
            value("--text", text="show only tasks with these words in title, description, labels or notes"),
            choice("--sort", text="sort by this instead of the list's own order", choices=SORTS),
            value("-f", "--filter", text="use the filter that the project file saves under this name", metavar="NAME"),
            value("-n", "--limit", text="show at most N tasks", metavar="N", type=parse_positive),
            flag("--needs", text="show what needs someone in all lists: approvals, failures and checks"),
            flag("--line", text="print one line for a shell prompt; print nothing if no daemon runs"),
            value(
                "--at",
                text='show the list as it was at a version or a time, such as 12, "10 min ago" or yesterday',
                metavar="POINT",
                type=parse_history_point,
            ),
        ),
        (
            "punch list",
            "punch list --ready",
            "punch list --label ops --due 7d --sort due",
            "punch list --filter soon",
            "punch list --needs",
            "punch list --at 12",
            'punch list --at "10 min ago"',
            "punch list -c website --json",
        ),
    ),
    "show": Usage((TASK,), ("punch show 3",)),
    "all": Usage(
        (
            value("-q", "--query", text="show only lists with this text in their id or title"),
            flag("--active", text="show only lists with unfinished tasks"),
            value("-n", "--limit", text="show at most N lists (default: 100)", metavar="N", type=parse_positive),
        ),
        ("punch list all --active", "punch lists -q web"),
    ),
    "status": Usage(
        (flag("--line", text="print one line for a shell prompt, from the status file"),),
        ("punch daemon status",),
    ),
}

_KIB = 1024
_MAX_STATUS = 200


def run_alone(context: Context) -> int:
    """Handle `punch` without a command: show the list and a line of advice."""
    from punchlist_apps.cli.printing.next_step import format_next_step

    result = context.read("task.list")
    tasks, style = result["tasks"], context.style
    note = format_shared_note(result.get("shared")) or context.find_deletion(result)
    lines = format_list(
        result.get("name", context.conversation), tasks, result["counts"], style, note=note, folded=style.terminal
    )
    return context.answer(
        result,
        [
            *lines,
            style.paint(
                "dim",
                format_next_step(tasks, context.read("task.explain", owner=context.owner), context.owner, style.now),
            ),
        ],
    )


def run_list(context: Context) -> int:
    args = context.args
    is_selective = args.all or args.filter or args.at or _has_filters(args)
    if args.line:
        if args.json or args.needs or is_selective:
            raise UsageError("--line can be combined only with -c and --socket; leave the other options out")
        return _show_prompt(context)
    if args.needs:
        if is_selective:
            raise UsageError("--needs can be combined only with -c and --json; leave the other options out")
        return _show_needs(context)
    owners = None
    if args.owner is not None:
        from punchlist_apps.cli.calling.names import resolve_names

        owners = resolve_names(context, args.owner)
    if args.filter is not None:
        for name, saved_value in load_filter(args.filter).items():
            setattr(args, name, getattr(args, name) or saved_value)
        owners = owners or args.owner
    at = None
    if args.at is not None:
        from punchlist_apps.cli.calling.events import find_version

        at = find_version(context, args.at)
    # Sort on the client, because the daemon doesn't know the user's time zone, which determines when a day ends.
    by_due = args.sort == "due"
    result = context.read(
        "task.list",
        status=args.status,
        owner=owners,
        ready=args.ready or None,
        label=args.label,
        parent=parse_task_id(args.parent),
        text=args.text,
        sort=None if by_due else args.sort,
        limit=None if by_due else args.limit,
        at_version=at,
        **(args.due.is_due_by() if args.due else {}),
    )
    if by_due:
        from punchlist.base.dates import due_at

        result["tasks"] = sorted(result["tasks"], key=due_at)[: args.limit]
    filtered = _has_filters(args)
    folded = context.style.terminal and not (args.all or filtered)
    style = context.style
    if at is not None:
        style.now = 0
    tasks, total = result["tasks"], result.get("total", 0)
    note = f"at version {at}" if at is not None else f"{len(tasks)} of {total}" if len(tasks) < total else ""
    if not result["version"] and at is None and context.conversation != OUTSIDE:
        note = "not used yet"
    note = (
        note
        or format_shared_note(result.get("shared"))
        or ("" if filtered or at is not None else context.find_deletion(result))
    )
    lines = format_list(
        result.get("name") or (context.conversation if at is None else context.name),
        tasks,
        result["counts"],
        style,
        note=note,
        folded=folded,
        flat=bool(args.sort),
    )
    return context.answer(result, lines)


def _has_filters(args: Namespace) -> bool:
    return any(
        (args.sort, args.status, args.owner, args.ready, args.label, args.parent, args.due, args.text, args.limit)
    )


def _show_prompt(context: Context) -> int:
    """Print one line about the list for a shell prompt, or nothing after a failure. Starts no daemon."""
    try:
        name = context.find_conversation()
    except DirectoryError:
        return 0
    result = context.peek("conversation.get", {"conversation": name}) or {}
    summary = result.get("conversation", {})
    is_used = bool(summary.get("version"))
    return context.answer(
        None, [format_header(result.get("name", name), summary["counts"], Style())] if is_used else []
    )


def _show_needs(context: Context) -> int:
    """Show the tasks of all lists, or of the one given by `-c`, that need someone."""
    if context.args.conversation is None:
        pages = list(context.list_pages())
        cards = [card for page in pages for card in page["conversations"] if card.get("needs")]
        names = {id: name for page in pages for id, name in page.get("names", {}).items()}
    else:
        card = context.call("conversation.get", conversation=context.existing_conversation)
        cards, names = [card["conversation"]], {card["conversation"]["conversation"]: card.get("name", "")}
    needs: list[dict[str, Any]] = []
    lines: list[str] = []
    for card in cards:
        id, shown = card["conversation"], card.get("needs", ())
        name = names.get(id) or id
        needs += [{"conversation": id, "name": name, **need} for need in shown]
        lines += [context.style.paint("title", safe(name))] if shown else []
        lines += [line for need in shown for line in format_need(need, context.style)]
        if (
            more := card["counts"]["failed"] + card.get("waiting", 0) - sum(need["kind"] != "check" for need in shown)
        ) > 0:
            lines.append(context.style.paint("dim", f"  and {more} more: punch list -c {safe(name)}"))
    return context.answer({"needs": needs}, lines or ["no task needs anyone"])


def run_show(context: Context) -> int:
    result = context.read("task.get", task=parse_task_id(context.args.task))
    return context.answer(result, format_details(result["task"], context.style, result.get("path", ())))


def run_all(context: Context) -> int:
    args = context.args
    result = context.call("conversation.list", query=args.query, active=args.active or None, limit=args.limit)
    names = result.get("names", {})
    lines = [_format_list(card, names, context.style) for card in result["conversations"]] or ["no lists"]
    if result.get("next_cursor"):
        lines.append(context.style.paint("dim", "  more lists: --limit, --query"))
    return context.answer(result, lines)


def run_status(context: Context) -> int:
    """Show the daemon's status, or one line for a shell prompt."""
    if context.args.line:
        if not context.args.json and (line := _read_status_file(context)):
            return context.answer(None, [line])
        context.target.fail_fast()
        counts = _sum_counts(context)
        return context.answer(counts, [format_status_line(counts)])
    result = context.call("daemon.status") | {"worker": _read_worker(context), "warm": warm_process.find_processes()}
    return context.answer(result, _format_status(result, context.style))


def _read_worker(context: Context) -> dict[str, Any] | None:
    """Return the status of the MCP worker, or None if none is running."""
    from punchlist_apps.relay import control
    from punchlist_apps.relay.dialing import find_path
    from punchlist_apps.relay.relay import Unavailable

    try:
        status = control.read_status(find_path(context.target.socket, context.target.data_dir))
    except Unavailable as error:
        return {"state": "unavailable", "reason": str(error)}
    return status and status._asdict()


def _format_list(card: dict[str, Any], names: dict[str, str], style: Style) -> str:
    counts = card["counts"]
    id: str = card["conversation"]
    parts = [f"{format_progress(counts):>7}  {safe(names.get(id, id))}"]
    if card.get("title"):
        parts.append(style.paint("dim", safe(card["title"])))
    if note := format_shared_note(card.get("shared")):
        parts.append(style.paint("paused", note))
    if waiting := card.get("waiting"):
        parts.append(style.paint("paused", f"{waiting} {'waits' if waiting == 1 else 'wait'} for a yes"))
    if counts.get("failed"):
        parts.append(style.paint("failed", f"{counts['failed']} failed"))
    if counts.get("in_progress"):
        parts.append(style.paint("in_progress", f"{style.glyphs['in_progress']} {counts['in_progress']}"))
    if style.now:
        parts.append(style.paint("dim", f"{format_short_duration(style.now - card['updated_at'])} ago"))
    return "  ".join(parts)


def _read_status_file(context: Context) -> str:
    """Return the daemon's line for shell prompts, or an empty string if it is missing or malformed."""
    try:
        with open(status_path(context.target.socket), encoding="utf-8") as file:
            line = file.read(_MAX_STATUS)
    except (OSError, UnicodeError):
        return ""
    # In a shared directory, another user may have written the file, so print only the expected format.
    return line.removesuffix("\n") if re.fullmatch(r"\d+ open, \d+ in progress\n", line, re.ASCII) else ""


def _sum_counts(context: Context) -> dict[str, int]:
    totals: dict[str, int] = {}
    for page in context.list_pages(active=True):
        for card in page["conversations"]:
            for name, count in card["counts"].items():
                totals[name] = totals.get(name, 0) + count
    return totals


def _format_status(result: dict[str, Any], style: Style) -> Iterable[str]:
    commits = result["commits"]
    facts = (
        (
            "daemon",
            f"punchlistd {result['version']}, pid {result['pid']}, up {format_short_duration(result['uptime_ms'])}",
        ),
        ("socket", result["socket"]),
        ("data", result["data_dir"]),
        (
            "log",
            f"{result['seq']} events, {_format_size(result['log_bytes'])} + {_format_size(result['wal_bytes'])} WAL",
        ),
        ("commits", f"{commits['count']}, p50 {_format_ms(commits['p50_us'])}, p99 {_format_ms(commits['p99_us'])}"),
        ("calls", f"{result['calls']}, {result['refused']} rejected"),
        ("loaded", f"{result['conversations_loaded']} lists"),
        ("runs on", f"Python {result['python']}, SQLite {result['sqlite']}, {result['loop']}"),
    )
    for name, fact in facts:
        yield f"{style.paint('dim', f'{name:>8}')}  {safe(str(fact))}"
    if result["worker"] is not None:
        yield f"{style.paint('dim', '  worker')}  {safe(_format_worker(result['worker']))}"
    for pid in result["warm"]:
        yield f"{style.paint('dim', '    warm')}  pid {pid}"
    for client in result["clients"]:
        yield f"{style.paint('dim', '  client')}  {safe(client['name'])} (pid {client['pid']})"
    for watch in result["subscriptions"]:
        where = safe(watch.get("conversation") or "all lists")
        yield f"{style.paint('dim', ' watches')}  {safe(watch['client'])}: {where}, {watch['view']}, lag {watch['lag']}"
    for error in count_errors(result.get("last_errors", ())):
        yield style.paint("fail", f"   error  {safe(error)}")


def _format_worker(worker: dict[str, Any]) -> str:
    if worker["state"] == "running":
        up = format_short_duration(max(0, int(time.time() * 1000) - worker["since"]))
        sessions = f"{worker['sessions']} session{'' if worker['sessions'] == 1 else 's'}"
        return f"{worker['build']}, pid {worker['pid']}, up {up}, {sessions}"
    if worker["state"] == "unavailable":
        return worker["reason"]
    return f"{worker['state']}, pid {worker['pid']}; to have the next session start another: kill -9 {worker['pid']}"


def _format_size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB or unit == "GiB":
            break
        value /= _KIB
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _format_ms(us: int) -> str:
    return f"{us / 1000:.2f} ms"

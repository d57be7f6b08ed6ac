"""Commands that only read: list, show, conversations, status."""

from collections.abc import Iterable
from typing import Any

from punchlist.cli.context import Context, one_id
from punchlist.cli.look import Look
from punchlist.cli.render import detail_lines, list_lines, progress, since, status_line, told_once
from punchlist.text import safe
from punchlist_schemas.directory import OUTSIDE

_PAGE = 1000
_KIB = 1024


def run_list(context: Context) -> int:
    """Show the list, filtered, now or at a version."""
    args = context.args
    at = args.at
    result = context.ask(
        "task.list",
        status=args.status,
        owner=args.owner,
        ready=args.ready or None,
        limit=args.limit,
        at_version=at,
    )
    filtered = bool(args.status or args.owner or args.ready or args.limit)
    folded = context.look.terminal and not (args.all or filtered)
    look = context.look
    if at is not None:
        look.now = 0
    tasks, total = result["tasks"], result.get("total", 0)
    note = f"at version {at}" if at is not None else f"{len(tasks)} of {total}" if len(tasks) < total else ""
    if not result["version"] and at is None and context.conversation != OUTSIDE:
        note = "not used yet"
    lines = list_lines(context.conversation, tasks, result["counts"], look, note=note, folded=folded)
    return context.answer(result, lines)


def run_show(context: Context) -> int:
    """Show one task."""
    result = context.ask("task.get", task=one_id(context.args.task))
    return context.answer(result, detail_lines(result["task"], context.look))


def run_conversations(context: Context) -> int:
    """Show the lists there are."""
    args = context.args
    result = context.call("conversation.list", query=args.query, active=args.active or None, limit=args.limit)
    found = result["conversations"]
    lines = [_conversation_line(one, context.look) for one in found] or ["no conversations"]
    if result.get("next_cursor"):
        lines.append(context.look.paint("dim", "  there are more: --limit, --query"))
    return context.answer(result, lines)


def run_status(context: Context) -> int:
    """Show how the daemon is, or one line for a prompt."""
    if context.args.line:
        counts = _all_counts(context)
        return context.answer(counts, [status_line(counts)])
    result = context.call("daemon.status")
    return context.answer(result, _status_lines(result, context.look))


def _conversation_line(one: dict[str, Any], look: Look) -> str:
    counts = one["counts"]
    parts = [f"{progress(counts):>7}  {safe(one['conversation'])}"]
    if one.get("title"):
        parts.append(look.paint("dim", safe(one["title"])))
    if counts.get("in_progress"):
        parts.append(look.paint("in_progress", f"{look.glyphs['in_progress']} {counts['in_progress']}"))
    if look.now:
        parts.append(look.paint("dim", f"{since(look.now - one['updated_at'])} ago"))
    return "  ".join(parts)


def _all_counts(context: Context) -> dict[str, int]:
    totals: dict[str, int] = {}
    cursor: str | None = None
    while True:
        page = context.call("conversation.list", limit=_PAGE, active=True, cursor=cursor)
        for one in page["conversations"]:
            for name, count in one["counts"].items():
                totals[name] = totals.get(name, 0) + count
        cursor = page.get("next_cursor")
        if not cursor:
            return totals


def _status_lines(result: dict[str, Any], look: Look) -> Iterable[str]:
    commits = result["commits"]
    facts = (
        ("daemon", f"punchlistd {result['version']}, pid {result['pid']}, up {since(result['uptime_ms'])}"),
        ("socket", result["socket"]),
        ("data", result["data_dir"]),
        ("log", f"{result['seq']} events, {_size(result['log_bytes'])} + {_size(result['wal_bytes'])} WAL"),
        ("commits", f"{commits['count']}, p50 {_ms(commits['p50_us'])}, p99 {_ms(commits['p99_us'])}"),
        ("calls", f"{result['calls']}, {result['refused']} refused"),
        ("loaded", f"{result['conversations_loaded']} conversations"),
        ("runs on", f"Python {result['python']}, SQLite {result['sqlite']}, {result['loop']}"),
    )
    for name, value in facts:
        yield f"{look.paint('dim', f'{name:>8}')}  {safe(str(value))}"
    for client in result["clients"]:
        yield f"{look.paint('dim', '  client')}  {safe(client['name'])} (pid {client['pid']})"
    for one in result["subscriptions"]:
        where = safe(one.get("conversation") or "all conversations")
        yield f"{look.paint('dim', ' watches')}  {safe(one['client'])}: {where}, {one['view']}, lag {one['lag']}"
    for error in told_once(result.get("last_errors", ())):
        yield look.paint("fail", f"   error  {safe(error)}")


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB or unit == "GiB":
            break
        value /= _KIB
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _ms(us: int) -> str:
    return f"{us / 1000:.2f} ms"

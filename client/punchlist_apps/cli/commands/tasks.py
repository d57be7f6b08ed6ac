"""Commands that change the list: add, edit, note, move, rm, list clear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from punchlist.base.text import one_line, safe
from punchlist_apps.cli.calling.context import Context, parse_loose_value, parse_task_id, parse_task_ids
from punchlist_apps.cli.calling.names import is_known_name, resolve_new_name
from punchlist_apps.cli.parsing.arguments import TASK, TASKS, YES, Argument, Usage, choice, flag, owner_option, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common.terminal.argument_types import parse_estimate, parse_time
from punchlist_apps.common.terminal.render import format_task, truncate
from punchlist_schemas.vocabulary import PRIORITIES, STATUSES, is_heading

_MEMBERS = (
    value("-d", "--description", text="describe the task in more detail"),
    choice("-p", "--priority", text="set the priority", choices=PRIORITIES),
    owner_option("reserve it for this owner, who alone can then claim it"),
    value("--active-form", text='show this text while it is in progress, such as "Writing the lexer"'),
    value("--parent", text="make it a subtask of this task", metavar="ID"),
    value("--label", text="add this label; repeatable", metavar="LABEL", action="append"),
    value(
        "--due",
        text="set the due time, such as 2026-12-24, friday, 3d or 'tomorrow 17:00'",
        metavar="TIME",
        type=parse_time,
    ),
    value("--after-date", text="defer it until this day or time", metavar="TIME", type=parse_time),
    value("--estimate", text="estimate the work, such as 30m or 4h", metavar="TIME", type=parse_estimate),
    value(
        "--link",
        text="add a link: url=…, path=src/a.py:12, commit=…, discovered-from=3 or relates-to=4; repeatable",
        metavar="KIND=TARGET",
        action="append",
    ),
    value(
        "--gate",
        text="require approval or a check before completion: yes, yes:NAME, check:NAME or check:NAME,yes",
        metavar="GATE",
    ),
    value("--meta", text="add metadata; the value is JSON or a word; repeatable", metavar="KEY=VALUE", action="append"),
)
_PLACES = (
    value("--before", text="place it before this task", metavar="ID"),
    value("--after", text="place it after this task", metavar="ID"),
)

COMMANDS = {
    "add": Usage(
        (
            Argument(("title",), "what to do, in a few words", {"nargs": "+"}),
            *_MEMBERS,
            value("-b", "--blocked-by", text="wait for this task; repeatable", metavar="ID", action="append"),
            value("--blocks", text="make this task wait for it; repeatable", metavar="ID", action="append"),
            choice("--status", text="set the status (default: pending)", choices=STATUSES),
            *_PLACES,
        ),
        (
            "punch add Write the lexer",
            "punch add Renew the certificate --label ops --due 2026-12-24 --after-date 3d",
            'punch add "Deploy" --gate check:tests,yes',
            'punch add "Ship it" --priority high --blocked-by 1 --blocked-by 2',
        ),
    ),
    "edit": Usage(
        (
            TASK,
            value("-t", "--title", text="what to do, in a few words"),
            *_MEMBERS,
            value("-b", "--blocked-by", text="also wait for this task; repeatable", metavar="ID", action="append"),
            value("--unlabel", text="remove this label; repeatable", metavar="LABEL", action="append"),
            value("--unblock-from", text="no longer wait for this task; repeatable", metavar="ID", action="append"),
        ),
        ('punch edit 3 --title "Write the parser" --owner ""', "punch edit 3 --blocked-by 2 --meta pr=117"),
    ),
    "assign": Usage(
        (
            Argument(
                ("tasks",),
                'the tasks, then the owner: a name, a host for any of its sessions, or "#3" for the owner of task 3',
                {"metavar": "ID", "nargs": "+"},
                "name",
            ),
            flag("--nobody", text="clear the owner, so that anyone can claim them; takes no name"),
        ),
        ("punch assign 3 ann", "punch assign 3 4 claude-code", "punch assign 3-7 --nobody"),
    ),
    "note": Usage(
        (TASK, Argument(("text",), "the text of the note", {"nargs": "+"})),
        ('punch note 3 "the vendor answers on Monday"',),
    ),
    "move": Usage(
        (TASK, *_PLACES, flag("--to-end", text="place it at the end of the list")),
        ("punch move 5 --before 2", "punch move 5 --to-end"),
    ),
    "rm": Usage((TASKS, YES), ("punch rm 3", "punch rm 4 5 --yes")),
    "clear": Usage((YES,), ("punch list clear --yes",)),
}

_TEXTS = ("description", "priority", "owner", "active_form")


def run_add(context: Context) -> int:
    args = context.args
    if not any(word.strip() for word in args.title):
        raise UsageError("the title is empty; say what to do: punch add Write the lexer")
    if _are_several_titles(args.title):
        import shlex

        first, whole = shlex.quote(args.title[0]), shlex.quote(" ".join(args.title))
        raise UsageError(
            f"these are {len(args.title)} titles; add one task per command: punch add {first}; or quote a single title:"
            f" punch add {whole}"
        )
    _resolve_owner(context)
    result = context.change(
        "task.add",
        title=" ".join(args.title),
        parent=parse_task_id(args.parent),
        metadata=_parse_metadata(args.meta),
        labels=args.label,
        links=_parse_links(args.link),
        estimate_ms=args.estimate or None,
        gate=_parse_gate(args.gate) if args.gate else None,
        blocked_by=parse_task_ids(args.blocked_by),
        blocks=parse_task_ids(args.blocks),
        status=args.status,
        before=parse_task_id(args.before),
        after=parse_task_id(args.after),
        **{name: getattr(args, name) for name in _TEXTS},
        **_build_times(args),
    )
    return context.answer(result, format_task(result["task"], context.style))


def _are_several_titles(words: Sequence[str]) -> bool:
    """Return whether the words look like several quoted titles: each contains a space."""
    return len(words) > 1 and all(" " in word.strip() for word in words)


def run_edit(context: Context) -> int:
    args = context.args
    _resolve_owner(context)
    members: dict[str, Any] = {name: getattr(args, name) or None for name in _TEXTS if getattr(args, name) is not None}
    if args.title is not None:
        if not args.title.strip():
            raise UsageError("the title is empty; to delete a task: punch rm ID")
        members["title"] = args.title
    if args.parent is not None:
        members["parent"] = parse_task_id(args.parent) if args.parent.strip() else None
    if args.meta:
        members["metadata"] = _parse_metadata(args.meta)
    members |= _build_times(args)
    if args.estimate is not None:
        members["estimate_ms"] = args.estimate or None
    if args.gate is not None:
        members["gate"] = _parse_gate(args.gate) if args.gate.strip() else None
    lists = {"add_labels": args.label, "remove_labels": args.unlabel, "links": _parse_links(args.link)}
    members |= {name: items for name, items in lists.items() if items is not None}
    members |= {
        name: tasks
        for name, words in (("add_blocked_by", args.blocked_by), ("remove_blocked_by", args.unblock_from))
        if (tasks := parse_task_ids(words))
    }
    if not members:
        raise UsageError("nothing to change; name an option, such as --title TEXT")
    head = {"conversation": context.existing_conversation, "task": parse_task_id(args.task), "actor": context.actor}
    result = context.send("task.edit", {**head, **members})
    return context.answer(result, format_task(result["task"], context.style))


def run_assign(context: Context) -> int:
    args = context.args
    words, name = (args.tasks, "") if args.nobody else (args.tasks[:-1], args.tasks[-1])
    if not (tasks := parse_task_ids(words)) or not (name.strip() or args.nobody):
        raise UsageError(
            "tasks or owner missing; name both: punch assign 3 ann; or clear the owner: punch assign 3 --nobody"
        )
    owner = resolve_new_name(context, name) if name else None
    is_new = owner is not None and owner == name and not is_known_name(context, owner)
    head = {"conversation": context.existing_conversation, "actor": context.actor}
    done = 0
    for task in tasks:
        if error := _find_assignment_error(context, task, name):
            show_error("illegal_transition", *error)
            continue
        result = context.send("task.edit", {**head, "task": task, "owner": owner})
        context.answer(result, format_task(result["task"], context.style))
        done += 1
    if owner is not None and is_new and done:
        context.note(
            f"punch: the name {safe(owner)} has not been used here before, and only this owner can claim the tasks; "
            "see all names: punch who"
        )
    return 0 if done == len(tasks) else REFUSED


def _find_assignment_error(context: Context, task: str, name: str) -> tuple[str, str] | None:
    """Return why a task can't be reserved and what to do instead, or None if it can."""
    current = context.read("task.get", task=task)["task"]
    if current["status"] == "in_progress":
        owner = f" with {current['owner']}" if current.get("owner") else ""
        return f"#{safe(task)} is in progress{owner}", f"free it first: punch reopen {safe(task)}"
    if not name or not is_heading(current.get("metadata")):
        return None
    from shlex import quote

    tasks = context.read("task.list", parent=task, status=["pending", "paused", "failed"])["tasks"]
    children = [safe(child["id"]) for child in tasks if not is_heading(child.get("metadata"))]
    names = ", ".join(f"#{id}" for id in children) or "the tasks below it"
    command = f"punch assign {' '.join(children) or 'ID'} {quote(safe(name))}"
    return f"#{safe(task)} is a heading", f"assign {names}: {command}"


def _resolve_owner(context: Context) -> None:
    if context.args.owner:
        context.args.owner = resolve_new_name(context, context.args.owner)


def run_note(context: Context) -> int:
    args = context.args
    result = context.change("task.note", task=parse_task_id(args.task), text=" ".join(args.text))
    task, note = result["task"], result["task"]["notes"][-1]
    line = f"noted on #{safe(task['id'])} {safe(task['title'])}: {safe(one_line(note['text']))}"
    return context.answer(result, [truncate(line, context.style.width, context.style.glyphs["cut"])])


def run_move(context: Context) -> int:
    args = context.args
    places = {"before": parse_task_id(args.before), "after": parse_task_id(args.after), "to_end": args.to_end or None}
    if sum(place is not None for place in places.values()) != 1:
        raise UsageError("name exactly one place: --before, --after or --to-end")
    result = context.change("task.move", task=parse_task_id(args.task), **places)
    return context.answer(result, format_task(result["task"], context.style))


def run_rm(context: Context) -> int:
    tasks = parse_task_ids(context.args.tasks) or []
    if not context.confirm(f"Delete {', '.join(f'#{safe(task)}' for task in tasks)}?"):
        return _report_no_change(context)
    result = context.change("task.delete", tasks=tasks)
    deleted = ", ".join(f"#{safe(task)}" for task in result["deleted"])
    return context.answer(result, [f"deleted {deleted}", _format_undo_hint(context, result)])


def run_clear(context: Context) -> int:
    if not context.args.yes and not context.can_ask:
        raise UsageError("clear removes all tasks of the list; to confirm, add --yes")
    if not context.confirm(f"Remove all tasks of {safe(context.existing_conversation and context.name)}?"):
        return _report_no_change(context)
    result = context.change("list.clear")
    lines = [f"removed {result['cleared']} tasks", _format_undo_hint(context, result)]
    return context.answer(result, lines)


def _format_undo_hint(context: Context, result: dict[str, Any]) -> str:
    return context.style.paint("dim", f"  to reverse this: punch undo {result['version']}")


def _report_no_change(context: Context) -> int:
    context.note("nothing was changed")
    return REFUSED


def _parse_gate(text: str) -> dict[str, Any]:
    """Parse `yes`, `yes:NAME` or `check:NAME`, or an approval and a check separated by a comma."""
    gate: dict[str, Any] = {}
    for part in text.split(","):
        word, colon, name = part.strip().partition(":")
        if word == "yes" and (name or not colon) and "yes" not in gate:
            gate |= {"yes": True, "by": name} if name else {"yes": True}
        elif word == "check" and name and "check" not in gate:
            gate["check"] = name
        else:
            raise UsageError(f"invalid gate {text!r}; use yes, yes:NAME, check:NAME or check:NAME,yes")
    return gate


def _parse_links(pairs: list[str] | None) -> list[dict[str, str]] | None:
    """Parse KIND=TARGET. Empty text means no links, so that an edit can remove all of them."""
    if pairs is None:
        return None
    links: list[dict[str, str]] = []
    for pair in filter(None, pairs):
        kind, _, target = pair.partition("=")
        if not kind or not target:
            raise UsageError(f"invalid link {pair!r}; use KIND=TARGET")
        links.append({"kind": kind, "to": target})
    return links


def _build_times(args: Any) -> dict[str, Any]:
    times = {"due": args.due, "not_before": args.after_date}
    return {
        member: value
        for name, time in times.items()
        if time is not None
        for member, value in time.members(name).items()
    }


def _parse_metadata(pairs: list[str] | None) -> dict[str, Any] | None:
    """Parse KEY=VALUE. An empty value becomes null, which deletes the key."""
    if not pairs:
        return None
    metadata: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"invalid metadata {pair!r}; use KEY=VALUE")
        metadata[key] = parse_loose_value(value) if value else None
    return metadata

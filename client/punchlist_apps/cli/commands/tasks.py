"""Commands that change the list: add, edit, note, move, rm, list clear."""

from __future__ import annotations

from typing import Any

from punchlist.base.text import one_line, safe
from punchlist_apps.cli.calling.context import Context, ids, loose_value, one_id
from punchlist_apps.cli.calling.names import is_known, resolve_new
from punchlist_apps.cli.parsing.arguments import TASK, TASKS, YES, Argument, Usage, choice, flag, owner_option, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common.terminal.argument_types import parse_estimate, parse_time
from punchlist_apps.common.terminal.render import format_task, truncate
from punchlist_apps.common.wire import are_several_titles
from punchlist_schemas.vocabulary import PRIORITIES, STATUSES, is_heading

_MEMBERS = (
    value("-d", "--description", text="a longer text"),
    choice("-p", "--priority", text="how urgent it is", choices=PRIORITIES),
    owner_option("who gets it: a pending task is handed out to its owner alone"),
    value("--active-form", text='what to show while it is in progress: "Writing the lexer"'),
    value("--parent", text="make it a subtask of this task", metavar="ID"),
    value("--label", text="give it this label; repeatable", metavar="LABEL", action="append"),
    value(
        "--due",
        text="when it is due, such as 2026-12-24, friday, 3d or 'tomorrow 17:00'",
        metavar="TIME",
        type=parse_time,
    ),
    value("--after-date", text="defer it: it is not ready before this day or time", metavar="TIME", type=parse_time),
    value("--estimate", text="how much work it is, such as 30m or 4h", metavar="TIME", type=parse_estimate),
    value(
        "--link",
        text="link it to something: url=…, path=src/a.py:12, commit=…, discovered-from=3 or relates-to=4; repeatable",
        metavar="KIND=TARGET",
        action="append",
    ),
    value(
        "--gate",
        text="what it needs before it counts as completed: yes, yes:NAME, check:NAME or check:NAME,yes",
        metavar="GATE",
    ),
    value("--meta", text="add metadata; the value is JSON or a word; repeatable", metavar="KEY=VALUE", action="append"),
)
_PLACES = (
    value("--before", text="put it in front of this task", metavar="ID"),
    value("--after", text="put it behind this task", metavar="ID"),
)

COMMANDS = {
    "add": Usage(
        (
            Argument(("title",), "what to do, in a few words", {"nargs": "+"}),
            *_MEMBERS,
            value("-b", "--blocked-by", text="it waits for this task; repeatable", metavar="ID", action="append"),
            value("--blocks", text="this task waits for it; repeatable", metavar="ID", action="append"),
            choice("--status", text="its status (default: pending)", choices=STATUSES),
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
                'the tasks, then who gets them: a name, a host for any of its sessions, or "#3" for who has task 3',
                {"metavar": "ID", "nargs": "+"},
                "name",
            ),
            flag("--nobody", text="clear the owner, so that anybody gets them; no name follows the tasks"),
        ),
        ("punch assign 3 ann", "punch assign 3 4 claude-code", "punch assign 3-7 --nobody"),
    ),
    "note": Usage(
        (TASK, Argument(("text",), "the text of the note", {"nargs": "+"})),
        ('punch note 3 "the vendor answers on Monday"',),
    ),
    "move": Usage(
        (TASK, *_PLACES, flag("--to-end", text="put it at the end of the list")),
        ("punch move 5 --before 2", "punch move 5 --to-end"),
    ),
    "rm": Usage((TASKS, YES), ("punch rm 3", "punch rm 4 5 --yes")),
    "clear": Usage((YES,), ("punch list clear --yes",)),
}

_TEXTS = ("description", "priority", "owner", "active_form")


_NO_TITLE = "the title is empty: say what is to be done"


def run_add(context: Context) -> int:
    args = context.args
    if not any(word.strip() for word in args.title):
        raise UsageError(f"{_NO_TITLE}, such as punch add Write the lexer")
    if are_several_titles(args.title):
        import shlex

        first, whole = shlex.quote(args.title[0]), shlex.quote(" ".join(args.title))
        raise UsageError(
            f"these are {len(args.title)} titles: add one task a command (punch add {first}), or quote one title as a"
            f" whole (punch add {whole})"
        )
    _resolve_owner(context)
    result = context.change(
        "task.add",
        title=" ".join(args.title),
        parent=one_id(args.parent),
        metadata=_metadata(args.meta),
        labels=args.label,
        links=_links(args.link),
        estimate_ms=args.estimate or None,
        gate=_gate(args.gate) if args.gate else None,
        blocked_by=ids(args.blocked_by),
        blocks=ids(args.blocks),
        status=args.status,
        before=one_id(args.before),
        after=one_id(args.after),
        **{name: getattr(args, name) for name in _TEXTS},
        **_times(args),
    )
    return context.answer(result, format_task(result["task"], context.style))


def run_edit(context: Context) -> int:
    args = context.args
    _resolve_owner(context)
    members: dict[str, Any] = {name: getattr(args, name) or None for name in _TEXTS if getattr(args, name) is not None}
    if args.title is not None:
        if not args.title.strip():
            raise UsageError(f"{_NO_TITLE}; punch rm deletes a task")
        members["title"] = args.title
    if args.parent is not None:
        members["parent"] = one_id(args.parent) if args.parent.strip() else None
    if args.meta:
        members["metadata"] = _metadata(args.meta)
    members |= _times(args)
    if args.estimate is not None:
        members["estimate_ms"] = args.estimate or None
    if args.gate is not None:
        members["gate"] = _gate(args.gate) if args.gate.strip() else None
    lists = {"add_labels": args.label, "remove_labels": args.unlabel, "links": _links(args.link)}
    members |= {name: given for name, given in lists.items() if given is not None}
    members |= {
        name: found
        for name, given in (("add_blocked_by", args.blocked_by), ("remove_blocked_by", args.unblock_from))
        if (found := ids(given))
    }
    if not members:
        raise UsageError("nothing to change was given")
    head = {"conversation": context.known, "task": one_id(args.task), "actor": context.actor}
    result = context.send("task.edit", {**head, **members}, writes=True)
    return context.answer(result, format_task(result["task"], context.style))


def run_assign(context: Context) -> int:
    args = context.args
    words, name = (args.tasks, "") if args.nobody else (args.tasks[:-1], args.tasks[-1])
    if not (tasks := ids(words)) or not (name.strip() or args.nobody):
        raise UsageError("name the tasks and who gets them, such as punch assign 3 ann; or punch assign 3 --nobody")
    owner = resolve_new(context, name) if name else None
    is_new = owner is not None and owner == name and not is_known(context, owner)
    head = {"conversation": context.known, "actor": context.actor}
    done = 0
    for task in tasks:
        if refusal := _assignment_refusal(context, task, name):
            show_error("illegal_transition", *refusal)
            continue
        result = context.send("task.edit", {**head, "task": task, "owner": owner}, writes=True)
        context.answer(result, format_task(result["task"], context.style))
        done += 1
    if owner is not None and is_new and done:
        context.note(
            f"punch: nobody called {safe(owner)} is known here yet, so nobody else gets this: punch who shows names"
        )
    return 0 if done == len(tasks) else REFUSED


def _assignment_refusal(context: Context, task: str, name: str) -> tuple[str, str] | None:
    """Return why a task can't be reserved, and what to do instead."""
    now = context.ask("task.get", task=task)["task"]
    if now["status"] == "in_progress":
        owner = f" with {now['owner']}" if now.get("owner") else ""
        return f"#{safe(task)} is in progress{owner}", f"free it first: punch reopen {safe(task)}"
    if not name or not is_heading(now.get("metadata")):
        return None
    from shlex import quote

    tasks = context.ask("task.list", parent=task, status=["pending", "paused", "failed"])["tasks"]
    below = [safe(one["id"]) for one in tasks if not is_heading(one.get("metadata"))]
    what = ", ".join(f"#{one}" for one in below) or "the tasks below it"
    return f"#{safe(task)} is a heading", f"assign {what}: punch assign {' '.join(below) or 'ID'} {quote(safe(name))}"


def _resolve_owner(context: Context) -> None:
    if context.args.owner:
        context.args.owner = resolve_new(context, context.args.owner)


def run_note(context: Context) -> int:
    args = context.args
    result = context.change("task.note", task=one_id(args.task), text=" ".join(args.text))
    task, note = result["task"], result["task"]["notes"][-1]
    line = f"noted on #{safe(task['id'])} {safe(task['title'])}: {safe(one_line(note['text']))}"
    return context.answer(result, [truncate(line, context.style.width, context.style.glyphs["cut"])])


def run_move(context: Context) -> int:
    args = context.args
    places = {"before": one_id(args.before), "after": one_id(args.after), "to_end": args.to_end or None}
    if sum(place is not None for place in places.values()) != 1:
        raise UsageError("name the place: one of --before, --after, --to-end")
    result = context.change("task.move", task=one_id(args.task), **places)
    return context.answer(result, format_task(result["task"], context.style))


def run_rm(context: Context) -> int:
    tasks = ids(context.args.tasks) or []
    if not context.confirmed(f"Delete {', '.join(f'#{safe(one)}' for one in tasks)}?"):
        return _left_alone(context)
    result = context.change("task.delete", tasks=tasks)
    gone = ", ".join(f"#{safe(one)}" for one in result["deleted"])
    return context.answer(result, [f"deleted {gone}", _back_again(context, result)])


def run_clear(context: Context) -> int:
    if not context.args.yes and not context.can_ask:
        raise UsageError("clear empties the list: add --yes")
    if not context.confirmed(f"Remove all tasks of {safe(context.known and context.name)}?"):
        return _left_alone(context)
    result = context.change("list.clear")
    lines = [f"removed {result['cleared']} tasks", _back_again(context, result)]
    return context.answer(result, lines)


def _back_again(context: Context, result: dict[str, Any]) -> str:
    return context.style.paint("dim", f"  to reverse this: punch undo {result['version']}")


def _left_alone(context: Context) -> int:
    context.note("nothing was changed")
    return REFUSED


def _gate(text: str) -> dict[str, Any]:
    """A gate from `yes`, `yes:NAME`, `check:NAME`, or both with a comma."""
    gate: dict[str, Any] = {}
    for part in text.split(","):
        word, colon, name = part.strip().partition(":")
        if word == "yes" and (name or not colon) and "yes" not in gate:
            gate |= {"yes": True, "by": name} if name else {"yes": True}
        elif word == "check" and name and "check" not in gate:
            gate["check"] = name
        else:
            raise UsageError(f"a gate is yes, yes:NAME, check:NAME, or check:NAME,yes and not {text!r}")
    return gate


def _links(pairs: list[str] | None) -> list[dict[str, str]] | None:
    """Links from KIND=TARGET; an empty one is none, so that an edit can take all of them away."""
    if pairs is None:
        return None
    found: list[dict[str, str]] = []
    for pair in filter(None, pairs):
        kind, _, target = pair.partition("=")
        if not kind or not target:
            raise UsageError(f"a link is KIND=TARGET, not {pair!r}")
        found.append({"kind": kind, "to": target})
    return found


def _times(args: Any) -> dict[str, Any]:
    given = {"due": args.due, "not_before": args.after_date}
    return {
        member: value
        for name, parse_time in given.items()
        if parse_time is not None
        for member, value in parse_time.members(name).items()
    }


def _metadata(pairs: list[str] | None) -> dict[str, Any] | None:
    """Metadata from KEY=VALUE; an empty value is null, which deletes the key."""
    if not pairs:
        return None
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"metadata is KEY=VALUE, not {pair!r}")
        found[key] = loose_value(value) if value else None
    return found

"""Why a task can't start, in sentences: what the daemon's facts say to a person."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import one_line, safe
from punchlist_apps.common.terminal.render import gate_yes, shown_time, since
from punchlist_apps.common.terminal.style import Style

_SENTENCES = {
    "stopped": "the list stops at failures, and {by} has failed: reopen, complete or delete it",
    "serial": "the list runs one task at a time, and {by} is {progress}",
    "blocker": "waits for {by} ({status})",
    "parent": "its parent {by} is {status}",
    "heading": "it is a heading: the tasks below it are the work",
    "rejected": "it was rejected: {why}; reopen a task below it or add one: punch add TITLE --parent {id}",
    "deferred": "it is deferred until {until}",
    "reserved": "it is reserved for {owner}: punch assign {id} --nobody frees it for all",
    "left": "it is reserved for {owner}, {gone}: punch start {id} takes it",
    "yes": "it is done and waits for {who}: punch approve {id}",
    "check": "it is done and waits for its check {check}: punch gate {check} -- COMMAND",
    "in_progress": "it is {progress}: punch reopen {id} frees it for others",
    "gone": "it is {progress}: punch start {id} takes it",
    "paused": "it is paused: punch resume {id}",
    "completed": "it is completed{with_child}: punch reopen {id}",
    "failed": "it has failed{with_child}: punch reopen {id}",
}

_OF_GONE = {"in_progress": "gone", "reserved": "left"}
"""Kind of a reason -> its sentence if the task's owner has left."""

_NAMED = 12
"""Maximum number of open children that are named."""


def reasons(told: Mapping[str, Any], style: Style) -> list[tuple[int, str]]:
    """The reasons against a task as sentences, each with its depth; without one, its place among the ready ones."""
    told_reasons = list(told.get("reasons", ()))
    tree: list[tuple[int, str]] = []
    for parent, group in groupby(told_reasons, lambda reason: reason["of"] if reason["kind"] == "child" else None):
        found = list(group)
        if parent is None:
            tree.extend((int(reason.get("depth", 0)), _sentence(reason, style)) for reason in found)
        else:
            tree.append((int(found[0].get("depth", 0)), _parts(found, is_cut=bool(told.get("more")))))
    return tree or [(0, _place(told))]


def reason_lines(told: Mapping[str, Any], style: Style) -> list[str]:
    """The reasons as an indented tree, harmless for a terminal."""
    tree = reasons(told, style)
    return [f"{'  ' * depth}{style.glyphs['arrow']} {text}" for depth, text in tree]


def _parts(children: Sequence[Mapping[str, Any]], *, is_cut: bool) -> str:
    count = "more than " if is_cut else ""
    count += f"{len(children)} open task{'s' if len(children) != 1 else ''}"
    names = ", ".join(f"#{safe(one['by'])}" for one in children[:_NAMED])
    return f"has {count}: {names}{', …' if len(children) > _NAMED else ''}"


def _sentence(reason: Mapping[str, Any], style: Style) -> str:
    gate: dict[str, Any] = reason.get("gate") or {}
    kind = str(reason["kind"])
    if is_gone(reason):
        kind = _OF_GONE.get(kind, kind)
    elif kind == "heading" and reason.get("fail_reason"):
        kind = "rejected"
    sentence = _SENTENCES.get(kind, "{by} keeps it ({kind})").format(
        kind=safe(reason["kind"]),
        by=_named(reason["by"], reason["title"]),
        id=safe(reason["by"]),
        with_child="" if reason["by"] == reason.get("of", reason["by"]) else f" with #{safe(reason['by'])}",
        status=safe(reason["status"]),
        progress=_progress(reason, style),
        owner=safe(str(reason.get("owner", ""))),
        gone=departure(reason, style.now),
        why=safe(one_line(str(reason.get("fail_reason", "")))),
        who=gate_yes(gate),
        check=safe(str(gate.get("check", ""))),
        until=shown_time({"not_before": 0, **reason}, "not_before"),
    )
    return sentence + (" (see above)" if reason.get("again") else "")


def _progress(reason: Mapping[str, Any], style: Style) -> str:
    words = ["in progress"]
    if reason.get("owner"):
        words.append(f"with {safe(str(reason['owner']))}")
    if gone := departure(reason, style.now):
        words[-1] += f", {gone}"
    elif reason.get("lease_expires_at") and style.now:
        words.append(f"for another {since(reason['lease_expires_at'] - style.now)} at least")
    if reason.get("attempts", 0) > 1:
        words.append(f"(attempt {reason['attempts']})")
    return " ".join(words)


def _named(task: str, title: str) -> str:
    return f"#{safe(task)} {safe(title)}"


def _place(told: Mapping[str, Any]) -> str:
    before = told.get("ahead", 0)
    if not before:
        return "it is ready, and the next one to be claimed"
    first = told["next"]
    return (
        f"it is ready; {before} {'is' if before == 1 else 'are'} before it, {_named(first['id'], first['title'])} first"
    )

"""Formats the reasons why a task can't start, as reported by the daemon, as sentences."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import one_line, safe
from punchlist_apps.common.terminal.render import format_approval, format_short_duration, format_task_time
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

_KIND_OF_GONE = {"in_progress": "gone", "reserved": "left"}
"""Kind of a reason -> key in `_SENTENCES` if the task's owner has left."""

_MAX_NAMED = 12
"""Maximum number of open children to name."""


def explain_reasons(explanation: Mapping[str, Any], style: Style) -> list[tuple[int, str]]:
    """Return the reasons as sentences with their depth. For a ready task, return its place in the queue."""
    reasons = list(explanation.get("reasons", ()))
    tree: list[tuple[int, str]] = []
    for parent, group in groupby(reasons, lambda reason: reason["of"] if reason["kind"] == "child" else None):
        siblings = list(group)
        if parent is None:
            tree.extend((int(reason.get("depth", 0)), _format_reason(reason, style)) for reason in siblings)
        else:
            tree.append(
                (int(siblings[0].get("depth", 0)), _format_children(siblings, is_cut=bool(explanation.get("more"))))
            )
    return tree or [(0, _format_queue_place(explanation))]


def format_reasons(explanation: Mapping[str, Any], style: Style) -> list[str]:
    """Return the reasons as an indented tree, safe for a terminal."""
    tree = explain_reasons(explanation, style)
    return [f"{'  ' * depth}{style.glyphs['arrow']} {text}" for depth, text in tree]


def _format_children(children: Sequence[Mapping[str, Any]], *, is_cut: bool) -> str:
    count = "more than " if is_cut else ""
    count += f"{len(children)} open task{'s' if len(children) != 1 else ''}"
    names = ", ".join(f"#{safe(child['by'])}" for child in children[:_MAX_NAMED])
    return f"has {count}: {names}{', …' if len(children) > _MAX_NAMED else ''}"


def _format_reason(reason: Mapping[str, Any], style: Style) -> str:
    gate: dict[str, Any] = reason.get("gate") or {}
    kind = str(reason["kind"])
    if is_gone(reason):
        kind = _KIND_OF_GONE.get(kind, kind)
    elif kind == "heading" and reason.get("fail_reason"):
        kind = "rejected"
    sentence = _SENTENCES.get(kind, "{by} keeps it ({kind})").format(
        kind=safe(reason["kind"]),
        by=_format_task(reason["by"], reason["title"]),
        id=safe(reason["by"]),
        with_child="" if reason["by"] == reason.get("of", reason["by"]) else f" with #{safe(reason['by'])}",
        status=safe(reason["status"]),
        progress=_format_progress(reason, style),
        owner=safe(str(reason.get("owner", ""))),
        gone=departure(reason, style.now),
        why=safe(one_line(str(reason.get("fail_reason", "")))),
        who=format_approval(gate),
        check=safe(str(gate.get("check", ""))),
        until=format_task_time({"not_before": 0, **reason}, "not_before"),
    )
    return sentence + (" (see above)" if reason.get("again") else "")


def _format_progress(reason: Mapping[str, Any], style: Style) -> str:
    words = ["in progress"]
    if reason.get("owner"):
        words.append(f"with {safe(str(reason['owner']))}")
    if gone := departure(reason, style.now):
        words[-1] += f", {gone}"
    elif reason.get("lease_expires_at") and style.now:
        words.append(f"for another {format_short_duration(reason['lease_expires_at'] - style.now)} at least")
    if reason.get("attempts", 0) > 1:
        words.append(f"(attempt {reason['attempts']})")
    return " ".join(words)


def _format_task(task: str, title: str) -> str:
    return f"#{safe(task)} {safe(title)}"


def _format_queue_place(explanation: Mapping[str, Any]) -> str:
    ahead = explanation.get("ahead", 0)
    if not ahead:
        return "it is ready, and the next one to be claimed"
    first = explanation["next"]
    verb = "is" if ahead == 1 else "are"
    return f"it is ready; {ahead} {verb} before it, {_format_task(first['id'], first['title'])} first"

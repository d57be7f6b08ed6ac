"""Formats the result or preview of an import, including everything that was skipped, as lines and as JSON."""

import json
from collections.abc import Iterable
from typing import Any, cast

from punchlist.base.text import one_line, safe
from punchlist_apps.common.terminal.render import format_time, truncate
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.files.importers.draft import Draft, Item, Remark
from punchlist_apps.files.importers.matching import Comparison, Difference

_HIDDEN = ("title", "status", "metadata")
_MAX_VALUE = 60


def format_summary(draft: Draft, comparison: Comparison, *, dry: bool = False) -> str:
    added, updated, removed = map(len, (comparison.added, comparison.updates, comparison.removed))
    parts = [f"{updated} updated"] if updated else []
    parts += [f"{comparison.unchanged} unchanged"] if comparison.unchanged else []
    parts += [f"{comparison.kept} kept with local changes"] if comparison.kept else []
    parts += [f"{removed} removed"] if removed else []
    head = f"{'would import' if dry else 'imported'} {added:,} task{'s' if added != 1 else ''}"
    return f"{', '.join([head, *parts])} ({draft.source})"


def format_remarks(draft: Draft, style: Style) -> list[str]:
    lines: list[str] = []
    for head, table in (("skipped", draft.skipped), ("converted", draft.converted)):
        members = [f"{remark.text.strip('`')} {remark.count:,}" for remark in table.values() if _is_member(remark)]
        if members:
            lines.append(style.paint("dim", f"  {head}: unsupported members: {safe(', '.join(members))}"))
        for remark in table.values():
            if not _is_member(remark):
                lines.append(style.paint("dim", truncate(f"  {head}: {_format_remark(remark)}", style.width)))
    return lines


def _is_member(remark: Remark) -> bool:
    """Return whether the remark is just the name of a member, such as `created_at`."""
    return remark.text[:1] == "`" == remark.text[-1:]


def format_changes(draft: Draft, comparison: Comparison, style: Style) -> list[str]:
    titles = {f"n{index}": item.title for index, item in enumerate(draft.items)}
    lines = [_format_added(draft, item, style) for item in comparison.added]
    for update in comparison.updates:
        lines.append(f"  ~ #{update.task} {safe(update.title)}")
        lines += [f"      {_format_difference(difference, titles)}" for difference in update.differences]
    lines += [f"  - #{task['id']} {safe(task['title'])}" for task in comparison.removed]
    return [truncate(line, style.width) for line in lines]


def to_json(draft: Draft, comparison: Comparison) -> dict[str, Any]:
    return {
        "format": draft.source,
        "added": len(comparison.added),
        "updated": [
            {
                "task": update.task,
                "title": update.title,
                "members": {diff.member: diff.new for diff in update.differences},
            }
            for update in comparison.updates
        ],
        "unchanged": comparison.unchanged,
        "kept": comparison.kept,
        "removed": [task["id"] for task in comparison.removed],
        "passed_over": [_remark_to_json(remark) for remark in draft.skipped.values()],
        "read_otherwise": [_remark_to_json(remark) for remark in draft.converted.values()],
    }


def _remark_to_json(remark: Remark) -> dict[str, Any]:
    return {"text": remark.text, "count": remark.count, "lines": remark.lines}


def _format_remark(remark: Remark) -> str:
    more = ", …" if len(remark.lines) < remark.count and len(remark.lines) > 1 else ""
    where = f" (line{'s' if len(remark.lines) > 1 else ''} {', '.join(map(str, remark.lines))}{more})"
    return f"{remark.count:,} × {safe(remark.text)}{where if remark.lines else ''}"


def _format_added(draft: Draft, item: Item, style: Style) -> str:
    glyph = style.glyphs[item.members.get("status", "pending")]
    details = [
        _format_member(name, value)
        for name, value in item.members.items()
        if name not in _HIDDEN and f"{name}_day" not in item.members
    ]
    for relation, refs in (("part of", [item.parent]), ("waits for", item.blocked_by)):
        others = [draft.find(ref) for ref in refs if ref]
        details += [f"{relation} “{_shorten(other.title)}”" for other in others if other is not None]
    details += [f"{len(item.notes)} note{'s' if len(item.notes) != 1 else ''}"] if item.notes else []
    tail = style.paint("dim", f"  {style.glyphs['dot']} {', '.join(details)}") if details else ""
    return f"  + {glyph} {safe(item.title)}{tail}"


def _format_member(name: str, value: Any) -> str:
    if name in ("description", "result_summary", "fail_reason"):
        return f"{name.replace('_', ' ')} of {len(value):,} characters"
    return f"{_strip_unit(name)} {_format_value(name, value)}"


def _format_difference(difference: Difference, titles: dict[str, str]) -> str:
    member, old, new = difference.member, difference.old, difference.new
    if member in ("parent", "blocked_by"):
        refs: Iterable[str] = [new] if isinstance(new, str) else new
        tasks = ", ".join(f"“{_shorten(titles[ref])}”" if ref in titles else f"#{ref}" for ref in refs)
        return f"{'part of' if member == 'parent' else 'waits for'} {tasks}"
    if member in ("labels", "links", "notes"):
        more = [_extract_text(value) for value in new if value not in (old or ())]
        return f"{member}: + {_format_value(member, more)}"
    return f"{_strip_unit(member)}: {_format_value(member, old)} → {_format_value(member, new)}"


def _strip_unit(member: str) -> str:
    return member.removesuffix("_ms").removesuffix("_day")


def _format_value(name: str, value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    if name in ("due", "not_before") and isinstance(value, int):
        return format_time(value)
    if name == "estimate_ms":
        return f"{value / 3_600_000:g} h"
    if isinstance(value, list):
        return ", ".join(map(_format_scalar, cast("list[Any]", value)))
    return _format_scalar(value)


def _format_scalar(value: Any) -> str:
    return _shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _extract_text(value: Any) -> Any:
    return value.get("text", value) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _shorten(text: str) -> str:
    line = one_line(text)
    return safe(line if len(line) <= _MAX_VALUE else f"{line[: _MAX_VALUE - 1]}…")

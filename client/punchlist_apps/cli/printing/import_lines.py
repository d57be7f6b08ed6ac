"""What an import did or would do, as lines and as JSON: every task, every member, everything that it passed over."""

import json
from collections.abc import Iterable
from typing import Any, cast

from punchlist.base.text import one_line, safe
from punchlist_apps.common.terminal.render import format_time, truncate
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.files.importers.draft import Draft, Item, Remark
from punchlist_apps.files.importers.matching import Comparison, Difference

_QUIET = ("title", "status", "metadata")
_VALUE = 60


def summary(draft: Draft, comparison: Comparison, *, dry: bool = False) -> str:
    added, updated, removed = (len(one) for one in (comparison.added, comparison.updates, comparison.removed))
    parts = [f"{updated} brought up to date"] if updated else []
    parts += [f"{comparison.unchanged} unchanged"] if comparison.unchanged else []
    parts += [f"{comparison.kept} kept as changed here since"] if comparison.kept else []
    parts += [f"{removed} removed"] if removed else []
    head = f"{'would import' if dry else 'imported'} {added:,} task{'s' if added != 1 else ''}"
    return f"{', '.join([head, *parts])} ({draft.source})"


def remark_lines(draft: Draft, style: Style) -> list[str]:
    lines: list[str] = []
    for head, table in (("passed over", draft.skipped), ("read otherwise", draft.converted)):
        members = [f"{one.text.strip('`')} {one.count:,}" for one in table.values() if _is_member(one)]
        if members:
            lines.append(style.paint("dim", f"  {head}: members without a place here: {safe(', '.join(members))}"))
        for remark in (one for one in table.values() if not _is_member(one)):
            lines.append(style.paint("dim", truncate(f"  {head}: {_remark(remark)}", style.width)))
    return lines


def _is_member(remark: Remark) -> bool:
    """Whether it says no more than the name of a member: `created_at`."""
    return remark.text[:1] == "`" == remark.text[-1:]


def change_lines(draft: Draft, comparison: Comparison, style: Style) -> list[str]:
    titles = {f"n{index}": item.title for index, item in enumerate(draft.items)}
    lines = [_added(draft, item, style) for item in comparison.added]
    for update in comparison.updates:
        lines.append(f"  ~ #{update.task} {safe(update.title)}")
        lines += [f"      {_difference(one, titles)}" for one in update.differences]
    lines += [f"  - #{task['id']} {safe(task['title'])}" for task in comparison.removed]
    return [truncate(line, style.width) for line in lines]


def as_json(draft: Draft, comparison: Comparison) -> dict[str, Any]:
    return {
        "format": draft.source,
        "added": len(comparison.added),
        "updated": [
            {"task": one.task, "title": one.title, "members": {each.member: each.new for each in one.differences}}
            for one in comparison.updates
        ],
        "unchanged": comparison.unchanged,
        "kept": comparison.kept,
        "removed": [task["id"] for task in comparison.removed],
        "passed_over": [_plain(one) for one in draft.skipped.values()],
        "read_otherwise": [_plain(one) for one in draft.converted.values()],
    }


def _plain(remark: Remark) -> dict[str, Any]:
    return {"text": remark.text, "count": remark.count, "lines": remark.lines}


def _remark(remark: Remark) -> str:
    more = ", …" if len(remark.lines) < remark.count and len(remark.lines) > 1 else ""
    where = f" (line{'s' if len(remark.lines) > 1 else ''} {', '.join(map(str, remark.lines))}{more})"
    return f"{remark.count:,} × {safe(remark.text)}{where if remark.lines else ''}"


def _added(draft: Draft, item: Item, style: Style) -> str:
    glyph = style.glyphs[item.members.get("status", "pending")]
    said = [
        _member(name, value)
        for name, value in item.members.items()
        if name not in _QUIET and f"{name}_day" not in item.members
    ]
    for what, refs in (("part of", [item.parent]), ("waits for", item.blocked_by)):
        others = [draft.find(ref) for ref in refs if ref]
        said += [f"{what} “{_short(other.title)}”" for other in others if other is not None]
    said += [f"{len(item.notes)} note{'s' if len(item.notes) != 1 else ''}"] if item.notes else []
    tail = style.paint("dim", f"  {style.glyphs['dot']} {', '.join(said)}") if said else ""
    return f"  + {glyph} {safe(item.title)}{tail}"


def _member(name: str, value: Any) -> str:
    if name in ("description", "result_summary", "fail_reason"):
        return f"{name.replace('_', ' ')} of {len(value):,} characters"
    return f"{_called(name)} {_value(name, value)}"


def _difference(one: Difference, titles: dict[str, str]) -> str:
    if one.member in ("parent", "blocked_by"):
        refs: Iterable[str] = [one.new] if isinstance(one.new, str) else one.new
        named = ", ".join(f"“{_short(titles[ref])}”" if ref in titles else f"#{ref}" for ref in refs)
        return f"{'part of' if one.member == 'parent' else 'waits for'} {named}"
    if one.member in ("labels", "links", "notes"):
        more = [_text(each) for each in one.new if each not in (one.old or ())]
        return f"{one.member}: + {_value(one.member, more)}"
    return f"{_called(one.member)}: {_value(one.member, one.old)} → {_value(one.member, one.new)}"


def _called(member: str) -> str:
    return member.removesuffix("_ms").removesuffix("_day")


def _value(name: str, value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    if name in ("due", "not_before") and isinstance(value, int):
        return format_time(value)
    if name == "estimate_ms":
        return f"{value / 3_600_000:g} h"
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return ", ".join(_short(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) for one in listed)
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _text(one: Any) -> Any:
    return one.get("text", one) if isinstance(one, dict) else one  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _short(text: str) -> str:
    shown = one_line(text)
    return safe(shown if len(shown) <= _VALUE else f"{shown[: _VALUE - 1]}…")

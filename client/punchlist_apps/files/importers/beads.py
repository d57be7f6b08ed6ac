"""beads: `bd export`, `.beads/issues.jsonl`, and tables of its Dolt database (`.beads/backup`, `dolt dump -r csv`)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import (
    Document,
    expect_list,
    expect_object,
    parse_json,
    parse_json_lines,
    to_object,
    to_text,
    to_texts,
)
from punchlist_apps.files.importers.draft import Draft, Item, Note, join_sections
from punchlist_apps.files.importers.tables import read_rows

_PRIORITIES = ("urgent", "high", "normal", "low", "low")
_BLOCKING = frozenset(("blocks", "conditional-blocks", "waits-for"))
_LINKING = {
    "discovered-from": "discovered-from",
    **dict.fromkeys(("related", "relates-to", "relates_to", "duplicates", "supersedes"), "relates-to"),
}
_STATUSES = {"deferred": "paused", "blocked": "pending", "hooked": "in_progress", "pinned": "pending"}
_AGENTS = frozenset("agent role rig convoy molecule message event".split())
"""Types, and labels after `gt:`, of the issues in which Gas Town keeps its own state."""

_READ = frozenset(
    "id title description design acceptance_criteria notes status priority issue_type assignee labels dependencies"
    " comments close_reason external_ref estimated_minutes due_at defer_until parent metadata".split()
)
_DERIVED = frozenset("content_hash dependency_count dependent_count comment_count blocked_by_count updated_at".split())
"""Members that are derived from others and can therefore be skipped without a remark."""

TABLES = ("dependencies", "labels", "comments")
"""Tables other than the issue table. In each of their rows, `issue_id` is the id of an issue."""


def read(documents: Sequence[Document]) -> Draft:
    """Read the issues in a file, or in the tables of a Dolt database."""
    main = next((document for document in documents if document.stem == "issues"), documents[0])
    draft = Draft("beads", main.name)
    tables = {document.stem: _group_by_issue(document) for document in documents if document.stem in TABLES}
    added: list[tuple[Item, dict[str, Any]]] = []
    for line, issue in _parse_issues(main):
        if "title" not in issue and issue.get("_type") not in (None, "issue"):
            draft.skip(f"records of type “{to_text(issue['_type'])}”", line)  # memories, configuration
            continue
        ident = to_text(issue.get("id"))
        for name, records in tables.items():
            issue[name] = records.get(ident, [])
        if issue.get("ephemeral") in (True, "1", "true"):  # bd's own export omits ephemeral issues too.
            draft.skip("ephemeral issues", line)
        elif kind := _find_own_kind(issue):
            draft.skip(f"issues of type “{kind}”, which are no work", line)
        elif to_text(issue.get("status")) == "tombstone" or issue.get("deleted_at"):
            draft.skip("deleted issues", line)
        elif (item := _add(draft, issue, ident, line)) is not None:
            added.append((item, issue))
    for item, issue in added:
        _relate(draft, item, issue)
    return draft.finish()


def _find_own_kind(issue: dict[str, Any]) -> str:
    names = [to_text(issue.get("issue_type")), *(label.partition("gt:")[2] for label in _list_labels(issue))]
    return next((name for name in names if name in _AGENTS), "")


def _list_labels(issue: dict[str, Any]) -> list[str]:
    # The table of labels has a row for each label.
    return to_texts(
        [to_object(label).get("label") if isinstance(label, dict) else label for label in _get_list(issue, "labels")]
    )


def _group_by_issue(document: Document) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table, grouped by issue."""
    by_issue: dict[str, list[dict[str, Any]]] = {}
    for _, record in read_rows(document) if document.suffix == ".csv" else parse_json_lines(document):
        by_issue.setdefault(to_text(record.get("issue_id")), []).append(dict(record))
    return by_issue


def _parse_issues(document: Document) -> Iterable[tuple[int, dict[str, Any]]]:
    if document.suffix == ".csv":
        return read_rows(document)
    text = document.text.lstrip()
    if text.startswith("{") and ("\n" not in text.rstrip() or text[1:].lstrip().startswith(('"rows"', '"issues"'))):
        value = expect_object(parse_json(document), "the file", document.name)
        if records := value.get("rows", value.get("issues")):
            return [
                (0, expect_object(record, "an issue", document.name))
                for record in expect_list(records, "rows", document.name)
            ]
    return parse_json_lines(document)


def _add(draft: Draft, issue: dict[str, Any], ident: str, line: int) -> Item | None:
    word = to_text(issue.get("status"))
    if word in _STATUSES:
        draft.note_change(f"status “{word}”, imported as {_STATUSES[word]}", line)
    defer = words.parse_when(draft, issue.get("defer_until"), "defer_until", line, midnight_is_day=True)
    state = words.parse_status(draft, "open" if word == "deferred" and defer else _STATUSES.get(word, word), line)
    kind = to_text(issue.get("issue_type"))
    reference = to_text(issue.get("external_ref"))
    kind_of_link = "url" if reference.startswith(("http://", "https://")) else "external-ref"
    minutes = issue.get("estimated_minutes") or 0
    draft.skip_unread(issue, _READ | _DERIVED, line)
    return draft.add(
        issue.get("title"),
        key=ident,
        line=line,
        description=join_sections(
            to_text(issue.get("description")),
            design=to_text(issue.get("design")),
            acceptance_criteria=to_text(issue.get("acceptance_criteria")),
        ),
        notes=[*filter(None, [to_text(issue.get("notes"))]), *map(_parse_comment, _get_list(issue, "comments"))],
        priority=_parse_priority(issue.get("priority")),
        owner=to_text(issue.get("assignee")),
        result_summary=to_text(issue.get("close_reason")) if state["status"] == "completed" else "",
        due=words.parse_when(draft, issue.get("due_at"), "due_at", line, midnight_is_day=True),
        not_before=defer,
        estimate_ms=round(float(minutes) * 60_000) if to_text(minutes).replace(".", "", 1).isdecimal() else None,
        links=[(kind_of_link, reference)],
        metadata=_parse_metadata(issue.get("metadata")),
        state=state,
        labels=[*_list_labels(issue), *([kind] if kind not in ("", "task") else [])],
        parent=to_text(issue.get("parent")),
    )


def _parse_metadata(value: Any) -> dict[str, Any]:
    """Parse metadata, which tables store as a JSON string."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return {}
    return to_object(value)


def _relate(draft: Draft, item: Item, issue: dict[str, Any]) -> None:
    for dependency in _get_list(issue, "dependencies"):
        edge = to_object(dependency if isinstance(dependency, dict) else {"depends_on_id": dependency})
        other = to_text(edge.get("depends_on_id") or edge.get("depends_on_issue_id") or edge.get("id"))
        kind = to_text(edge.get("type") or edge.get("dependency_type")) or "blocks"
        if kind in _BLOCKING:
            item.blocked_by.append(other)
        elif kind == "parent-child":
            item.parent = other
        elif kind in _LINKING:
            item.relations.append((_LINKING[kind], other))
        else:
            draft.skip(f"dependencies of type “{kind}”", item.line)
    # bd names children PARENT.N, even without an edge.
    above = item.key.rpartition(".")[0]
    if not item.parent and above and item.key.rpartition(".")[2].isdecimal() and draft.find(above):
        item.parent = above


def _get_list(issue: dict[str, Any], member: str) -> list[Any]:
    value = issue.get(member)
    return cast("list[Any]", value) if isinstance(value, list) else to_texts(value)


def _parse_comment(comment: Any) -> Note:
    record = to_object(comment if isinstance(comment, dict) else {"text": comment})
    return words.build_note(to_text(record.get("text")), to_text(record.get("author")), record.get("created_at"))


def _parse_priority(value: Any) -> str:
    number = to_text(value).strip().upper().removeprefix("P")
    return _PRIORITIES[min(int(number), len(_PRIORITIES) - 1)] if number.isdecimal() else "normal"

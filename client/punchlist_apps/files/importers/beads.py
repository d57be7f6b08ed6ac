"""beads: `bd export`, `.beads/issues.jsonl`, and tables of its Dolt database (`.beads/backup`, `dolt dump -r csv`)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import (
    Document,
    as_list,
    as_object,
    json_lines,
    json_value,
    object_of,
    text_of,
    texts_of,
)
from punchlist_apps.files.importers.draft import Draft, Item, Note, sections
from punchlist_apps.files.importers.tables import rows

_PRIORITIES = ("urgent", "high", "normal", "low", "low")
_BLOCKING = frozenset(("blocks", "conditional-blocks", "waits-for"))
_LINKING = {
    "discovered-from": "discovered-from",
    **dict.fromkeys(("related", "relates-to", "relates_to", "duplicates", "supersedes"), "relates-to"),
}
_STATUSES = {"deferred": "paused", "blocked": "pending", "hooked": "in_progress", "pinned": "pending"}
_READ = frozenset(
    "id title description design acceptance_criteria notes status priority issue_type assignee labels dependencies"
    " comments close_reason external_ref estimated_minutes due_at defer_until parent metadata".split()
)
_COUNTED = frozenset("content_hash dependency_count dependent_count comment_count blocked_by_count updated_at".split())
"""Follow from the rest: nothing is lost with them."""

TABLES = ("dependencies", "labels", "comments")
"""What stands beside the issues in tables of their own; each row names its issue as `issue_id`."""


def read(documents: Sequence[Document]) -> Draft:
    """Read the issues of a file, or of the tables of a Dolt database."""
    main = next((one for one in documents if one.stem == "issues"), documents[0])
    draft = Draft("beads", main.name)
    beside = {one.stem: _by_issue(one) for one in documents if one.stem in TABLES}
    found: list[tuple[Item, dict[str, Any]]] = []
    for line, issue in _issues(main):
        if "title" not in issue and issue.get("_type") not in (None, "issue"):
            draft.pass_over(f"records of type “{text_of(issue['_type'])}”", line)  # memories, configuration
            continue
        ident = text_of(issue.get("id"))
        for name, records in beside.items():
            issue[name] = records.get(ident, [])
        if issue.get("ephemeral") in (True, "1", "true"):  # bd's own export leaves them out as well
            draft.pass_over("ephemeral issues", line)
        elif text_of(issue.get("status")) == "tombstone" or issue.get("deleted_at"):
            draft.pass_over("deleted issues", line)
        elif (item := _add(draft, issue, ident, line)) is not None:
            found.append((item, issue))
    for item, issue in found:
        _relate(draft, item, issue)
    return draft.finish()


def _by_issue(document: Document) -> dict[str, list[dict[str, Any]]]:
    """The rows of a table beside the issues, by the issue that each names."""
    found: dict[str, list[dict[str, Any]]] = {}
    for _, record in rows(document) if document.suffix == ".csv" else json_lines(document):
        found.setdefault(text_of(record.get("issue_id")), []).append(dict(record))
    return found


def _issues(document: Document) -> Iterable[tuple[int, dict[str, Any]]]:
    if document.suffix == ".csv":
        return rows(document)
    text = document.text.lstrip()
    if text.startswith("{") and ("\n" not in text.rstrip() or text[1:].lstrip().startswith(('"rows"', '"issues"'))):
        value = as_object(json_value(document), "the file", document.name)
        if listed := value.get("rows", value.get("issues")):
            return [(0, as_object(one, "an issue", document.name)) for one in as_list(listed, "rows", document.name)]
    return json_lines(document)


def _add(draft: Draft, issue: dict[str, Any], ident: str, line: int) -> Item | None:
    word = text_of(issue.get("status"))
    if word in _STATUSES:
        draft.change(f"status “{word}”, which is {_STATUSES[word]} here", line)
    defer = words.when(draft, issue.get("defer_until"), "defer_until", line, midnight_is_day=True)
    state = words.status(draft, "open" if word == "deferred" and defer else _STATUSES.get(word, word), line)
    kind = text_of(issue.get("issue_type"))
    # A table has a row for each label.
    labels = texts_of([object_of(one).get("label") if isinstance(one, dict) else one for one in _list(issue, "labels")])
    reference = text_of(issue.get("external_ref"))
    kind_of_link = "url" if reference.startswith(("http://", "https://")) else "external-ref"
    minutes = issue.get("estimated_minutes") or 0
    draft.pass_over_rest(issue, _READ | _COUNTED, line)
    return draft.add(
        issue.get("title"),
        key=ident,
        line=line,
        description=sections(
            text_of(issue.get("description")),
            design=text_of(issue.get("design")),
            acceptance_criteria=text_of(issue.get("acceptance_criteria")),
        ),
        notes=[*filter(None, [text_of(issue.get("notes"))]), *map(_comment, _list(issue, "comments"))],
        priority=_priority(issue.get("priority")),
        owner=text_of(issue.get("assignee")),
        result_summary=text_of(issue.get("close_reason")) if state["status"] == "completed" else "",
        due=words.when(draft, issue.get("due_at"), "due_at", line, midnight_is_day=True),
        not_before=defer,
        estimate_ms=round(float(minutes) * 60_000) if text_of(minutes).replace(".", "", 1).isdecimal() else None,
        links=[(kind_of_link, reference)],
        metadata=_metadata(issue.get("metadata")),
        state=state,
        labels=[*labels, *([kind] if kind not in ("", "task") else [])],
        parent=text_of(issue.get("parent")),
    )


def _metadata(value: Any) -> dict[str, Any]:
    """A table holds it as a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return {}
    return object_of(value)


def _relate(draft: Draft, item: Item, issue: dict[str, Any]) -> None:
    for one in _list(issue, "dependencies"):
        edge = object_of(one if isinstance(one, dict) else {"depends_on_id": one})
        other = text_of(edge.get("depends_on_id") or edge.get("depends_on_issue_id") or edge.get("id"))
        kind = text_of(edge.get("type") or edge.get("dependency_type")) or "blocks"
        if kind in _BLOCKING:
            item.blocked_by.append(other)
        elif kind == "parent-child":
            item.parent = other
        elif kind in _LINKING:
            item.relations.append((_LINKING[kind], other))
        else:
            draft.pass_over(f"dependencies of type “{kind}”", item.line)
    # bd names children PARENT.N, also where no edge says so.
    above = item.key.rpartition(".")[0]
    if not item.parent and above and item.key.rpartition(".")[2].isdecimal() and draft.find(above):
        item.parent = above


def _list(issue: dict[str, Any], member: str) -> list[Any]:
    value = issue.get(member)
    return cast("list[Any]", value) if isinstance(value, list) else texts_of(value)


def _comment(one: Any) -> Note:
    record = object_of(one if isinstance(one, dict) else {"text": one})
    return words.note(text_of(record.get("text")), text_of(record.get("author")), record.get("created_at"))


def _priority(value: Any) -> str:
    number = text_of(value).strip().upper().removeprefix("P")
    return _PRIORITIES[min(int(number), len(_PRIORITIES) - 1)] if number.isdecimal() else "normal"

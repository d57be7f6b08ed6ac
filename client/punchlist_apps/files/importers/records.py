"""JSON files with a list of records: plans of agents and their harnesses, Shrimp, GitLab's issues, Google Tasks."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from punchlist_apps.files.importers.document import Document, expect_list, expect_object, parse_json, to_object, to_text
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.fields import Reader, normalize


class _Form(NamedTuple):
    """A form: names of the member with its records, and the fields of their members that differ from the usual ones."""

    containers: str
    names: dict[str, str]
    has_ranks: bool = False
    """Whether a number as priority is the position at which an agent takes the task."""


_FORMS = {
    "codex": _Form("plan", {"step": "title"}),
    "gemini": _Form("todos", {"description": "title"}),
    "features": _Form("features tasks", {}, has_ranks=True),
    "prd": _Form("userStories stories", {}, has_ranks=True),
    "shrimp": _Form("tasks", {"name": "title", "summary": "result"}),
    "gitlab": _Form("issues", {"id": "derived", "references": "derived", "links": "derived"}),
}
_ABOUT = frozenset("project branch name repository version description created".split())
"""First words of members that describe the whole file and can be skipped without a remark."""


def _read(source: str, documents: Sequence[Document]) -> Draft:
    document = documents[0]
    draft = Draft(source, document.name)
    form = _FORMS[source]
    containers = form.containers.split()
    value, scope, container = parse_json(document), None, containers[0]
    if isinstance(value, dict):
        file = cast("dict[str, Any]", value)
        container = next((name for name in containers if name in file), container)
        value = file.get(container)
        draft.skip_unread(file, {container, *(name for name in file if normalize(name).split(" ")[0] in _ABOUT)})
        scope = to_text(file.get("branchName") or file.get("project")) or None
    records, names = expect_list(value, container, document.name), form.names
    if form.has_ranks and all(isinstance(to_object(record).get("priority"), int | float) for record in records):
        records = sorted(records, key=lambda record: record["priority"])
        names = {**names, "priority": "derived"}
    reader = Reader(draft, names, scope=scope)
    reader.add_all(records, container)
    return reader.finish()


read_codex, read_features, read_gemini, read_gitlab, read_prd, read_shrimp = (
    partial(_read, source) for source in ("codex", "features", "gemini", "gitlab", "prd", "shrimp")
)


def read_google_tasks(documents: Sequence[Document]) -> Draft:
    """Read the lists of Google Takeout, or one list of the API. With several lists, each is a label of its tasks."""
    document = documents[0]
    draft = Draft("googletasks", document.name)
    # A due date is written as midnight UTC.
    reader = Reader(draft, {"notes": "description", "links": "url"}, convert_day=lambda text: text[:10])
    file = expect_object(parse_json(document), "the file", document.name)
    items = expect_list(file.get("items"), "items", document.name)
    lists = [(f"items[{index}].items", to_object(item)) for index, item in enumerate(items)]
    if not any("items" in tasks for _, tasks in lists):
        lists = [("items", {"items": items})]
    for where, tasks in lists:
        records = expect_list(tasks.get("items", []), where, document.name)
        labels = {"labels": [tasks["title"]]} if len(lists) > 1 and tasks.get("title") else {}
        reader.add_all([{**to_object(record), "kind": "", **labels} for record in records], where)
    return reader.finish()

"""GitHub: `gh issue list --json number,title,…`, also what the REST API answers."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, json_lines, object_of, text_of, texts_of
from punchlist_apps.files.importers.draft import Draft

_READ = frozenset(
    "number title body state stateReason state_reason labels assignees assignee milestone comments url html_url".split()
)
_COUNTED = frozenset(("id", "node_id", "updatedAt", "updated_at", "closed", "isPinned"))
_GIVEN_UP = frozenset(("NOT_PLANNED", "DUPLICATE"))


def read(documents: Sequence[Document]) -> Draft:
    """The issues of a repository; the first assignee is the owner."""
    document = documents[0]
    draft = Draft("github", document.name)
    for line, issue in json_lines(document):
        url = text_of(issue.get("html_url") or issue.get("url"))
        reason = text_of(issue.get("stateReason") or issue.get("state_reason")).upper()
        given_up = reason in _GIVEN_UP
        milestone = object_of(issue.get("milestone"))
        assignees = texts_of(issue.get("assignees")) or texts_of([issue.get("assignee")])
        if len(assignees) > 1:
            draft.pass_over("assignees beyond the first", line, len(assignees) - 1)
        comments = [object_of(one) for one in _list(issue.get("comments"))]
        if not comments and isinstance(issue.get("comments"), int) and issue["comments"]:
            draft.pass_over("comments, which are not in the file (gh: --json comments)", line, issue["comments"])
        draft.pass_over_rest(issue, _READ | _COUNTED, line)
        state = words.status(draft, "cancelled" if given_up else text_of(issue.get("state")).lower(), line)
        labels = [*texts_of(issue.get("labels")), *state.get("labels", ())]
        if milestone.get("title"):
            labels.append(f"milestone:{text_of(milestone['title'])}")
        draft.add(
            issue.get("title"),
            # The same number means another issue in another repository.
            key=url.removeprefix("https://github.com/") or text_of(issue.get("number")),
            line=line,
            description=text_of(issue.get("body")),
            owner=assignees[0] if assignees else "",
            due=words.when(
                draft, milestone.get("dueOn") or milestone.get("due_on"), "milestone.dueOn", line, is_day=True
            ),
            links=[("url", url)],
            notes=[
                words.note(
                    text_of(one.get("body")),
                    "".join(texts_of([one.get("author") or one.get("user")])),
                    one.get("createdAt") or one.get("created_at"),
                )
                for one in comments
            ],
            status=state["status"],
            labels=labels,
        )
    return draft.finish()


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []

"""GitHub: the output of `gh issue list --json number,title,…`, or responses from the REST API."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, parse_json_lines, to_object, to_text, to_texts
from punchlist_apps.files.importers.draft import Draft

_READ = frozenset(
    "number title body state stateReason state_reason labels assignees assignee milestone comments url html_url".split()
)
_DERIVED = frozenset(("id", "node_id", "updatedAt", "updated_at", "closed", "isPinned", "isPullRequest"))
_ABANDONED = frozenset(("NOT_PLANNED", "DUPLICATE"))


def read(documents: Sequence[Document]) -> Draft:
    """Read the issues of a repository. The first assignee becomes the owner."""
    document = documents[0]
    draft = Draft("github", document.name)
    for line, issue in parse_json_lines(document):
        if issue.get("pull_request") or issue.get("isPullRequest"):
            draft.skip("pull requests", line)
            continue
        url = to_text(issue.get("html_url") or issue.get("url"))
        reason = to_text(issue.get("stateReason") or issue.get("state_reason")).upper()
        is_abandoned = reason in _ABANDONED
        milestone = to_object(issue.get("milestone"))
        assignees = to_texts(issue.get("assignees")) or to_texts([issue.get("assignee")])
        if len(assignees) > 1:
            draft.skip("assignees beyond the first", line, len(assignees) - 1)
        comments = [to_object(comment) for comment in _get_list(issue.get("comments"))]
        if not comments and isinstance(issue.get("comments"), int) and issue["comments"]:
            draft.skip("comments, which are not in the file (gh: --json comments)", line, issue["comments"])
        draft.skip_unread(issue, _READ | _DERIVED, line)
        state = words.parse_status(draft, "cancelled" if is_abandoned else to_text(issue.get("state")).lower(), line)
        labels = [*to_texts(issue.get("labels")), *state.get("labels", ())]
        if milestone.get("title"):
            labels.append(f"milestone:{to_text(milestone['title'])}")
        draft.add(
            issue.get("title"),
            # Numbers are unique only within a repository.
            key=url.removeprefix("https://github.com/") or to_text(issue.get("number")),
            line=line,
            description=to_text(issue.get("body")),
            owner=assignees[0] if assignees else "",
            due=words.parse_when(
                draft, milestone.get("dueOn") or milestone.get("due_on"), "milestone.dueOn", line, is_day=True
            ),
            links=[("url", url)],
            notes=[
                words.build_note(
                    to_text(comment.get("body")),
                    "".join(to_texts([comment.get("author") or comment.get("user")])),
                    comment.get("createdAt") or comment.get("created_at"),
                )
                for comment in comments
            ],
            status=state["status"],
            labels=labels,
        )
    return draft.finish()


def _get_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []

"""JSON files of agents and of issue trackers, read by the names of their members."""

import contextlib
import json
from typing import Any, cast

import pytest

from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.fields import normalize
from punchlist_apps.files.importers.formats import build_draft
from punchlist_apps.files.importers.wrong import FormatError


def load(value: Any, form: str = "", name: str = "plan.json") -> Draft:
    return build_draft([Document(name, json.dumps(value))], form)


def passed(draft: Draft) -> dict[str, int]:
    return {one.text: one.count for one in draft.skipped.values()}


A, B, C = (f"0a1b2c3d-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
BOARD: dict[str, Any] = {
    "lists": [{"id": "l", "name": "Doing", "pos": 1}],
    "members": [{"id": "m", "fullName": "Ann"}],
    "cards": [
        {"id": "c", "name": "a", "idList": "l", "pos": 2, "due": "2026-01-01", "idMembers": ["m"], "labels": [{}]}
    ],
    "checklists": [{"idCard": "c", "checkItems": [{"id": "i", "name": "b", "state": "complete"}]}],
    "actions": [{"type": "commentCard", "data": {"text": "t", "card": {"id": "c"}}, "memberCreator": {}}],
}
SHRIMP: dict[str, Any] = {
    "tasks": [
        {
            **{"id": A, "name": "Design", "description": "Draw it.", "status": "completed", "dependencies": []},
            **{"summary": "Drawn.", "notes": "Ask Ann.", "createdAt": "2026-01-01T00:00:00Z"},
            "updatedAt": "2026-01-02T00:00:00Z",
        },
        {
            **{"id": B, "name": "Build", "description": "", "status": "in_progress", "summary": "So far."},
            "dependencies": [{"taskId": A}, {"taskId": C}],
            **{"implementationGuide": "1. Saw", "verificationCriteria": "It holds.", "analysisResult": "Wood."},
            "relatedFiles": [{"path": "a.py", "type": "CREATE", "description": "new", "lineStart": 1}],
        },
    ]
}


def test_tasks_of_shrimp() -> None:
    draft = load(SHRIMP)
    design, build = draft.items
    assert (draft.source, design.key, design.title) == ("shrimp", A, "Design")
    assert design.members | {"title": ""} == {
        **{"title": "", "description": "Draw it.", "status": "completed", "result_summary": "Drawn."}
    }
    assert (design.notes, build.notes) == ([Note("Ask Ann.")], [Note("So far.")])
    assert (build.blocked_by, build.members["status"]) == ([A], "in_progress")
    assert build.members["description"] == (
        "## Implementation guide\n\n1. Saw\n\n## Verification criteria\n\nIt holds.\n\n## Analysis result\n\nWood."
        "\n\n## Related files\n\n- a.py · CREATE · new · 1"
    )
    assert passed(draft) == {"`createdAt`": 1, "dependencies on tasks that are not in the file": 1}


def test_stories_of_ralph_in_their_order() -> None:
    stories: list[Any] = [
        {"id": "US-002", "title": "Second", "priority": 2, "passes": False, "dependsOn": ["US-001"], "notes": "n"},
        {"id": "US-001", "title": "First", "priority": 1, "passes": True, "acceptanceCriteria": ["a", "b"]},
    ]
    draft = load({"project": "Shop", "branchName": "ralph/cart", "verifyCommands": ["make"], "userStories": stories})
    first, second = draft.items
    assert (draft.source, first.key, second.key) == ("prd", "ralph/cart/US-001", "ralph/cart/US-002")
    assert first.members == {
        **{"title": "First", "status": "completed", "description": "## Acceptance criteria\n\n- a\n- b"}
    }
    assert (second.blocked_by, second.notes, "status" in second.members) == ([first.ref], [Note("n")], False)
    assert passed(draft) == {"`verifyCommands`": 1}


def test_features_of_a_harness() -> None:
    listed = load([{"category": "ui", "description": "New chat", "steps": ["Click", "Look"], "passes": False}])
    (chat,) = listed.items
    # Without a project, the position in the file is no identity.
    assert (listed.source, chat.key) == ("features", "")
    assert chat.members == {
        **{"title": "New chat", "description": "## Steps\n\n- Click\n- Look", "labels": ["category:ui"]}
    }
    features = [
        {"id": 7, "name": "a-slug", "title": "A", "description": "Why.", "status": "done", "priority": "high"},
        {"id": 8, "name": "b", "title": "", "status": "pending", "dependencies": ["F07", "A", "F99 (later)"]},
    ]
    a, b = (draft := load({"project": "p", "features": features})).items
    assert a.members | {"title": ""} == {"title": "", "description": "Why.", "status": "completed", "priority": "high"}
    assert (a.key, b.title, b.blocked_by) == ("p/7", "b", [a.ref])
    assert passed(draft) == {"`name`": 1, "dependencies on tasks that are not in the file": 1}


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ({"explanation": "e", "plan": [{"step": "a", "status": "in_progress"}]}, "codex"),
        ([{"step": "a", "status": "in_progress"}], "codex"),
        ({"todos": [{"description": "a", "status": "in_progress"}]}, "gemini"),
        ({"todos": [{"id": "1", "content": "a", "status": "in_progress", "priority": "medium"}]}, "todowrite"),
    ],
)
def test_plans_of_agents(value: Any, source: str) -> None:
    draft = load(value)
    assert (draft.source, draft.items[0].members) == (source, {"title": "a", "status": "in_progress"})
    assert passed(draft) == ({"`explanation`": 1} if "explanation" in value else {})


@pytest.mark.parametrize("member", ["content", "description", "step"])
def test_cancelled_todos_are_completed(member: str) -> None:
    (todo,) = load([{member: "a", "status": "cancelled"}]).items
    assert todo.members == {"title": "a", "status": "completed", "labels": ["cancelled"]}


def test_issues_of_gitlab() -> None:
    issue = {
        **{"id": 901, "iid": 4, "project_id": 3, "title": "Crash", "description": "d", "state": "opened"},
        **{"labels": ["bug"], "assignees": [{"username": "a", "name": "Ann"}], "assignee": {"name": "Ann"}},
        **{"due_date": "2026-12-01", "web_url": "https://gitlab.com/g/r/-/issues/4", "weight": 3},
        **{"milestone": {"id": 1, "title": "v1"}, "confidential": False, "issue_type": "issue"},
    }
    draft = load([issue, {**issue, "iid": 5, "title": "Gone", "state": "closed"}])
    crash = draft.items[0]
    assert (draft.source, crash.key) == ("gitlab", "gitlab.com/g/r/-/issues/4")
    assert crash.members == {
        **{"title": "Crash", "description": "d", "owner": "Ann", "due_day": "2026-12-01", "metadata": {"points": "3"}},
        **{"labels": ["bug", "milestone:v1"], "links": [{"kind": "url", "to": "https://gitlab.com/g/r/-/issues/4"}]},
    }
    assert (draft.items[1].members["status"], passed(draft)) == ("completed", {})


def test_pull_requests_of_github_are_skipped() -> None:
    issue = {"number": 1, "title": "a", "state": "open", "url": "u"}
    draft = load([issue, {**issue, "number": 2, "pull_request": {"url": "p"}}, {**issue, "isPullRequest": True}])
    assert ([item.title for item in draft.items], passed(draft)) == (["a"], {"pull requests": 2})


def test_lists_of_google_tasks() -> None:
    task = {"kind": "tasks#task", "id": "MTIzNDU2Nzg5MDEyMzQ1", "title": "Buy", "status": "needsAction"}
    child = {**task, "id": "MTIzNDU2Nzg5MDEyMzQ2", "title": "Milk", "parent": task["id"], "status": "completed"}
    more = {"notes": "n", "due": "2026-10-10T00:00:00.000Z", "links": [{"type": "email", "link": "https://m/1"}]}
    lists = [
        {"kind": "tasks#taskList", "title": "Home", "items": [{**task, **more}, child, {**child, "deleted": True}]},
        {"kind": "tasks#taskList", "title": "Work", "items": [{**task, "id": "MTIzNDU2Nzg5MDEyMzQ3", "title": "Call"}]},
        {"kind": "tasks#taskList", "title": "Empty"},
    ]
    draft = load({"kind": "tasks#taskLists", "items": lists})
    buy, milk, call = draft.items
    assert buy.members == {
        **{"title": "Buy", "description": "n", "due_day": "2026-10-10", "labels": ["Home"]},
        "links": [{"kind": "url", "to": "https://m/1"}],
    }
    assert (milk.parent, milk.members["status"], call.members["labels"]) == (buy.ref, "completed", ["Work"])
    assert (passed(draft), draft.converted) == ({"archived tasks": 1}, {})
    assert [item.title for item in load({"kind": "tasks#tasks", "items": [task, child]}).items] == ["Buy", "Milk"]


def test_nested_records_are_subtasks() -> None:
    story = {"title": "Top", "passes": False, "subtasks": [{"title": "Sub", "subtasks": ["Deep"]}, "Plain"]}
    draft = load({"userStories": [story, "Text"]})
    above = {item.title: item.parent for item in draft.items}
    refs = {item.title: item.ref for item in draft.items}
    assert above == {"Top": "", "Sub": refs["Top"], "Deep": refs["Sub"], "Plain": refs["Top"], "Text": ""}


def test_parts_that_are_left_out_are_counted() -> None:
    gone = {"title": "Gone", "passes": False, "archived": True, "subtasks": ["x", "y"]}
    story = {"title": "a", "passes": False, "status": "open", "state": "closed", "due": "", "deadline": "2026-01-01"}
    draft = load({"userStories": [gone, story]})
    assert draft.items[0].members == {"title": "a", "due_day": "2026-01-01"}
    assert passed(draft) == {"archived tasks": 1, "subtasks of skipped tasks": 2, "`state`": 1}


def test_relations_name_ids_or_unique_titles() -> None:
    records = [
        {"id": "1", "title": "One, two", "passes": False, "blocks": ["3", "9"]},
        {"id": "2", "title": "Twice", "passes": False, "parent": "One, two"},
        {"id": "3", "title": "Twice", "passes": False, "parent": "Twice", "relatedTo": "1"},
        {"id": "4", "title": "Four", "passes": False, "blockedBy": "One, two", "dependencies": "2; 3"},
    ]
    draft = load({"userStories": records})
    one, two, three, four = draft.items
    assert (two.parent, three.parent, three.blocked_by) == (one.ref, "", [one.ref])
    assert (three.relations, four.blocked_by) == ([("relates-to", one.ref)], [one.ref, two.ref, three.ref])
    assert passed(draft) == {
        **{"dependencies on tasks that are not in the file": 1, "parents that are not in the file": 1}
    }


@pytest.mark.parametrize(
    ("record", "member", "expected"),
    [
        ({"done": "2026-01-01"}, "status", "completed"),
        ({"completed": "no"}, "status", None),
        ({"completed": "In progress"}, "status", None),
        ({"status": "cancelled", "done": True}, "labels", ["cancelled"]),
        ({"lane": "Doing"}, "status", "in_progress"),
        ({"lane": "Ideas"}, "labels", ["list:Ideas"]),
        ({"lane": "Done", "status": "open"}, "labels", ["list:Done"]),
        ({"priority": "1"}, "priority", "high"),
        ({"type": "Bug"}, "labels", ["bug"]),
        ({"type": "Task"}, "labels", None),
        ({"assignee": "Doe, Jane"}, "owner", "Doe, Jane"),
        ({"assignees": "Ann, Bob"}, "owner", "Ann"),
        ({"assigned_to": "Ann Lee <ann@x.org>"}, "owner", "Ann Lee"),
        ({"estimated_hours": 1.5}, "estimate_ms", 5_400_000),
        ({"timeEstimate": "2h"}, "estimate_ms", 7_200_000),
        ({"due": 1_893_456_000}, "due", 1_893_456_000_000),
        ({"outcome": "Fine", "passes": True}, "result_summary", "Fine"),
    ],
)
def test_members_are_known_by_many_names(record: dict[str, Any], member: str, expected: Any) -> None:
    draft = load({"features": [{"title": "a", "done": False, **record}]})
    assert draft.items[0].members.get(member) == expected


def test_notes_keep_author_and_time() -> None:
    comments = ["plain", {"body": "b", "author": {"login": "ann"}, "createdAt": "2026-01-02T00:00:00Z"}]
    (task,) = load({"features": [{"title": "a", "passes": False, "comments": comments}]}).items
    assert task.notes == [Note("plain"), Note("b", "ann", 1_767_312_000_000)]


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        ({"features": [{"title": {"a": 1}, "passes": 1}]}, "", r"features\[0\].title: expected a string"),
        ({"features": [{"title": "a", "passes": 1}, 3]}, "", r"features\[1\]: expected an object"),
        ({"features": {"a": 1}}, "features", "features: expected a list"),
        ({"items": 1}, "googletasks", "items: expected a list"),
        ({"tasks": [{"name": "", "description": "", "dependencies": [1]}]}, "", "no tasks found"),
    ],
)
def test_members_of_wrong_types_are_rejected(value: Any, form: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        load(value, form)


STORY = {
    **{"id": "1", "title": "a", "description": "b", "status": "done", "lane": "Doing", "passes": False, "deleted": 0},
    **{"steps": ["a"], "notes": [{"body": "b", "author": {"login": "c"}, "createdAt": "2026-01-01"}], "priority": "p1"},
    **{
        "owner": "a",
        "due": "2026-01-01",
        "tags": ["a"],
        "type": "b",
        "milestone": {"title": "c"},
        "url": [{"url": "d"}],
    },
    **{"parent": "2", "dependsOn": [{"id": "2"}], "blocks": "2", "points": 1, "hours": 1, "outcome": "r"},
    "subtasks": [{"title": "b"}, "c"],
}
JUNK: list[Any] = [None, True, -1, 1e300, 10**400, "", "\ud800", "\0", [[]], [None], [{}], {"id": {"a": 1}}, "9" * 5000]


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    holder: Any = dict(enumerate(cast("list[Any]", value))) if isinstance(value, list) else value
    items = cast("dict[Any, Any]", holder).items() if isinstance(holder, dict) else ()
    return [path, *(below for key, item in items for below in list_paths(item, (*path, key)))]


@pytest.mark.parametrize("value", [{"project": "p", "stories": [STORY, {"title": "d", "priority": 1}]}, SHRIMP, BOARD])
def test_any_value_anywhere_is_imported_or_rejected(value: Any) -> None:
    for path in list_paths(value)[1:]:
        for junk in JUNK:
            changed = json.loads(json.dumps(value))
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = junk
            with contextlib.suppress(FormatError):
                assert load(changed).items, (path, junk)


@pytest.mark.parametrize("depth", [300, 900, 5_000])
def test_deep_nesting_is_imported_or_rejected(depth: int) -> None:
    text = json.dumps({"stories": [STORY | {"steps": "?", "dependsOn": "?"}]}).replace('"?"', "[" * depth + "]" * depth)
    try:
        assert build_draft([Document("f", text)]).items
    except FormatError as error:
        assert "nested too deeply" in str(error)


def test_cycles_and_repeated_ids_are_counted() -> None:
    chain = [{"id": str(n), "title": str(n), "passes": False, "dependsOn": [str((n + 1) % 3)]} for n in range(3)]
    draft = load({"userStories": [*chain, {"id": "1", "title": "other", "passes": False}, chain[0]]})
    assert [item.title for item in draft.items] == ["0", "1", "2", "other"]
    assert passed(draft) == {"repetitions of a task": 1, "a dependency that closes a cycle: 0 → 1 → 2 → 0": 1}
    assert "tasks with a duplicate id" in draft.converted


def test_names_are_compared_as_words() -> None:
    assert [normalize(name) for name in ("dueDate", "due_date", "Due  Date", "DUE-DATE")] == ["due date"] * 4


def test_tasks_of_unknown_programs_are_read_by_name() -> None:
    draft = load({"tasks": [{"title": "a", "done": True, "due": "2026-12-24"}, {"title": "b", "status": "done"}]})
    assert [item.members for item in draft.items] == [
        {"title": "a", "status": "completed", "due_day": "2026-12-24"},
        {"title": "b", "status": "completed"},
    ]


@pytest.mark.parametrize(
    ("value", "status", "remarks"),
    [
        *(
            (done, "completed", 0)
            for done in (True, 1, "x", "✓", "Done", "passed", "100%", "100", "2026-12-24 10:00 PST")
        ),
        *((share, "in_progress", 0) for share in ("50%", "50 %", 0.5, "99")),
        *((no, "pending", 0) for no in (False, 0, "0%", "no", "-", "N/A", "Incomplete", "Not done", "pending", "")),
        *((odd, "pending", 1) for odd in ("not run", "soon", "see #1234")),
    ],
)
def test_only_an_affirmation_completes_a_task(value: Any, status: str, remarks: int) -> None:
    draft = load([{"title": "a", "passes": value}], "features")
    assert (draft.items[0].members.get("status", "pending"), len(draft.converted)) == (status, remarks)


def test_archived_tasks_need_an_affirmation() -> None:
    draft = load([{"title": word, "archived": word} for word in ("-", "no", "yes", "maybe")], "features")
    assert ([item.title for item in draft.items], passed(draft)) == (["-", "no", "maybe"], {"archived tasks": 1})

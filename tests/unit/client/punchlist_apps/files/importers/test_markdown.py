import random
import time
from typing import Any

import pytest

from punchlist.base.metadata import visible_items
from punchlist_apps.common.terminal.render import as_tree
from punchlist_apps.files.exporters.markdown import write
from punchlist_apps.files.importers import markdown
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import MAX_TASKS, Draft
from punchlist_apps.files.importers.matching import compare
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.things import PRIORITIES, STATUSES
from punchlist_testing.unmeasured import mostly_untraced, untraced


def drafted(text: str) -> Draft:
    return markdown.read([Document("plan.md", text)])


def parse(text: str) -> list[dict[str, Any]]:
    call = compare(drafted(text), [], now=0).call
    return [{**one, "metadata": dict(visible_items(one["metadata"]))} for one in call]


def outline(text: str) -> list[tuple[str, str, str | None]]:
    plan = parse(text)
    titles = {task["ref"]: task["title"] for task in plan}
    return [(task["title"], task.get("status", "pending"), titles.get(task.get("parent", ""))) for task in plan]


def passed(text: str) -> dict[str, tuple[int, list[int]]]:
    return {one.text: (one.count, one.lines) for one in drafted(text).skipped.values()}


def test_all_items_are_tasks_without_boxes() -> None:
    assert outline("Words.\n\n- a\n  1. b\n* c\n") == [
        ("a", "pending", None),
        ("b", "pending", "a"),
        ("c", "pending", None),
    ]


@pytest.mark.parametrize(
    ("box", "members", "noted"),
    [
        (" ", {}, False),
        ("", {}, False),
        ("x", {"status": "completed"}, False),
        ("X", {"status": "completed"}, False),
        ("/", {"status": "in_progress"}, False),
        ("~", {"status": "in_progress"}, True),
        ("=", {"status": "paused"}, False),
        (">", {"status": "paused"}, True),
        ("-", {"status": "completed", "labels": ["cancelled"]}, True),
        ("!", {"priority": "high"}, True),
        ("?", {"labels": ["question"]}, True),
        ("Q", {}, True),
    ],
)
def test_box_variants_are_read_with_remarks(box: str, members: Any, noted: bool) -> None:
    draft = drafted(f"1) [{box}] a\n")
    assert draft.items[0].members == {"title": "a", **members}
    assert [one.lines for one in draft.converted.values()] == ([[1]] if noted else [])


def test_only_boxes_are_tasks_if_any_exist() -> None:
    text = (
        "---\nkey: value\n---\n# Plan\n\nT002 blocks T004.\n\n- this is prose\n\n## Phase 1\n"
        "- [x] T001 a\n  - _Requirements: 1_\n  - Create the folder\n- Group\n  - [ ] b\n-[ ] c\n"
        "```\n- [ ] not this\n```\n> - [ ] nor this\n\n<!-- - [ ] nor that -->\n\n"
        "| [ ] | d |\n|--|--|\n\n## Empty\n- [ ] \n"
    )
    assert outline(text) == [
        ("Phase 1", "pending", None),
        ("T001 a", "completed", "Phase 1"),
        ("Group", "pending", "Phase 1"),
        ("b", "pending", "Group"),
        ("c", "pending", "Phase 1"),
        ("Empty", "pending", None),
    ]
    assert parse(text)[1]["description"] == "- _Requirements: 1_\n- Create the folder"
    counted = passed(text)
    assert counted["lines of front matter"] == (3, [1])
    assert counted["the document's title"] == (1, [4])
    assert counted["tasks without a title"] == (1, [28])
    assert counted["boxes in code, tables, quotations or comments"][0] == 3
    assert counted["lines of text that belong to no task"][0] > 5


def test_heading_is_completed_with_its_subtasks() -> None:
    text = "# A\n- [x] a\n## B\n- [x] b\n# C\n- [ ] c\n# None\nwords\n"
    assert outline(text) == [
        ("A", "completed", None),
        ("a", "completed", "A"),
        ("B", "completed", "A"),
        ("b", "completed", "B"),
        ("C", "pending", None),
        ("c", "pending", "C"),
    ]
    assert parse(text)[2]["metadata"] == {"heading": 2}


def test_dash_means_in_progress_in_kiro_lists() -> None:
    text = "- [-] 1. a\n  - _Requirements: 1.1_\n"
    assert outline(text) == [("1. a", "in_progress", None)]


def test_loose_boxes_and_wrapped_titles_are_read() -> None:
    title = "A title of more than sixty characters that somebody has wrapped in"
    assert outline(f"[ ] a\n[x] b\n\n- [ ] {title}\n  the middle.\n  Text.\n") == [
        ("a", "pending", None),
        ("b", "completed", None),
        (f"{title} the middle.", "pending", None),
    ]


def test_indentation_makes_subtasks() -> None:
    text = "- [ ] a\n  - [ ] b\n    - [ ] c\n  - [ ] d\n- [ ] e\n\t- [ ] f\n1. [ ] g\n  - [ ] h\n"
    assert [(title, parent) for title, _, parent in outline(text)] == [
        ("a", None),
        ("b", "a"),
        ("c", "b"),
        ("d", "a"),
        ("e", None),
        ("f", "e"),
        ("g", None),
        ("h", "g"),
    ]


def test_deep_nesting_is_limited_and_counted() -> None:
    text = "".join(f"{'  ' * depth}- [ ] t{depth}\n" for depth in range(300))
    draft = drafted(text)
    assert len(draft.items) > 40
    hidden = draft.skipped["boxes in code, tables, quotations or comments"].count
    assert hidden == 300 - len(draft.items)


def test_quoted_and_indented_text_is_the_description() -> None:
    plan = parse("- [ ] a\n  > first\n  >\n  > third\n- [ ] b\n  some words\n\n  more\n\n- [ ] c\n")
    assert [task.get("description") for task in plan] == ["first\n\nthird", "some words\n\nmore", None]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("just words\n", 0, "no tasks found"),
        ("", 0, "no tasks found"),
        ('- [ ] a <!-- punchlist: {"colour": 1} -->\n', 1, "unknown member: colour"),
        ("- [ ] a <!-- punchlist: {no} -->\n", 1, "not JSON"),
        ('- [ ] a <!-- punchlist: {"ref": 5} -->\n', 1, "a wrong ref"),
        ('- [ ] a <!-- punchlist: {"blocked_by": 5} -->\n', 1, "a wrong blocked_by"),
        ('- [ ] a <!-- punchlist: {"labels": [5]} -->\n', 1, "values other than strings"),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"plan.md:{line}: " if line else "plan.md: ")


def test_long_prose_is_parsed_quickly() -> None:
    with untraced():
        draft = drafted("- [ ] a\n\n" + "Words that say nothing.\n" * 100_000)
    assert draft.skipped["lines of text that belong to no task"].count == 100_000


TRICKY = [
    *("plain", "a <!-- b -->", "x <!-- punchlist: {} -->", " [ ] y", "- [x] z", "two  spaces", "trail ", "1. n"),
    *("# h", "\\", "中文", "[x] box"),
]
TEXTS = ["", "one", "a\n\nb", "- [ ] item\n  more", "```\nopen", "> quote", " lead\n trail ", "cr\r\nlf", "\n\nx\n\n"]


def random_tasks(picks: random.Random) -> tuple[list[dict[str, Any]], list[int]]:
    tasks: list[dict[str, Any]] = []
    depths: list[int] = []
    for number in range(1, picks.randint(2, 12)):
        depth = picks.randint(0, depths[-1] + 1) if depths else 0
        above = [tasks[i]["id"] for i in range(len(tasks) - 1, -1, -1) if depths[i] == depth - 1]
        task: dict[str, Any] = {"id": str(number), "title": picks.choice(TRICKY), "status": picks.choice(STATUSES)}
        task["priority"] = picks.choice(PRIORITIES)
        task["description"] = picks.choice(TEXTS)
        task["metadata"] = picks.choice([{}, {"k": "--> <x>"}])
        task["fail_reason"] = picks.choice(["", "no"])
        task["labels"] = picks.choice([[], ["a", "cancelled"], ["ü"]])
        task["links"] = picks.choice([[], [{"kind": "url", "to": "https://x/<y>"}]])
        task["due"] = picks.choice([None, 1_798_135_200_000])
        task["due_day"] = picks.choice([None, "2026-12-24"]) if task["due"] else None
        task["estimate_ms"] = picks.choice([None, 3_600_000])
        task["notes"] = picks.choice([[], [{"text": "one\ntwo", "actor": "ann", "at": 1_798_135_200_001}]])
        if depth:
            task["parent"] = above[0]
        blockers = [one["id"] for one in tasks if picks.random() < 0.2]
        if blockers:
            task["blocked_by"] = blockers
        tasks.append(task)
        depths.append(depth)
    for task in tasks:
        task["blocks"] = [one["id"] for one in tasks if task["id"] in one.get("blocked_by", ())]
    return tasks, depths


def test_written_list_round_trips() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    picks = random.Random(seed)
    members = ("title", "status", "priority", "description", "metadata", "fail_reason", "parent", "blocked_by")
    others = ("labels", "links", "due_day", "estimate_ms", "notes")
    for _ in mostly_untraced(300):
        tasks, depths = random_tasks(picks)
        text = write(tasks, depths)
        plan = parse(text)
        number = {task["ref"]: str(index) for index, task in enumerate(plan, 1)}
        for task, found in zip(tasks, plan, strict=True):
            back = {"priority": "normal", "status": "pending", **found}
            back["parent"] = number.get(back.get("parent", ""))
            back["blocked_by"] = [number[one] for one in back.get("blocked_by", ())]
            back["notes"] = [
                {"text": note["text"], "actor": note["author"], "at": note["at"]} for note in back.get("notes", ())
            ]
            for member in (*members, *others):
                assert (back.get(member) or None) == (task.get(member) or None), (member, text)


PLAN = """\
# Backend

- [x] schema
- Data
  - [ ] seed

### Tests

- [x] unit

# Frontend <!-- punchlist: {"priority": "high"} -->

- [ ] login
"""


def exported(text: str) -> str:
    """Import text into an empty list, and return the list's export."""
    plan = parse(text)
    ids = {task["ref"]: str(index) for index, task in enumerate(plan, 1)}
    tasks = [
        {
            "status": "pending",
            "priority": "normal",
            **task,
            "id": ids[task["ref"]],
            "parent": ids.get(task.get("parent")),
        }
        for task in plan
    ]
    rows = as_tree(tasks)
    return write([task for _, task in rows], [depth for depth, _ in rows])


def test_headings_and_groups_are_written_back() -> None:
    assert exported(PLAN) == PLAN


@pytest.mark.parametrize(
    "text",
    [
        "- [ ] a\n\n## B\n\n- [ ] b\n",
        "## B #x\n\n- [x] b\n\n## C\n\n- [ ] c\n",
        '## C# <!-- punchlist: {"title": "C#"} -->\n\n- [ ] c\n',
        '## A <!-- punchlist: {"fail_reason": "1 of 1 task failed", "status": "failed"} -->\n\n- [\u2717] a'
        ' <!-- punchlist: {"status": "failed"} -->\n',
        '## A <!-- punchlist: {"metadata": {"heading": 1}} -->\n\n- [ ] a\n',
        '## A <!-- punchlist: {"description": "why"} -->\n\n- [ ] a\n',
        '- [ ] empty <!-- punchlist: {"metadata": {"heading": 2}} -->\n',
    ],
)
def test_other_heading_members_are_in_its_comment(text: str) -> None:
    assert exported(text) == text


def test_random_trees_round_trip() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    picks = random.Random(seed)
    for _ in mostly_untraced(300):
        tasks: list[dict[str, Any]] = []
        for index in range(1, picks.randrange(2, 12)):
            level = picks.choice((None, None, None, 0, 1, 2, 3, 6))
            parent = picks.choice((None, *(one["id"] for one in tasks)))
            status = picks.choice(("pending", "completed", "failed", "paused", "in_progress"))
            metadata = {} if level is None else {"heading": level}
            task = {"id": str(index), "title": f"t{index}", "status": status, "metadata": metadata, "parent": parent}
            tasks.append(task | ({"owner": "ann"} if picks.random() < 0.3 else {}))
        rows = as_tree(tasks)
        text = write([task for _, task in rows], [depth for depth, _ in rows])
        back = {task["title"]: task for task in parse(text)}
        title_of = {task["ref"]: task["title"] for task in back.values()}
        assert len(back) == len(tasks), text
        for task in tasks:
            found = back[task["title"]]
            assert title_of.get(found.get("parent"), "") == (f"t{task['parent']}" if task["parent"] else ""), text
            for member in ("status", "metadata", "owner"):
                default = "pending" if member == "status" else None
                assert (found.get(member) or default) == (task.get(member) or default), (member, task, text)


def test_too_many_boxes_are_rejected_before_parsing() -> None:
    text = "# A plan\n" + "- [ ] a\n" * (MAX_TASKS + 1)
    began = time.process_time()
    with pytest.raises(FormatError, match=f"^f:{MAX_TASKS + 2}: more than 100,000 tasks"):
        markdown.read([Document("f", text)])
    assert time.process_time() - began < 2, "parsing takes 5 s"

import random
from typing import Any

import pytest

from punchlist.cli.failure import FormatError
from punchlist.cli.formats import markdown
from punchlist.cli.formats.document import Document
from punchlist_schemas.things import PRIORITIES, STATUSES


def parse(text: str) -> list[dict[str, Any]]:
    return markdown.parse(Document("plan.md", text))


def outline(text: str) -> list[tuple[str, str, str | None]]:
    plan = parse(text)
    titles = {task["ref"]: task["title"] for task in plan}
    return [(task["title"], task["status"], titles.get(task.get("parent", ""))) for task in plan]


def test_boxes_bullets_and_numbers_are_tasks() -> None:
    text = "- [ ] a\n* [x] b\n+ [X] c\n1. d\n2) [/] e\n- [=] f\n- [!] g\n- h\n- [] i\n"
    assert [(title, status) for title, status, _ in outline(text)] == [
        ("a", "pending"),
        ("b", "completed"),
        ("c", "completed"),
        ("d", "pending"),
        ("e", "in_progress"),
        ("f", "paused"),
        ("g", "failed"),
        ("h", "pending"),
        ("i", "pending"),
    ]


def test_nesting_is_parentage_with_spaces_and_with_tabs() -> None:
    text = "- [ ] a\n  - [ ] b\n    - [ ] c\n  - [ ] d\n- [ ] e\n\t- [ ] f\n"
    assert [(title, parent) for title, _, parent in outline(text)] == [
        ("a", None),
        ("b", "a"),
        ("c", "b"),
        ("d", "a"),
        ("e", None),
        ("f", "e"),
    ]


def test_headings_paragraphs_rules_and_code_are_left_out() -> None:
    text = "# Plan\n\nSome words.\n\n- [ ] a\n\n---\n\n## More\n```\n- [ ] not this\n```\n- [ ] b\n"
    assert [title for title, _, _ in outline(text)] == ["a", "b"]


def test_quoted_and_indented_text_is_the_description() -> None:
    plan = parse("- [ ] a\n  > first\n  >\n  > third\n- [ ] b\n  some words\n\n  more\n\n- [ ] c\n")
    assert [task.get("description") for task in plan] == ["first\n\nthird", "some words\n\nmore", None]


def test_windows_line_ends_and_a_byte_order_mark_are_tolerated() -> None:
    assert [title for title, _, _ in outline("\ufeff- [ ] a\r\n- [x] b\r\n")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- [ ] a\n- [?] b\n", 2, "unknown box [?]"),
        ("- [ ] a\n\n- [ ] \n", 3, "without a title"),
        ("- [ ] a\n```\ncode\n", 2, "never closed"),
        ("- [ ] " + "x" * 501 + "\n", 1, "500"),
        ("- [ ] a\n- [ ] b\u2028c\n", 2, "title"),
        ("just words\n", 0, "no list items"),
        ("", 0, "no list items"),
        ('- [ ] a <!-- punchlist: {"colour": 1} -->\n', 1, "unknown member: colour"),
        ("- [ ] a <!-- punchlist: {no} -->\n", 1, "not JSON"),
        ('- [ ] a\n- [ ] b <!-- punchlist: {"blocked_by": ["9"]} -->\n', 2, "not in this file"),
        ('- a <!-- punchlist: {"ref": "1"} -->\n- b <!-- punchlist: {"ref": "1"} -->\n', 2, "already used in line 1"),
        ('- [ ] a <!-- punchlist: {"priority": "huge"} -->\n', 1, "priority"),
        ('- [ ] a <!-- punchlist: {"ref": 5} -->\n', 1, "ref"),
        ('- [ ] a <!-- punchlist: {"blocked_by": 5} -->\n', 1, "blocked_by"),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"plan.md:{line}: " if line else "plan.md: ")


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


def test_a_written_list_reads_back_whole() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    picks = random.Random(seed)
    members = ("title", "status", "priority", "description", "metadata", "fail_reason", "parent", "blocked_by")
    for _ in range(300):
        tasks, depths = random_tasks(picks)
        text = markdown.write(tasks, depths)
        plan = parse(text)
        number = {task["ref"]: str(index) for index, task in enumerate(plan, 1)}
        for task, found in zip(tasks, plan, strict=True):
            back = {"priority": "normal", "status": "pending", **found}
            back["parent"] = number.get(back.get("parent", ""))
            back["blocked_by"] = [number[one] for one in back.get("blocked_by", ())]
            for member in members:
                assert (back.get(member) or None) == (task.get(member) or None), (member, text)

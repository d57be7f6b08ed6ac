import pytest

from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError


def draft() -> Draft:
    return Draft("beads", "f")


def test_long_members_are_moved_or_truncated_with_remark() -> None:
    made = draft()
    item = made.add(
        "t" * 600,
        line=3,
        description="d" * 66_000,
        labels=["l" * 10_000, "a,b", "\x1b[31m", *map(str, range(40))],
        notes=["n" * 9_000, "  "],
        owner="o" * 600,
        links=[("url", "https://x"), ("url", "x" * 3_000), ("url", "a\nb"), *(("url", f"u{n}") for n in range(70))],
        metadata={"big": "x" * 200_000},
    )
    assert item is not None
    assert len(item.title) == 500
    assert item.members["description"].startswith("t" * 600 + "\n\nd")
    assert item.notes[0].text == "d" * 1_066
    assert sum(len(note.text) for note in item.notes) == 66_000 + 602 - 65_536 + 9_000
    assert item.members["labels"][:3] == ["l" * 63 + "…", "a b", "[31m"]
    assert (len(item.members["labels"]), len(item.members["links"]), len(item.members["owner"])) == (32, 64, 500)
    assert {remark.lines[0] for remark in (*made.skipped.values(), *made.converted.values())} == {3}
    assert "metadata" not in item.members


def test_surrogates_and_line_ends_in_titles_are_replaced() -> None:
    item = draft().add("a\ud800\nb\u2028c", description="\udfff", metadata={"a\ud800": ["\udfff"]})
    assert item is not None
    assert (item.title, item.members["description"]) == ("a? b c".replace("?", "\ufffd" * 3), "\ufffd" * 3)
    assert item.members["metadata"] == {"a" + "\ufffd" * 3: ["\ufffd" * 3]}


def test_a_task_without_a_title_is_counted() -> None:
    made = draft()
    assert made.add(" \n", line=2) is None
    assert made.skipped["tasks without a title"].lines == [2]
    with pytest.raises(FormatError, match=r"f: no tasks found \(beads\): skipped 1 × tasks without a title"):
        made.finish()


def test_duplicate_id_is_repetition_or_other_task() -> None:
    made = draft()
    made.add("a", key="1", line=1)
    assert made.add("a", key="1", line=2) is None
    other = made.add("b", key="1", line=3)
    assert made.add("b", key="1", line=4) is None
    assert other is not None
    assert other.key == "1~2"
    assert made.skipped["repetitions of a task"].lines == [2, 4]


def test_cyclic_and_dangling_relations_are_removed() -> None:
    made = draft()
    items = [made.add(name, key=name, line=line) for line, name in enumerate("abc", 1)]
    for item, (blockers, parent) in zip(items, ((["b", "x"], "c"), (["c", "b"], ""), (["a"], "a")), strict=True):
        assert item is not None
        item.blocked_by, item.parent, item.relations = blockers, parent, [("relates-to", "gone")]
    made.finish()
    edges = [(item.blocked_by, item.parent) for item in made.items]
    assert edges == [(["b"], "c"), (["c"], ""), ([], "")]
    assert made.skipped["a dependency that closes a cycle: a → b → c → a"].lines == [3]
    assert made.skipped["a parent that closes a cycle: a → c → a"].count == 1
    assert made.skipped["dependencies on tasks that are not in the file"].lines == [1]
    assert made.skipped["links to tasks that are not in the file"].count == 3


def test_long_chain_is_not_a_cycle() -> None:
    made = draft()
    for number in range(3_000):
        item = made.add(str(number), key=str(number))
        assert item is not None
        item.blocked_by = [str(number + 1)]
    made.finish()
    assert made.skipped["dependencies on tasks that are not in the file"].count == 1


def test_too_many_tasks_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.files.importers.draft.MAX_TASKS", 2)
    made = draft()
    for number in range(2):
        made.add(str(number))
    with pytest.raises(FormatError, match="f:9: more than 2 tasks"):
        made.add("c", line=9)

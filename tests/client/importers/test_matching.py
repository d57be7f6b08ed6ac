from typing import Any

from punchlist.importers import matching
from punchlist.importers.draft import Draft
from punchlist.importers.matching import SOURCE, compare, replacement


def task(ident: str, title: str, **members: Any) -> dict[str, Any]:
    return {"id": ident, "title": title, "status": "pending", "priority": "normal", **members}


def drafted(*items: dict[str, Any]) -> Draft:
    draft = Draft("beads", "f")
    for members in items:
        relations = {name: members.pop(name) for name in ("parent", "blocked_by") if name in members}
        item = draft.add(members.pop("title"), **members)
        assert item is not None
        item.parent, item.blocked_by = relations.get("parent", ""), relations.get("blocked_by", [])
    return draft.finish()


def test_a_task_is_known_by_where_it_came_from_whatever_its_title() -> None:
    present = [task("1", "old", metadata={SOURCE: "beads:b"}, status="completed"), task("2", "new")]
    found = compare(drafted({"title": "new", "key": "b"}, {"title": "other", "key": "c"}), present, now=0)
    assert found.call[0] == {"title": "new", "ref": "n0", "task": "1"}
    assert [item.title for item in found.added] == ["other"]
    assert found.call[1]["metadata"] == {SOURCE: "beads:c"}


def test_titles_that_repeat_are_known_by_their_parents_and_each_once() -> None:
    present = [task("1", "A"), task("2", "Test", parent="1"), task("3", "B"), task("4", "Test", parent="3")]
    items = [{"title": "B", "ref": "b"}, {"title": "Test", "parent": "b"}, {"title": "A", "ref": "a"}]
    found = compare(drafted(*items, {"title": "Test", "parent": "a"}, {"title": "Test"}), present, now=0)
    assert (found.unchanged, len(found.added)) == (4, 1)


def test_a_task_from_elsewhere_of_the_same_title_is_another() -> None:
    present = [task("1", "same", metadata={SOURCE: "beads:x"})]
    assert len(compare(drafted({"title": "same", "key": "y"}), present, now=0).added) == 1
    assert not compare(drafted({"title": "same"}), present, now=0).added


def test_what_is_brought_up_to_date_is_what_differs_and_never_what_was_done() -> None:
    present = [
        task("1", "a", status="completed", owner="ann", result_summary="did", labels=["x"], notes=[{"text": "Hm"}]),
        task("2", "b"),
    ]
    asked = {"title": "a", "status": "failed", "owner": "bob", "priority": "high", "labels": ["x", "y"], "due": 5}
    draft = drafted(
        {**asked, "not_before": 7, "notes": ["2026-01-02 ann: Hm", "more"], "blocked_by": ["b"]},
        {"title": "b", "ref": "b"},
    )
    found = compare(draft, present, now=10)
    assert found.call == [
        {
            **{"title": "a", "ref": "n0", "task": "1", "priority": "high", "labels": ["x", "y"], "due": 5},
            **{"blocked_by": ["2"], "notes": ["more"]},
        }
    ]
    assert {one.member for one in found.updates[0].differences} == {"priority", "labels", "due", "blocked_by", "notes"}
    taken = compare(draft, present, now=10, take_status=True).call[0]
    assert taken["status"] == "failed"


def test_a_list_is_made_the_files_without_losing_what_was_done() -> None:
    present = [task("1", "a", status="completed"), task("2", "gone", status="completed"), task("3", "open")]
    found = replacement(drafted({"title": "b"}, {"title": "a"}), present, now=0)
    assert [one["id"] for one in found.removed] == ["2"]
    assert found.call == [{"title": "b", "ref": "n0"}, {"title": "a", "ref": "n1", "task": "1", "status": "completed"}]


def test_what_one_call_does_not_take_follows_from_comparing_again(monkeypatch: Any) -> None:
    draft = drafted(
        {"title": "a", "key": "a", "blocked_by": ["c"], "parent": "c"},
        {"title": "b", "key": "b"},
        {"title": "c", "key": "c"},
    )
    found = compare(draft, [], now=0, most=2)
    assert not found.is_whole
    assert [(one["title"], one["blocked_by"], one.get("parent")) for one in found.call] == [
        ("a", [], None),
        ("b", [], None),
    ]
    present = [task("1", "a", metadata={SOURCE: "beads:a"}), task("2", "b", metadata={SOURCE: "beads:b"})]
    rest = compare(draft, present, now=0, most=2)
    assert (rest.is_whole, [one.get("task") for one in rest.call]) == (True, ["1", None])
    assert rest.call[0]["parent"] == rest.call[1]["ref"]
    monkeypatch.setattr(matching, "CALL_BYTES", 400)
    large = compare(drafted({"title": "a", "notes": ["n" * 200] * 4}), [], now=0)
    assert (large.is_whole, len(large.call[0]["notes"])) == (False, 1)

from typing import Any

import msgspec
import pytest

from punchlist.base.dates import When, parse_day
from punchlist.base.metadata import IMPORTED, SOURCE
from punchlist_apps.files.importers import matching
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.formats import build_draft
from punchlist_apps.files.importers.matching import compare, plan_replacement
from punchlist_testing.plan_samples import SAMPLES


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


def test_task_is_matched_by_source_despite_title() -> None:
    present = [task("1", "old", metadata={SOURCE: "beads:b"}, status="completed"), task("2", "new")]
    found = compare(drafted({"title": "new", "key": "b"}, {"title": "other", "key": "c"}), present, now=0)
    assert found.call[0].pop("metadata").keys() == {IMPORTED}
    assert found.call[0] == {"title": "new", "ref": "n0", "task": "1"}
    assert [item.title for item in found.added] == ["other"]
    assert found.call[1]["metadata"][SOURCE] == "beads:c"


def test_duplicate_titles_are_matched_by_parent() -> None:
    present = [task("1", "A"), task("2", "Test", parent="1"), task("3", "B"), task("4", "Test", parent="3")]
    items = [{"title": "B", "ref": "b"}, {"title": "Test", "parent": "b"}, {"title": "A", "ref": "a"}]
    found = compare(drafted(*items, {"title": "Test", "parent": "a"}, {"title": "Test"}), present, now=0)
    assert (found.unchanged, len(found.added)) == (4, 1)


def test_same_title_from_another_source_is_another_task() -> None:
    present = [task("1", "same", metadata={SOURCE: "beads:x"})]
    assert len(compare(drafted({"title": "same", "key": "y"}), present, now=0).added) == 1
    assert not compare(drafted({"title": "same"}), present, now=0).added


OLD = [{"text": "2026-01-02 ann: Hm", "actor": "root", "at": 1}]
"""A note as earlier versions imported it."""


def test_import_updates_only_differing_members() -> None:
    present = [
        task("1", "a", status="completed", owner="ann", result_summary="did", labels=["x"], notes=OLD),
        task("2", "b"),
    ]
    asked = {"title": "a", "status": "failed", "owner": "bob", "priority": "high", "labels": ["x", "y"], "due": 5}
    draft = drafted(
        {**asked, "not_before": 7, "notes": [Note("Hm", "ann", 1_767_312_000_000), Note("more")], "blocked_by": ["b"]},
        {"title": "b", "ref": "b"},
    )
    found = compare(draft, present, now=10)
    assert found.call[0].pop("metadata").keys() == {IMPORTED}
    assert found.call == [
        {
            **{"title": "a", "ref": "n0", "task": "1", "priority": "high", "labels": ["x", "y"], "due": 5},
            **{"blocked_by": ["2"], "notes": ["more"]},
        }
    ]
    assert {one.member for one in found.updates[0].differences} == {"priority", "labels", "due", "blocked_by", "notes"}
    taken = compare(draft, present, now=10, take_status=True).call[0]
    assert taken["status"] == "failed"


def test_replacement_keeps_unfinished_tasks() -> None:
    present = [task("1", "a", status="completed"), task("2", "gone", status="completed"), task("3", "open")]
    found = plan_replacement(drafted({"title": "b"}, {"title": "a"}), present, now=0)
    assert [one["id"] for one in found.removed] == ["2"]
    assert found.call[0].pop("metadata").keys() == {IMPORTED}
    assert found.call == [{"title": "b", "ref": "n0"}, {"title": "a", "ref": "n1", "task": "1", "status": "completed"}]


def test_next_comparison_gives_the_remaining_tasks(monkeypatch: Any) -> None:
    draft = drafted(
        {"title": "a", "key": "a", "blocked_by": ["c"], "parent": "c"},
        {"title": "b", "key": "b"},
        {"title": "c", "key": "c"},
    )
    found = compare(draft, [], now=0, max_tasks=2)
    assert not found.is_whole
    assert [(one["title"], one["blocked_by"], one.get("parent")) for one in found.call] == [
        ("a", [], None),
        ("b", [], None),
    ]
    present = [task("1", "a", metadata={SOURCE: "beads:a"}), task("2", "b", metadata={SOURCE: "beads:b"})]
    rest = compare(draft, present, now=0, max_tasks=2)
    assert (rest.is_whole, [one.get("task") for one in rest.call]) == (True, ["1", None])
    assert rest.call[0]["parent"] == rest.call[1]["ref"]
    monkeypatch.setattr(matching, "CALL_BYTES", 400)
    large = compare(drafted({"title": "a", "notes": ["n" * 200] * 4}), [], now=0)
    assert (large.is_whole, len(large.call[0]["notes"])) == (False, 1)


def imported(draft: Draft, present: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the list's tasks after an import."""
    found = compare(draft, present, now=0)
    tasks = {one["id"]: one for one in present}
    for number, wire in enumerate(found.call, len(tasks) + 1):
        given = {name: value for name, value in wire.items() if name not in ("ref", "task", "metadata")}
        old = tasks.get(wire.get("task", ""), {"id": str(number), "status": "pending", "priority": "normal"})
        tasks[old["id"]] = old | given | {"metadata": {**old.get("metadata", {}), **wire.get("metadata", {})}}
    return list(tasks.values())


def a(title: str, **members: Any) -> Draft:
    return drafted({"title": title, "key": "a", **members})


def test_list_changes_are_kept() -> None:
    (there,) = imported(a("old", description="text"), [])
    mine = {**there, "title": "mine"}
    found = compare(a("old", description="text"), [mine], now=0)
    assert (found.call, found.kept, found.unchanged) == ([], 1, 1)
    both = compare(a("new", description="more"), [mine], now=0)
    assert (both.kept, [one.member for one in both.updates[0].differences]) == (1, ["description"])
    assert both.call[0]["title"] == "mine"
    after = imported(a("new", description="more"), [mine])
    assert compare(a("new", description="more"), after, now=0).call == []


def test_changed_title_matches_file_without_ids() -> None:
    draft = drafted({"title": "tests", "ref": "a"}, {"title": "schema", "parent": "a"}, {"title": "schema"})
    first, below, beside = imported(draft, [])
    below |= {"title": "schema v2", "status": "completed", "parent": "1"}
    first |= {"title": "checks"}
    found = compare(draft, [first, below, beside], now=0)
    assert (found.added, found.updates, found.kept) == ([], [], 2)


def test_renamed_task_does_not_match_another_file() -> None:
    (there,) = imported(drafted({"title": "tests"}), [])
    other = Draft("beads", "g")
    other.add("tests")
    assert len(compare(other.finish(), [there | {"title": "checks"}], now=0).added) == 1
    assert not compare(other, [there], now=0).added


def test_task_with_a_reused_title_is_not_matched() -> None:
    draft = drafted({"title": "tests"})
    (there,) = imported(draft, [])
    found = compare(draft, [task("5", "tests"), there | {"title": "checks"}], now=0)
    assert (found.added, found.updates, found.kept) == ([], [], 1)


def test_list_changes_are_kept_without_ids() -> None:
    (there,) = imported(drafted({"title": "a", "description": "old"}), [])
    changed = drafted({"title": "a", "description": "new"})
    assert compare(changed, [there | {"description": "mine"}], now=0).kept == 1
    assert compare(changed, [there], now=0).call[0]["description"] == "new"


def test_change_made_only_in_file_is_imported() -> None:
    present = imported(a("old", priority="high", due=When(5)), [])
    found = compare(a("new", priority="low", due=When(5)), present, now=0)
    assert (found.kept, [one.member for one in found.updates[0].differences]) == (0, ["title", "priority"])


def test_member_set_in_the_list_is_kept() -> None:
    (there,) = imported(a("old"), [])
    assert compare(a("old", due=When(5)), [{**there, "due": 7}], now=0).kept == 1
    assert compare(a("old", priority="high"), [there], now=0).call[0]["priority"] == "high"


def test_import_without_marks_takes_the_files_value() -> None:
    present = [task("1", "mine", metadata={SOURCE: "beads:a"})]
    assert compare(a("old"), present, now=0).call[0]["title"] == "old"


def test_a_replacement_takes_the_files_values() -> None:
    draft = a("old", description="text")
    (there,) = imported(draft, [])
    (wire,) = plan_replacement(draft, [{**there, "title": "mine", "description": "mine"}], now=0).call
    assert (wire["title"], wire["description"]) == ("old", "text")


def test_a_day_is_compared_as_a_day() -> None:
    draft = a("x", due=parse_day("2126-12-24"), not_before=parse_day("2126-12-01"))
    (there,) = imported(draft, [])
    elsewhere = {**there, "due": 1, "not_before": there["not_before"] + 5 * 3_600_000}
    assert compare(draft, [elsewhere], now=0).call == []
    moved = compare(a("x", due=parse_day("2126-12-25"), not_before=parse_day("2126-12-02")), [elsewhere], now=0).call[0]
    assert (moved["due_day"], moved["not_before_day"]) == ("2126-12-25", "2126-12-02")
    assert moved["not_before"] == there["not_before"] + 86_400_000
    assert (
        compare(a("x", not_before=parse_day("2126-12-01")), [], now=1 << 50).call[0].keys() & {"not_before_day"}
        == set()
    )


def test_notes_are_compared_by_text_author_time() -> None:
    there = [task("1", "a", notes=[{"text": "ok", "actor": "ann", "at": 5}])]

    def more(*notes: Note) -> list[Any]:
        return [
            note
            for wire in compare(drafted({"title": "a", "notes": notes}), there, now=0).call
            for note in wire["notes"]
        ]

    assert more(Note("ok", "ann", 5), Note("ok")) == []
    assert more(Note("ok", "bob", 5), Note("ok", "ann", 6)) == [
        {"text": "ok", "author": "bob", "at": 5},
        {"text": "ok", "author": "ann", "at": 6},
    ]


def test_notes_of_any_author_and_time_are_compared() -> None:
    there = [task("1", "a", notes=[{"text": "x", "actor": "ann", "at": 1}])]
    for odd in (Note("y", "a\ud800b\nc", 1 << 53), Note("y", "n" * 999, 1 << 60), Note("y", "", 1)):
        (wire,) = compare(drafted({"title": "a", "notes": [odd]}), there, now=0).call
        assert msgspec.json.encode(wire)
        assert len(wire["notes"][0].get("author", "")) <= 128


def read_plan(text: str, form: str = "") -> Draft:
    return build_draft([Document("plan.md", text)], form)


def test_renamed_task_is_matched_after_the_form_changes() -> None:
    there = imported(read_plan("- [ ] a\n- [ ] z\n"), [])
    found = compare(
        read_plan("- [ ] a\n- [ ] z\n- [ ] c 📅 2126-12-24\n"), [there[0] | {"title": "b"}, there[1]], now=0
    )
    assert [item.title for item in found.added] == ["c"]


@pytest.mark.parametrize("form", sorted({*SAMPLES} - {"backlog"}))
def test_plan_imported_without_its_form_is_matched(form: str) -> None:
    before, after = read_plan(SAMPLES[form], "markdown"), read_plan(SAMPLES[form])
    assert after.source == form
    lines = {item.line for item in before.items}
    assert [item.title for item in compare(after, imported(before, []), now=0).added if item.line in lines] == []

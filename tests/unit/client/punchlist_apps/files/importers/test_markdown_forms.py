"""The forms of Markdown plans, in files as the programs write them."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.files.importers import markdown, markdown_forms
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.formats import build_draft, detect_format
from punchlist_apps.files.importers.markdown_forms import BY_NAME
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_testing import plan_figures
from punchlist_testing.plan_samples import SAMPLES


def read(text: str, name: str = "tasks.md") -> Draft:
    return build_draft([Document(name, text)])


def members(draft: Draft, title: str) -> dict[str, Any]:
    return next(item.members for item in draft.items if item.title == title)


def edges(draft: Draft) -> dict[str, list[str]]:
    """Return the numbers of each task's blockers, by its number."""
    number = {item.ref: item.title.split()[0].strip("*.") for item in draft.items}
    return {number[item.ref]: [number[one] for one in item.blocked_by] for item in draft.items if item.blocked_by}


def passed(draft: Draft) -> dict[str, int]:
    return {one.text: one.count for one in draft.skipped.values()}


@pytest.mark.parametrize("form", [*SAMPLES])
def test_form_is_detected_and_every_box_read(form: str) -> None:
    document = Document("plan.md", SAMPLES[form])
    assert detect_format(document) == form
    figures = plan_figures.measure(SAMPLES[form].encode(), "plan.md")
    assert figures["tasks"] == figures["boxes"] and figures["edges"] == figures["stated"]
    assert figures["exact"] == figures["ticks"] and (figures["ticks"] or form == "logseq")


def test_kiro_marks_are_read() -> None:
    draft = read(SAMPLES["kiro"])
    assert members(draft, "1.1 Write tests") == {
        "title": "1.1 Write tests",
        "description": "- Cover both sides\n- _Requirements: 1.1, 2.3_",
        "priority": "low",
        "labels": ["optional"],
        "metadata": {"requirements": "1.1, 2.3"},
    }
    assert members(draft, "2. Build the parser")["status"] == "in_progress"
    parents = {item.ref: item.title for item in draft.items}
    assert [parents.get(item.parent, "")[:1] for item in draft.items] == ["", "1", "", "2", ""]
    assert edges(draft) == {"2": ["1"], "2.1": ["1"], "3": ["1.1", "2"]}
    assert draft.converted == {}


def test_spec_kit_phases_and_marks_are_read() -> None:
    draft = read(SAMPLES["spec-kit"])
    assert [item.title for item in draft.items if "heading" not in item.members.get("metadata", {})] == [
        "T001 Create the project",
        "T002 Add a linter",
        "T003 Write the model (depends on T001)",
        "T004 Write the service (depends on T002-T003)",
        "T005 Measure",
    ]
    assert members(draft, "T003 Write the model (depends on T001)")["labels"] == ["parallel", "US1"]
    assert edges(draft) == {
        "Phase": ["Phase"],
        "Models": ["Phase"],
        "T003": ["T001", "Phase"],
        "T004": ["T002", "T003", "Phase"],
        "T005": ["T003", "Phase"],
    }
    assert passed(draft)["lines of text that belong to no task"] == 8


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("T001-T002 before T003", {"T003": ["T001", "T002"]}),
        ("T001 blocks T002, T003", {"T002": ["T001"], "T003": ["T001"]}),
        ("T001 → T002 → T003", {"T002": ["T001"], "T003": ["T002"]}),
        ("Tests (T001) must pass before code (T003).", {"T003": ["T001"]}),
        ("T003 can run after T001 and T002 complete", {"T003": ["T001", "T002"]}),
        ("T001–T002 before T002–T003", {"T002": ["T001"], "T003": ["T001"]}),
        ("T001 is first; T003 after that", {}),
        ("T001-T002 in parallel", {}),
        ("T003 does not depend on T001", {}),
        ("T003 isn't blocked by T001; T002 depends on T001", {"T002": ["T001"]}),
        ("`T001` [P] before all stories", {}),
        ("```\nT001 before T002\n```", {}),
    ],
)
def test_sentences_state_dependencies(sentence: str, found: dict[str, list[str]]) -> None:
    assert edges(read(f"- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Dependencies\n\n{sentence}\n")) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("depends on 2.1, 2.2", ["2.1", "2.2"]),
        ("Depends on: Task 1", ["1"]),
        ("_Dependencies: 2.1-2.3_", ["2.1", "2.2"]),
        ("**Dependencies:** CORE-1 and 1", ["CORE-1", "1"]),
        ("depends on 1 service", []),
        ("Dependencies: 1 package", []),
        ("independent of 2.1", []),
        ("depends on 1, 2.1 or 2.2", ["1", "2.1", "2.2"]),
        ("Depends on: 2.1/2.2", ["2.1", "2.2"]),
        ("(not blocked by 2.1)", []),
        ("independent: doesn't depend on 2.1", []),
        ("no longer depends on 2.1", []),
    ],
)
def test_texts_state_dependencies(text: str, found: list[str]) -> None:
    tasks = "## 1. Work\n\n- [ ] 1. a\n- [ ] 2.1 b\n- [ ] 2.2 c\n- [ ] CORE-1 d\n"
    assert edges(read(f"{tasks}- [ ] 3.1 Last\n  {text}\n", "openspec/changes/x/tasks.md")).get("3.1", []) == found


def test_contradictory_dependencies_are_left_out_and_counted() -> None:
    draft = read(
        "## Phase 1\n\n- [ ] T001 a (depends on T003, T099)\n  - [ ] T002 b (depends on T001)\n\n"
        "## Phase 2\n\n- [ ] T003 c\n\n## Phase 3\n\n- [ ] T004 d\n\n"
        f"T{'001, T'.join([''] * 25)}001-T004 before T{'001, T'.join([''] * 450)}004\n"
    )
    assert edges(draft) == {"T001": ["T003"], "T002": ["T003"], "Phase": ["Phase"], "T004": ["Phase"]}
    assert passed(draft) == {
        "dependencies on tasks that are not in the file": 1,
        "dependencies between a task and its own part": 1,
        "order of a phase that an earlier task needs": 1,
        "sentences with more than 400 dependencies": 1,
        "lines of text that belong to no task": 1,
    }


def test_repeated_ids_mean_the_nearest_task_above() -> None:
    text = "".join(f"## {part}\n\n- [ ] 1.1 a\n- [ ] 1.2 b\n  - _Dependencies: 1.1_\n" for part in ("A", "B"))
    draft = read(text, ".kiro/specs/x/tasks.md")
    lines = {item.ref: item.line for item in draft.items}
    assert [(item.line, [lines[one] for one in item.blocked_by]) for item in draft.items if item.blocked_by] == [
        (4, [3]),
        (9, [8]),
    ]


def test_obsidian_fields_become_members() -> None:
    draft = read(SAMPLES["obsidian"])
    assert members(draft, "Pay rent") == {
        **{"title": "Pay rent", "priority": "urgent", "due_day": "2099-12-01", "labels": ["home"]}
    }
    water = members(draft, "Water #garden plants")
    assert (water["status"], water["labels"], water["metadata"]) == (
        "in_progress",
        ["garden"],
        {"recurrence": "every 3 days"},
    )
    assert water["not_before_day"] == "2099-12-05"
    read_book = next(item for item in draft.items if item.title == "Read")
    assert (read_book.members["priority"], read_book.members["due_day"]) == ("high", "2099-12-24")
    assert read_book.blocked_by == [draft.items[0].ref]
    assert members(draft, "Ask 📅 2099-13-40") and members(draft, "📅 2099-12-01")
    assert passed(draft) == {
        **{"the document's title": 1, "`completion` of a task": 1, "`created` of a task": 1},
        "dependencies on tasks that are not in the file": 1,
    }


def test_lanes_of_a_board_set_the_status() -> None:
    draft = read(SAMPLES["kanban"])
    states = {item.title: item.members.get("status", "pending") for item in draft.items}
    assert states == {
        **{"First": "pending", "Second": "in_progress", "Ideas": "pending", "Third": "pending"},
        **{"Fourth": "completed", "Fifth": "completed"},
    }
    assert members(draft, "First")["due_day"] == "2099-12-02"
    assert [item.parent for item in draft.items if item.parent] == [draft.items[2].ref]
    assert passed(draft)["`time` of a task"] == 1


def test_logseq_markers_dates_and_drawers_are_read() -> None:
    draft = read(SAMPLES["logseq"])
    states = {item.title: item.members.get("status", "pending") for item in draft.items}
    assert states == {
        **{"Project": "pending", "Write it": "pending", "Part": "in_progress", "Over": "completed"},
        **{"Else": "pending", "Held": "paused", "Dropped": "completed"},
    }
    assert members(draft, "Write it") == {
        **{"title": "Write it", "priority": "high", "description": "more text\n  - plain note"},
        **{"due": members(draft, "Write it")["due"], "not_before": members(draft, "Write it")["not_before"]},
        "not_before_day": "2099-12-01",
    }
    assert passed(draft) == {"properties of blocks": 1, "lines of drawers": 3, "repetitions of dates": 1}


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("spec-kit", "- [ ] 1.1 a\n  - _Requirements: 1_\n", "tasks with ids such as .* the nearest form is kiro"),
        ("logseq", "- [ ] a\n", "blocks such as - TODO Title; the nearest form is markdown"),
        ("kanban", "# Words\n", "lanes with cards .* the nearest form is markdown"),
        ("", "# Words\n", "no tasks found; the nearest form is markdown, which needs list items"),
        ("", "---\ntitle: a\nstatus: b\n---\n## Acceptance Criteria\n- [ ] c\n", "front matter has no id"),
        ("", "---\nid: 1\ntitle: a\n---\n<!-- AC:BEGIN -->\n- [ ] c\n", "front matter has no status.*--from markdown"),
    ],
)
def test_file_of_another_form_is_refused(form: str, text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        build_draft([Document("plan.md", text)], form)


def test_folder_names_the_form() -> None:
    for name, form in ((".kiro/specs/a/tasks.md", "kiro"), ("/x/openspec/changes/a/tasks.md", "openspec")):
        assert read("- [-] Words\n", name).source == form
    assert read("- [-] Words\n", "x.kiro/specs.md").source == "markdown"


def test_working_folder_names_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".kiro" / "specs" / "a"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert read("- [-] Words\n").source == "kiro"


@pytest.mark.parametrize(
    ("form", "head", "below", "expected"),
    [
        ("logseq", "- TODO ", "SCHEDULED: <2099-12-01 Tue>", {"not_before_day": "2099-12-01"}),
        ("obsidian", "- [ ] ", "a note", {"due_day": "2099-12-01", "description": "a note"}),
        ("kiro", "- [ ] 1. ", "_Requirements: 1.1_", {"metadata": {"requirements": "1.1"}}),
        ("spec-kit", "- [ ] T001 ", "Depends on: T001", {"description": "Depends on: T001"}),
    ],
)
def test_line_below_a_long_title_is_kept(form: str, head: str, below: str, expected: dict[str, Any]) -> None:
    due = " 📅 2099-12-01" if form == "obsidian" else ""
    (item,) = build_draft([Document("plan.md", f"{head}{'word ' * 14}{due}\n  {below}\n")], form).items
    assert expected.items() <= item.members.items()


def test_flat_numbers_are_nested_at_every_level() -> None:
    draft = read("- [ ] 1. a\n- [ ] 1.1 b\n- [ ] 1.1.1 c\n", ".kiro/specs/x/tasks.md")
    first, second, third = draft.items
    assert (second.parent, third.parent) == (first.ref, second.ref)


def test_logseq_page_may_have_boxes() -> None:
    draft = read("- TODO a\n- [ ] b\n- DONE c\n")
    assert (draft.source, [item.title for item in draft.items]) == ("logseq", ["a", "b", "c"])
    assert markdown_forms.write_status("- [ ] b", "completed", BY_NAME["logseq"]) == "- [x] b"


def test_form_can_be_named() -> None:
    assert BY_NAME.keys() >= SAMPLES.keys()
    board = markdown.read([Document("TODO.md", "## Doing\n\n- [ ] a\n")], "kanban")
    assert [item.members for item in board.items] == [{"title": "a", "status": "in_progress"}]

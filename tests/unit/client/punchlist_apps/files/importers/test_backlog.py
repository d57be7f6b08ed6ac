"""Imports a project of Backlog.md."""

from pathlib import Path

import pytest

from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.formats import build_draft, read_documents
from punchlist_apps.files.importers.wrong import FormatError

TASK = """---
id: BACK-4.2
title: 'It''s: done'
status: In Progress
assignee:
  - '@ann'
  - '@bob'
created_date: '2026-11-01 10:00'
labels: [web, "two words"]
dependencies:
  - task-3
  - BACK-9
priority: high
type: bug
parent_task_id: task-4
references:
  - https://example.org/1
  - src/x.ts
plan_file: x
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Make it work.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 It works
<!-- AC:END -->
"""


def write_task(folder: Path, ident: str, title: str, status: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nid: {ident}\ntitle: >-\n  {title}\n  and more\nstatus: {status}\ndependencies: []\n---\n\nWords\n"
    (folder / f"{ident} - {title}.md").write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "backlog"
    for ident, title, status in (("task-10", "Ten", "To Do"), ("task-4", "Four", "To Do"), ("task-3", "Three", "Done")):
        write_task(root / ("completed" if status == "Done" else "tasks"), ident, title, status)
    (root / "tasks" / "back-4.2 - Part.md").write_text(TASK)
    (root / "tasks" / "readme.md").write_text("# Words\n")
    write_task(root / "drafts", "draft-1", "Draft", "Draft")
    write_task(root / "archive" / "tasks", "task-1", "Old", "To Do")
    return tmp_path


def titles(draft: Draft) -> list[str]:
    return [item.title for item in draft.items]


def test_folder_is_read_with_relations(project: Path) -> None:
    draft = build_draft(read_documents(str(project)))
    assert draft.source == "backlog"
    assert titles(draft) == ["Four and more", "It's: done", "Ten and more", "Three and more"]
    four, part, _, three = draft.items
    assert (part.key, part.parent, part.blocked_by) == ("BACK-4.2", four.ref, [three.ref])
    assert three.members == {"title": "Three and more", "description": "Words", "status": "completed"}
    assert part.members == {
        **{"title": "It's: done", "status": "in_progress", "priority": "high", "owner": "ann"},
        **{"labels": ["web", "two words", "bug"], "links": [{"kind": "url", "to": "https://example.org/1"}]},
        "description": "Make it work.\n\n## Acceptance Criteria\n- [ ] #1 It works",
    }
    assert {remark.text: remark.count for remark in draft.skipped.values()} == {
        **{"`plan_file`": 1, "assignees beyond the first": 1, "references that are not addresses": 1},
        **{"tasks in the folder drafts": 1, "tasks in the folder archive": 1},
        **{"dependencies on tasks that are not in the file": 1, "files without an id in their front matter": 1},
    }


def test_every_folder_of_a_project_is_found(project: Path) -> None:
    whole = titles(build_draft(read_documents(str(project))))
    assert titles(build_draft(read_documents(str(project / "backlog")))) == whole
    assert titles(build_draft(read_documents(str(project / "backlog" / "tasks")))) == whole[:3]


def test_one_task_is_a_task_and_its_criteria_are_not() -> None:
    assert titles(build_draft([Document("x.md", TASK)])) == ["It's: done"]
    wrong = Document("x.md", TASK.replace("status:", "state:"))
    with pytest.raises(FormatError, match="its front matter has no status"):
        build_draft([wrong], "backlog")


def test_tasks_with_marks_above_their_id_are_read(project: Path) -> None:
    tasks = project / "backlog" / "tasks"
    text = "---\nlabels:\n  - a\nid: task-5\ntitle: {}\nx-key: 3\n# note\nstatus: Done\n---\n"
    (tasks / "task-5.md").write_text(text.format("Labels"))
    (tasks / "task-6.md").write_text(text.replace("5", "6").format("Mark"), encoding="utf-8-sig")
    (tasks / "task-7.md").write_text(text.replace("5", "7").format("Wide"), encoding="utf-16")
    draft = build_draft(read_documents(str(project)))
    assert {"Labels", "Mark", "Wide"} < set(titles(draft))
    assert draft.skipped["`x-key`"].count == 3


def test_project_below_a_folder_archive_is_read(project: Path) -> None:
    (project / "archive").mkdir()
    moved = (project / "backlog").rename(project / "archive" / "backlog")
    draft = build_draft(read_documents(str(moved)))
    assert (len(draft.items), draft.skipped["tasks in the folder archive"].count) == (4, 1)

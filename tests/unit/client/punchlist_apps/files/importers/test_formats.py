import json
from pathlib import Path

import pytest

from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.formats import FORMATS, build_draft, detect_format, read_documents
from punchlist_apps.files.importers.wrong import FormatError


@pytest.mark.parametrize(
    ("text", "file", "form"),
    [
        ("- [ ] a", "-", "markdown"),
        ("[ ] a", "-", "markdown"),
        ("[x] a", "-", "markdown"),
        ("# Plan", "-", "markdown"),
        ("[a link](x)", "-", "markdown"),
        ('{"todos": [{"content": "a"}]}', "-", "todowrite"),
        ('[{"content": "a", "status": "pending"}]', "-", "todowrite"),
        ('{"tasks": [{"title": "a", "status_changed_at": 1}]}', "-", "json"),
        ('{"tasks": [{"title": "a", "done": true}]}', "-", "features"),
        ('{"format": "punchlist", "tasks": [{"details": 1}]}', "-", "json"),
        ('{"tasks": [{"id": 1, "dependencies": []}]}', "-", "taskmaster"),
        ('{"tasks": [{"name": "a", "description": "b", "dependencies": []}]}', "-", "shrimp"),
        ('{"plan": [{"step": "a", "status": "pending"}]}', "-", "codex"),
        ('{"todos": [{"description": "a", "status": "pending"}]}', "-", "gemini"),
        ('[{"description": "a", "status": "pending"}]', "-", "gemini"),
        ('[{"category": "a", "description": "b", "steps": [], "passes": false}]', "-", "features"),
        ('{"features": [{"name": "a", "status": "done"}]}', "-", "features"),
        ('{"userStories": [{"title": "a"}]}', "-", "prd"),
        ('{"stories": [{"title": "a", "passes": true}]}', "-", "prd"),
        ('{"lists": [], "cards": [{"id": "1", "name": "a", "idList": "2"}]}', "-", "trello"),
        ('{"items": [{"kind": "tasks#task", "title": "a"}]}', "-", "googletasks"),
        ('[{"iid": 1, "title": "a", "state": "opened"}]', "-", "gitlab"),
        ('{"_type":"memory","key":"k"}\n{"id":"a","title":"b","issue_type":"bug"}', "-", "beads"),
        ("Name;Status;Due\n", "-", "csv"),
        ("Title, what we do\nand when\n", "-", "markdown"),
        ('"Launch" plan, v2\n\n- a\n', "notes.txt", "markdown"),
        ("sep=;\nName;Status\n", "-", "csv"),
        ("ID,Title,Status,Team\n1,a,open,A\n", "x.csv", "csv"),
        ('{"master": {"tasks": []}}', "-", "taskmaster"),
        ('\n{"id": "1", "subject": "a"}', "-", "claude"),
        ('{"id":"a","title":"b","issue_type":"bug"}\n{"half', "-", "beads"),
        ('{"issues":[{"id":"a","title":"b","status":"open"}]}', "-", "beads"),
        ('[{"uuid":"a","description":"b"}]', "-", "taskwarrior"),
        ('{"description":"b","entry":"x"},\n{"description":"c","entry":"x"}', "-", "taskwarrior"),
        ('[\n{"number":1,"title":"b"}]', "-", "github"),
        ("BEGIN:VCALENDAR\n", "-", "ics"),
        ("* TODO a\n", "-", "org"),
        ("#+TITLE: x\n", "-", "org"),
        ("words", "x.org", "org"),
        ("Summary;Issue key;Status\n", "-", "jira"),
        ("ID,Team,Title,Status\n", "x.csv", "linear"),
        ("ID,Title,Status\n", "x.csv", "csv"),
        ("id,title,issue_type\n", "issues.csv", "beads"),
        ("(A) a +b\n", "-", "todotxt"),
        ("one\ntwo\n", "todo.txt", "todotxt"),
        ("Words:\n- one\n", "todo.txt", "markdown"),
        ("# List\n\n  - one\n", "todo.txt", "markdown"),
        ("one\n- two\n", "todo.txt", "todotxt"),
        ("one\ntwo\n", "notes.txt", "markdown"),
    ],
)
def test_format_is_detected_by_content_and_name(text: str, file: str, form: str) -> None:
    assert detect_format(Document(file, text)) == form
    assert form in FORMATS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n", "the file is empty"),
        ("{}", "unknown JSON format"),
        ("{", "f:1: not JSON"),
        ('{"a": 1}', r"members: a\); name the format with --from"),
        ("[]", "an empty list"),
        ("[3]", "unknown JSON format"),
        ('{"seq":1,"version":1}\n{"seq":2}\n', "these are events"),
        ('{"todos": []}', "`todos` is an empty list"),
        ('{"tasks": [{"name": "a", "description": "b"}]}', r"nearest is shrimp, but it lacks `tasks\[\].dependencies`"),
        ('{"id": "1", "name": "a", "idList": "2"}', "nearest is trello, but it lacks `cards`"),
        ('[{"description": "a", "status": "b", "price": 1}]', r"status\); name the format"),
        ('{"subject": "a", "token": "b"}', r"members: subject, token\); name the format"),
    ],
)
def test_error_for_unknown_format_lists_members(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        detect_format(Document("f", text))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("id,price\n", "no column is title, task"),
        ("name,price\n", "no column is status.*--from csv"),
        ('"name,price\n', "not a table: unexpected end of data"),
    ],
)
def test_error_for_unknown_table_says_what_is_missing(header: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        detect_format(Document("f.csv", header))


def test_named_format_is_used(tmp_path: Path) -> None:
    assert build_draft([Document("f", "- {")], "markdown").source == "markdown"
    with pytest.raises(FormatError, match="a folder is read as"):
        build_draft([Document("1.json", "- a"), Document("2.json", "- b")], "markdown")
    session = tmp_path / "tasks" / "s1"
    session.mkdir(parents=True)
    for number in (2, 1):
        (session / f"{number}.json").write_text(json.dumps({"id": str(number), "subject": f"t{number}"}))
    (session / ".lock").write_text("")
    for folder in (session, tmp_path / "tasks"):
        assert [item.key for item in build_draft(read_documents(str(folder))).items] == ["s1/1", "s1/2"]
    with pytest.raises(FormatError, match="no tasks in this folder"):
        read_documents(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "text", "form"),
    [
        (".beads/issues.jsonl", '{"id":"a","title":"b","status":"open"}', "beads"),
        (".taskmaster/tasks/tasks.json", '{"tasks":[{"id":1,"title":"b","subtasks":[]}]}', "taskmaster"),
        ("issues.csv", "id,title,issue_type\na,b,bug\n", "beads"),
        ("prd.json", '{"userStories":[{"title":"b"}]}', "prd"),
        ("feature_list.json", '[{"description":"b","passes":false}]', "features"),
        ("shrimp_data/tasks.json", '{"tasks":[{"name":"b","description":"c","dependencies":[]}]}', "shrimp"),
        ("tasks.json", '{"tasks":[{"name":"b","description":"c","dependencies":[]}]}', "shrimp"),
    ],
)
def test_project_folder_is_read_by_its_files(tmp_path: Path, file: str, text: str, form: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert build_draft(read_documents(str(tmp_path))).source == form


def test_folder_with_several_task_files_is_rejected(tmp_path: Path) -> None:
    for file in ("prd.json", "feature_list.json"):
        (tmp_path / file).write_text("{}")
    with pytest.raises(FormatError, match=r"2 task files; import one: prd.json, feature_list.json"):
        read_documents(str(tmp_path))


def test_other_encoding_is_remarked() -> None:
    draft = build_draft([Document("f", "- [ ] a", "UTF-16")])
    assert list(draft.converted) == ["a file in UTF-16"]

"""Tables of any origin, as other programs export them."""

import pytest

from punchlist_apps.files.importers.document import STDIN, Document, decode
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.formats import build_draft
from punchlist_apps.files.importers.wrong import FormatError


def load(text: str, name: str = "sheet.csv", form: str = "") -> Draft:
    return build_draft([Document(name, text)], form)


def passed(draft: Draft) -> dict[str, int]:
    return {one.text: one.count for one in draft.skipped.values()}


def test_any_table_with_titles() -> None:
    draft = load("Title;Status;Assignee;Deadline;Färbung\nOrder paper;In Progress;Ann;2026-03-31;red\n;Open;;;\n")
    (task,) = draft.items
    assert (draft.source, task.line) == ("csv", 2)
    assert task.members == {"title": "Order paper", "status": "in_progress", "owner": "Ann", "due_day": "2026-03-31"}
    assert passed(draft) == {"`färbung`": 1, "tasks without a title": 1}
    assert load("Title\tStatus\na\tdone\n", "x.tsv").items[0].members["status"] == "completed"


TRELLO = (
    "Card ID,Card Name,Card URL,Card Description,Labels,Members,Due Date,List ID,List Name,Board Name,Archived\n"
    '60d5f0000000000000000001,Tiles,https://trello.com/c/a,"Bath, 20 m²","Shop (green), Now (red_dark)",,'
    "2026-10-09T08:00:00.000Z,l,Doing,Home,false\n60d5f0000000000000000002,Old,,,,,,l,Doing,Home,true\n"
)
ASANA = (
    "Task ID,Created At,Completed At,Last Modified,Name,Section/Column,Assignee,Due Date,Tags,Notes,Projects,"
    "Parent task,Blocked By (Dependencies)\n"
    '1201000000000001,2026-09-01,,2026-09-02,Check out,Payments,Lan,2026-09-30,"web, pay",Card,Shop,,\n'
    '1201000000000002,2026-09-01,2026-09-05,2026-09-05,"Forms, all",,,,,,Shop,Check out,\n'
    '1201000000000003,2026-09-01,,2026-09-02,Ship,,,,,,Shop,,"Forms, all"\n'
)
TODOIST = (
    "TYPE,CONTENT,DESCRIPTION,PRIORITY,INDENT,AUTHOR,RESPONSIBLE,DATE,DATE_LANG,TIMEZONE\n"
    "meta,view_style=list,,,,,,,,\nsection,Kitchen,,,,,,,,\n"
    "task,Repot the basil @garden @home,Clay,1,1,Kai (48),Sam (51),Oct 5 2026,en,\nnote,Ask me@x.org,,,,,,,,\n"
    "task,Water it,,4,2,Kai (48),,every friday,en,\ntask,Next,,2,1,,,,,\n"
)
AZURE = (
    "ID,Work Item Type,Title 1,Title 2,Assigned To,State,Tags,Iteration Path,Priority,Original Estimate\n"
    "7,Epic,Pay,,Ann Lee <ann@x.org>,Active,a; b,Shop\\S1,2,\n8,Bug,,Crash,,Closed,,,1,3\n9,Task,,Slow,,New,,,4,\n"
)
GITLAB = (
    "Title,Description,Issue ID,URL,State,Author,Assignee,Due Date,Closed At (UTC),Milestone,Labels,Time Estimate\n"
    'Fix,d,12,https://gitlab.com/g/r/-/issues/12,Open,Bo,Ann,2026-12-01,,v1,"a,b",3600\n'
)
NOTION = 'Name,Assign,Status,Date\nCard,me,In progress,"December 1, 2026"\n'
GITHUB = "number,title,state,labels,assignees,body,url\n12,Crash,open,bug,octo,x,https://github.com/o/r/issues/12\n"


def test_table_of_trello() -> None:
    draft = load(TRELLO)
    (tiles,) = draft.items
    assert tiles.key == "60d5f0000000000000000001"
    assert tiles.members == {
        **{"title": "Tiles", "description": "Bath, 20 m²", "status": "in_progress", "due": 1_791_532_800_000},
        **{"labels": ["Shop", "Now"], "links": [{"kind": "url", "to": "https://trello.com/c/a"}]},
    }
    assert passed(draft) == {"archived tasks": 1}


def test_table_of_asana() -> None:
    draft = load(ASANA)
    check, forms, ship = draft.items
    assert check.members == {
        **{"title": "Check out", "description": "Card", "owner": "Lan", "due_day": "2026-09-30"},
        "labels": ["web", "pay", "project:Shop", "list:Payments"],
    }
    assert (forms.parent, forms.members["status"], ship.blocked_by) == (check.ref, "completed", [forms.ref])
    assert passed(draft) == {"`created at`": 3}


def test_table_of_todoist() -> None:
    draft = load(TODOIST)
    basil, water, later = draft.items
    assert basil.members == {
        **{"title": "Repot the basil", "description": "Clay", "priority": "urgent", "owner": "Sam"},
        **{"due_day": "2026-10-05", "labels": ["garden", "home", "list:Kitchen"]},
    }
    assert (basil.notes, water.parent, later.parent) == ([Note("Ask me@x.org")], basil.ref, "")
    assert ("priority" in water.members, later.members["priority"]) == (False, "high")
    assert passed(draft) == {
        **{"rows of type “meta”": 1, "`date_lang`": 2, "`date` that is not a date (“every friday”)": 1}
    }


def test_tree_of_azure_devops() -> None:
    pay, crash, slow = load(AZURE).items
    assert (pay.key, crash.parent, slow.parent) == ("sheet/7", pay.ref, pay.ref)
    assert pay.members == {
        **{"title": "Pay", "status": "in_progress", "owner": "Ann Lee"},
        "labels": ["a", "b", "epic", "iteration:Shop\\S1"],
    }
    assert crash.members == {
        **{"title": "Crash", "status": "completed", "priority": "high", "estimate_ms": 10_800_000, "labels": ["bug"]}
    }


@pytest.mark.parametrize(
    ("text", "key", "members"),
    [
        (GITLAB, "gitlab.com/g/r/-/issues/12", {"owner": "Ann", "due_day": "2026-12-01", "estimate_ms": 3_600_000}),
        (GITHUB, "github.com/o/r/issues/12", {"owner": "octo", "labels": ["bug"], "description": "x"}),
        (NOTION, "", {"owner": "me", "due_day": "2026-12-01", "status": "in_progress"}),
    ],
)
def test_tables_of_other_programs(text: str, key: str, members: dict[str, object]) -> None:
    (task,) = load(text).items
    assert (task.key, members.items() <= task.members.items()) == (key, True)


def test_short_ids_belong_to_their_file() -> None:
    text = "ID,Title,Status\n1,a,open\n"
    names = ("a/tasks.csv", "b/other.csv", STDIN)
    assert [load(text, name).items[0].key for name in names] == ["tasks/1", "other/1", ""]


@pytest.mark.parametrize(
    ("days", "due", "remark"),
    [
        (("03/04/2026", "31/03/2026"), "2026-04-03", {}),
        (("03/04/2026", "03/31/2026"), "2026-03-04", {}),
        (("03/04/2026",), "2026-03-04", {"dates that may be month/day or day/month, imported as month/day": 1}),
    ],
)
def test_order_of_day_and_month_is_the_columns(days: tuple[str, ...], due: str, remark: dict[str, int]) -> None:
    draft = load("title,due\n" + "".join(f"a{n},{day}\n" for n, day in enumerate(days)))
    assert draft.items[0].members["due_day"] == due
    assert {one.text: one.count for one in draft.converted.values()} == remark


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_quoted_newlines_of_windows(encoding: str) -> None:
    text = '\r\n"Title";"Status\r\nnow";"Notes"\r\n"a ""b""";;"one\r\ntwo"\r\n"c";"";""\r\n'
    draft = build_draft([decode(text.encode(encoding), "x.csv")], "csv")
    assert [(item.title, item.line, item.notes) for item in draft.items] == [
        ('a "b"', 4, [Note("one\ntwo")]),
        ("c", 6, []),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "f.csv:1: no column has titles; rename one of them to title: a, b"),
        ('title,status\n"a,b\n', "f.csv:2: not a table: unexpected end of data"),
        (f"title,status\n{'x' * (1 << 24)}x,\n", "f.csv:2: not a table: field larger than field limit"),
        ("title,status\n", "no tasks found"),
    ],
)
def test_broken_table_is_rejected(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        load(text, "f.csv", "csv")


def test_cell_of_ten_megabytes_is_cut_with_remarks() -> None:
    draft = load(f"title,status,description\na,open,{'x' * (10 << 20)}\n")
    assert len(draft.items[0].members["description"]) == 65_536
    assert passed(draft) == {"notes beyond 200, or 256 Ki characters, of one task": 1}


def test_share_of_completion_is_read() -> None:
    draft = load("Task Name,Assigned To,% Complete\na,-,0%\nb,Ann,50%\nc,,100%\n")
    assert [item.members.get("status", "pending") for item in draft.items] == ["pending", "in_progress", "completed"]
    assert ("owner" in draft.items[0].members, draft.converted) == (False, {})


def test_numbers_of_two_repositories_are_distinct() -> None:
    text = "number,title,state\n12,a,open\n"
    assert [load(text, f"{name}.csv").items[0].key for name in "ab"] == ["a/12", "b/12"]


def test_empty_cells_name_no_task() -> None:
    draft = load(
        "title,status,depends on\n" + "".join(f"a{n},open,{cell}\n" for n, cell in enumerate(("-", "None", "N/A")))
    )
    assert passed(draft) == {}


def test_separator_of_excel_is_no_header() -> None:
    (task,) = load("sep=;\ntitle;status\na,b;done\n").items
    assert (task.line, task.members) == (3, {"title": "a,b", "status": "completed"})


def test_reading_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.files.importers.tables.MAX_TASKS", 2)
    with pytest.raises(FormatError, match="more than 100,000 tasks"):
        load('title,status\na,open\nb,open\nc,open\n"never closed,')

"""Every format except Markdown, with files as other programs write them."""
# ruff: noqa: E501 - the programs write lines this long

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.files.importers import (
    beads,
    claude,
    export,
    formats,
    github,
    ics,
    org,
    tables,
    taskmaster,
    taskwarrior,
    todotxt,
)
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Item, Note
from punchlist_apps.files.importers.wrong import FormatError


def doc(text: str, name: str = "f") -> list[Document]:
    return [Document(name, text)]


def titles(draft: Draft) -> list[str]:
    return [item.title for item in draft.items]


def members(draft: Draft, title: str) -> dict[str, Any]:
    return found(draft, title).members


def found(draft: Draft, title: str) -> Item:
    return next(item for item in draft.items if item.title == title)


def passed(draft: Draft) -> dict[str, int]:
    return {one.text: one.count for one in draft.skipped.values()}


def local(year: int, month: int, day: int, hour: int = 0) -> int:
    return round(datetime(year, month, day, hour).timestamp() * 1000)  # noqa: DTZ001 - local


LATER = {"not_before": 4_070_908_800_000, "not_before_day": "2099-01-01"}
ISSUES = [
    {"_type": "memory", "key": "k", "value": "v"},
    {
        **{"id": "bd-1", "title": "Epic", "status": "open", "priority": 0, "issue_type": "epic", "labels": ["ui"]},
        **{
            "description": "What.",
            "design": "How.",
            "acceptance_criteria": "When.",
            "notes": "Mine.",
            "estimated_minutes": 90,
        },
        **{"created_at": "2026-01-01T00:00:00Z", "assignee": "ann", "external_ref": "https://x/1", "source_repo": "."},
        "comments": [{"id": 1, "author": "bob", "text": "Hm.", "created_at": "2026-01-02T00:00:00Z"}],
    },
    {
        **{"id": "bd-2", "title": "Closed", "status": "closed", "priority": 2, "close_reason": "Done so."},
        "dependencies": [
            {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "parent-child"},
            {"issue_id": "bd-2", "depends_on_id": "bd-3", "type": "blocks"},
            {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "discovered-from"},
            {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "tracks"},
        ],
    },
    {"id": "bd-3", "title": "Later", "status": "deferred", "priority": 4, "defer_until": "2099-01-01T00:00:00Z"},
    {"id": "bd-1.1", "title": "Child", "status": "in_progress", "priority": 1, "due_at": "2026-02-30"},
    {"id": "bd-4", "title": "Parked", "status": "deferred"},
    {"id": "bd-5", "title": "Gone", "status": "tombstone"},
    {"id": "bd-6", "title": "Stuck", "status": "blocked"},
]


def test_issues_of_beads() -> None:
    draft = beads.read(doc("\n".join(map(json.dumps, ISSUES))))
    assert titles(draft) == ["Epic", "Closed", "Later", "Child", "Parked", "Stuck"]
    epic = found(draft, "Epic")
    assert epic.members == {
        **{"title": "Epic", "priority": "urgent", "labels": ["ui", "epic"], "owner": "ann", "estimate_ms": 5_400_000},
        "description": "What.\n\n## Design\n\nHow.\n\n## Acceptance criteria\n\nWhen.",
        "links": [{"kind": "url", "to": "https://x/1"}],
    }
    assert epic.notes == [Note("Mine."), Note("Hm.", "bob", 1_767_312_000_000)]
    closed = found(draft, "Closed")
    assert (closed.members["status"], closed.members["result_summary"]) == ("completed", "Done so.")
    assert (closed.parent, closed.blocked_by, closed.relations) == ("bd-1", ["bd-3"], [("discovered-from", "bd-1")])
    assert members(draft, "Later") == {"title": "Later", "priority": "low", **LATER}
    assert (found(draft, "Child").parent, members(draft, "Child")["status"]) == ("bd-1", "in_progress")
    assert (members(draft, "Parked")["status"], "status" in members(draft, "Stuck")) == ("paused", False)
    assert passed(draft) == {
        **{"records of type “memory”": 1, "`created_at`": 1, "`source_repo`": 1, "deleted issues": 1},
        **{"`due_at` that is not a date (“2026-02-30”)": 1, "dependencies of type “tracks”": 1},
    }


def test_agents_of_gas_town_are_no_work() -> None:
    issue = {"id": "gt-1", "title": "Work", "status": "open", "issue_type": "task", "labels": ["gt:task"]}
    own = [{"issue_type": "agent"}, {"labels": ["gt:rig"]}, {"issue_type": "message"}, {"ephemeral": True}]
    lines = [issue, *({**issue, "id": f"gt-{n}", "title": "x", **change} for n, change in enumerate(own, 2))]
    draft = beads.read(doc("\n".join(map(json.dumps, lines))))
    assert titles(draft) == ["Work"]
    kinds = {f"issues of type “{kind}”, which are no work": 1 for kind in ("agent", "rig", "message")}
    assert passed(draft) == kinds | {"ephemeral issues": 1}


@pytest.mark.parametrize("form", ["list", "rows"])
def test_issues_of_beads_as_one_json_value(form: str) -> None:
    issues = [
        {"id": "a", "title": "A", "status": "open", "parent": "b"},
        {"id": "b", "title": "B", "issue_type": "bug"},
    ]
    draft = formats.build_draft(doc(json.dumps(issues if form == "list" else {"rows": issues})))
    assert (draft.source, draft.items[0].parent, members(draft, "B")["labels"]) == ("beads", "b", ["bug"])


def test_tables_of_the_database_of_beads() -> None:
    draft = beads.read(
        [
            Document(
                "d/issues.csv",
                "id,title,description,status,priority,issue_type\na,A,two words,open,1,task\nb,B,,closed,2,bug\n",
            ),
            Document("d/dependencies.csv", "issue_id,depends_on_id,type\na,b,blocks\n"),
            Document("d/labels.csv", "issue_id,label\na,x\na,y\n"),
            Document("d/comments.csv", "issue_id,author,text,created_at\nb,ann,Hm,2026-01-01 00:00:00\n"),
        ]
    )
    first = found(draft, "A")
    assert (first.blocked_by, first.members["labels"], first.members["priority"]) == (["b"], ["x", "y"], "high")
    assert found(draft, "B").notes == [Note("Hm", "ann", 1_767_225_600_000)]


def test_beads_database_backup(tmp_path: Path) -> None:
    issue = {"status": "open", "ephemeral": 0, "metadata": '{"pr": 7}', "title": "A", "id": "a", "issue_type": "task"}
    wisp = {**issue, "id": "w", "title": "Patrol", "ephemeral": 1}
    edge = {"issue_id": "a", "depends_on_id": "b", "type": "blocks"}
    for name, rows in {
        "issues": [issue, {**issue, "id": "b", "title": "B", "metadata": "{half"}, wisp],
        "dependencies": [edge, {**edge, "issue_id": "gone"}],
        "labels": [{"issue_id": "a", "label": "ui"}],
        "events": [{"issue_id": "a", "event_type": "created"}],
    }.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    draft = formats.build_draft(formats.read_documents(str(tmp_path)))
    assert (draft.source, titles(draft), passed(draft)) == ("beads", ["A", "B"], {"ephemeral issues": 1})
    first = found(draft, "A")
    assert (first.blocked_by, first.members["labels"]) == (["b"], ["ui"])
    assert first.members["metadata"]["pr"] == 7


EXPORT = """[
{"id":1,"description":"Write","due":"20261123T000000Z","entry":"20261122T201252Z","priority":"H","project":"web.api","status":"pending","uuid":"177c","annotations":[{"entry":"20261122T201252Z","description":"see https://example.org/x"}],"tags":["code"],"urgency":40.5},
{"id":2,"description":"Test","estimate":"PT2H","status":"waiting","uuid":"9949","scheduled":"20991220T000000Z","wait":"20991224T000000Z","depends":["177c"]},
{"id":3,"description":"Begun","start":"20261122T201252Z","status":"pending","uuid":"8036","depends":"177c,9949"},
{"id":4,"description":"Rent","recur":"monthly","status":"recurring","uuid":"1430"},
{"id":0,"description":"Over","end":"20261122T201252Z","status":"completed","uuid":"0e88"},
{"id":0,"description":"Gone","status":"deleted","uuid":"c813"}
]
"""


@pytest.mark.parametrize("is_array", [True, False])
def test_taskwarrior_export(is_array: bool) -> None:
    text = EXPORT if is_array else EXPORT.strip("[]\n").replace("},\n", "}\n")
    draft = formats.build_draft(doc(text))
    assert (draft.source, titles(draft)) == ("taskwarrior", ["Write", "Test", "Begun", "Over"])
    write = found(draft, "Write")
    assert write.members == {
        **{"title": "Write", "priority": "high", "due_day": "2026-11-23", "labels": ["code", "project:web.api"]},
        "links": [{"kind": "url", "to": "https://example.org/x"}],
    }
    assert write.notes == [Note("see https://example.org/x", "", 1_795_378_372_000)]
    test = members(draft, "Test")
    assert (test["not_before"], test["estimate_ms"]) == (4_101_753_600_000, 7_200_000)
    assert (found(draft, "Begun").blocked_by, members(draft, "Begun")["status"]) == (["177c", "9949"], "in_progress")
    assert passed(draft)["deleted tasks"] == passed(draft)["templates of recurring tasks (each task is imported)"] == 1


def test_task_master_file_old_and_tagged() -> None:
    sub = [
        {"id": 1, "title": "Part", "status": "done"},
        {"id": 2, "title": "Other", "dependencies": [1, "2"], "status": "review"},
    ]
    tasks = [
        {
            "id": 1,
            "title": "One",
            "priority": "high",
            "details": "D",
            "testStrategy": "T",
            "subtasks": sub,
            "complexity": 5,
        },
        {
            "id": 2,
            "title": "Two",
            "description": "Text",
            "assignee": "ann",
            "dependencies": [1, "1.1", 99],
            "status": "cancelled",
        },
    ]
    old = formats.build_draft(doc(json.dumps({"tasks": tasks, "meta": {}})))
    assert (old.source, titles(old)) == ("taskmaster", ["One", "Part", "Other", "Two"])
    assert members(old, "One")["description"] == "## Details\n\nD\n\n## Test strategy\n\nT"
    other = found(old, "Other")
    assert (other.key, other.parent, other.blocked_by, other.members["status"]) == (
        "1.2",
        "1",
        ["1.1", "2"],
        "in_progress",
    )
    two = found(old, "Two")
    assert two.members["owner"] == "ann"
    assert (two.blocked_by, two.members["status"], two.members["labels"]) == (["1", "1.1"], "completed", ["cancelled"])
    # The plan had a cycle: 2 waits for 1, and "Other", a part of 1, waits for 2. A part isn't a dependency of its parent.
    tagged: Any = {"master": {"tasks": tasks[:1]}, "feature": {"tasks": tasks[1:], "metadata": {}}, "note": 3}
    new = taskmaster.read(doc(json.dumps(tagged)))
    assert [item.key for item in new.items] == ["1", "1.1", "1.2", "feature/2"]
    assert members(new, "Two")["labels"] == ["feature", "cancelled"]
    assert passed(new)["`note`"] == 1


def test_task_master_file_with_plain_list_and_tags() -> None:
    def one(title: str) -> list[dict[str, Any]]:
        return [{"id": 1, "title": title}, {"id": 2, "title": f"{title} two", "dependencies": [1]}]

    tags: Any = {"alpha": {"tasks": one("a")}, "note": 3}
    both = formats.build_draft(doc(json.dumps({"tasks": one("plain"), "master": {"tasks": one("main")}, **tags})))
    assert [(item.key, item.blocked_by) for item in both.items] == [
        *[("tasks/1", []), ("tasks/2", ["tasks/1"]), ("1", []), ("2", ["1"]), ("alpha/1", []), ("alpha/2", ["alpha/1"])]
    ]
    plain = taskmaster.read(doc(json.dumps({"tasks": one("plain"), **tags})))
    assert [item.key for item in plain.items] == ["1", "2", "alpha/1", "alpha/2"]
    assert passed(plain) == passed(both) == {"`note`": 1}


def test_claude_code_folders_one_session_and_all() -> None:
    def file(session: str, **task: Any) -> Document:
        return Document(f"{session}/{task['id']}.json", json.dumps(task))

    one = [
        file("s1", id="10", subject="ten", blockedBy=["2"], activeForm="Doing"),
        file("s1", id="2", subject="two", blocks=["10", "77"], status="in_progress", owner="ann", metadata={"k": 1}),
        file("s1", id="3", subject="gone", status="deleted"),
    ]
    draft = formats.build_draft(one)
    assert (titles(draft), found(draft, "ten").blocked_by) == (["two", "ten"], ["s1/2"])
    assert members(draft, "two") == {"title": "two", "status": "in_progress", "owner": "ann", "metadata": {"k": 1}}
    many = formats.build_draft([*one, file("another-session", id="2", subject="two")])
    assert [item.members.get("labels") for item in many.items] == [["session-another-"], ["session-s1"], ["session-s1"]]
    todos = claude.read(doc(json.dumps([{"content": "a", "status": "pending"}]), "todos/s3-agent-s3.json"))
    assert members(todos, "a") == {"title": "a", "labels": ["session-s3-agent"]}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([{"id": "1"}], "subject: expected a string"),
        ([{"subject": "a"}], "id: expected"),
        ([{"id": "1", "subject": "a", "status": "odd"}], "status: expected one of completed"),
        ([{"id": "1", "subject": "a"}, {"id": 1, "subject": "b"}], "already used in this session"),
    ],
)
def test_invalid_claude_code_task_is_rejected(files: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        claude.read([Document(f"s/{index}.json", json.dumps(one)) for index, one in enumerate(files)])


def test_todos_of_todowrite() -> None:
    todo = {"content": "a", "status": "in_progress", "activeForm": "Doing a", "priority": "high", "colour": "red"}
    draft = formats.build_draft(doc(json.dumps({"todos": [todo]})))
    assert members(draft, "a") == {"title": "a", "status": "in_progress", "active_form": "Doing a", "priority": "high"}
    assert passed(draft) == {"`colour`": 1}
    for wrong in ([{"content": 3}], [{"content": "a", "status": "odd"}], [3]):
        with pytest.raises(FormatError, match=r"todos\[0\]"):
            claude.read_todos(doc(json.dumps(wrong)))


def test_issues_of_github() -> None:
    issues = [
        {
            **{
                "number": 7,
                "title": "Crash",
                "state": "OPEN",
                "body": "b\r\n",
                "url": "https://github.com/o/r/issues/7",
            },
            **{"labels": [{"name": "bug"}], "assignees": [{"login": "ann"}, {"login": "bob"}]},
            "milestone": {"title": "v1", "dueOn": "2026-12-24T00:00:00Z"},
            "comments": [{"author": {"login": "eve"}, "body": "Me, too", "createdAt": "2026-01-02T00:00:00Z"}],
        },
        {"number": 8, "title": "No", "state": "CLOSED", "stateReason": "NOT_PLANNED", "reactionGroups": [1]},
        {"number": 9, "title": "Yes", "state": "closed", "html_url": "https://github.com/o/r/issues/9", "comments": 4},
    ]
    draft = formats.build_draft(doc(json.dumps(issues)))
    crash = found(draft, "Crash")
    assert (draft.source, crash.key, crash.notes) == (
        "github",
        "o/r/issues/7",
        [Note("Me, too", "eve", 1_767_312_000_000)],
    )
    assert crash.members["labels"] == ["bug", "milestone:v1"]
    assert (crash.members["owner"], crash.members["due_day"]) == ("ann", "2026-12-24")
    assert members(draft, "No") == {"title": "No", "status": "completed", "labels": ["cancelled"]}
    assert members(draft, "Yes")["status"] == "completed"
    assert passed(draft)["assignees beyond the first"] == 1
    assert passed(draft)["comments, which are not in the file (gh: --json comments)"] == 4


JIRA = (
    "Summary,Issue key,Issue id,Issue Type,Status,Priority,Resolution,Assignee,Due date,Labels,Labels,Component/s,Description,"
    "Comment,Comment,Original Estimate,Outward issue link (Blocks),Inward issue link (Blocks),Inward issue link (Relates),"
    "Parent,Custom field (Epic Link),Status Category,Sprint,Votes\n"
    'Big one,A-1,10001,Epic,To Do,Highest,,,30/Sep/26 12:00 AM,ui api,"x",Core,"Two\nlines",'
    "01/Jan/26 10:00 AM;ann;First,plain,7200,A-2,,,,,To Do,S1,3\n"
    ",A-9,10009,Task,To Do,Low,,,,,,,,,,,,,,,,,,\n"
    "Small one,A-2,10002,Sub-task,Weird,Medium,Done,bob,,,,,,,,,,A-3,A-1,10001,,Done,,\n"
    "Given up,A-3,10003,Bug,Closed,Trivial,Won't Do,,31/Feb/26,,,,,,,,,,,,A-1,,,\n"
)


def test_jira_table() -> None:
    draft = formats.build_draft(doc(JIRA, "x.csv"))
    assert (draft.source, titles(draft)) == ("jira", ["Big one", "Small one", "Given up"])
    big, small, given = (found(draft, title) for title in titles(draft))
    assert big.members == {
        **{"title": "Big one", "description": "Two\nlines", "priority": "urgent", "due_day": "2026-09-30"},
        **{"estimate_ms": 7_200_000, "labels": ["ui", "api", "x", "component:Core", "epic"]},
    }
    assert big.notes == [Note("First", "ann", local(2026, 1, 1, 10)), Note("plain")]
    assert (small.parent, small.blocked_by, small.relations) == ("A-1", ["A-1", "A-3"], [("relates-to", "A-1")])
    assert (small.members["status"], small.members["result_summary"], small.members["owner"]) == (
        "completed",
        "Done",
        "bob",
    )
    assert (given.members["labels"], given.members["status"], given.parent) == (
        ["bug", "cancelled"],
        "completed",
        "A-1",
    )
    assert given.line == 6
    assert passed(draft) == {
        "`sprint`": 1,
        "tasks without a title": 1,
        "`due date` that is not a date (“31/Feb/26”)": 1,
    }


def test_table_with_tabs_and_overlong_rows() -> None:
    text = "Key\tIssue Type\tParent\tSummary\tStatus\nC-1\tTask\tC-9\tOne\tDone\textra\nC-1\tTask\t\tAnother\tTo Do\n"
    draft = formats.build_draft(doc(text, "jira.csv"))
    assert [(item.key, item.parent) for item in draft.items] == [("C-1", ""), ("C-1~2", "")]
    assert "a parent that closes a cycle" not in str(draft.skipped)
    assert passed(draft)["`(after the last column)`"] == 1


def test_surplus_jira_cells_become_labels() -> None:
    text = (
        "Summary,Issue key,Issue id,Status,Due Date,Votes,Labels,Description,Environment\n"
        "Wide,X-1,1,To Do,11/May/24,27,label1, label2,the description,specific\n"
        "Plain,X-2,2,To Do,,3,label3,another,\n"
    )
    draft = formats.build_draft(doc(text, "x.csv"))
    wide, plain = found(draft, "Wide"), found(draft, "Plain")
    assert (wide.members["labels"], wide.members["description"]) == (["label1", "label2"], "the description")
    assert (plain.members["labels"], plain.members["description"]) == (["label3"], "another")
    assert [one.text for one in draft.converted.values()] == [
        "rows with more cells than columns, whose surplus was imported as labels"
    ]


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("Thu Jun 25 2026 23:00:00 GMT+0000 (GMT+00:00)", 26),  # midnight in London, in summer
        ("Fri Jun 26 2026 07:00:00 GMT+0000 (Coordinated Universal Time)", 26),  # midnight in California
        ("Fri Jun 26 2026 00:00:00 GMT+0200 (CEST)", 26),
        ("2026-06-26", 26),
    ],
)
def test_linear_due_date_is_the_users_day(written: str, day: int) -> None:
    text = f'ID,Team,Title,Status,Due Date,Parent issue\nE-1,Core,Fix,Todo,"{written}",\n'
    draft = formats.build_draft(doc(text, "x.csv"))
    assert members(draft, "Fix")["due_day"] == f"2026-06-{day}" and not passed(draft).get("`due date`")


def test_linear_table() -> None:
    head = "ID,Team,Title,Description,Status,Estimate,Priority,Project,Assignee,Labels,Completed,Canceled,Due Date,Parent issue,Blocked by,Related to\n"
    text = (
        head
        + 'E-1,Core,"Fix, it","Multi\nline",In Progress,3,Urgent,Atlas,Ada,"bug, api",,,2026-02-05,,E-2,E-3\n'
        + "E-2,Core,Old,,Done,,No priority,,,,2026-01-01T00:00:00Z,,,E-1,,\n"
        + "E-3,Core,Drop,,Backlog,,Low,,,,,2026-01-01T00:00:00Z,,,,\n"
    )
    draft = formats.build_draft(doc(text, "x.csv"))
    fix = found(draft, "Fix, it")
    assert (draft.source, fix.blocked_by, fix.relations) == ("linear", ["E-2"], [("relates-to", "E-3")])
    assert fix.members == {
        **{
            "title": "Fix, it",
            "description": "Multi\nline",
            "status": "in_progress",
            "priority": "urgent",
            "owner": "Ada",
        },
        **{"due_day": "2026-02-05", "labels": ["bug", "api", "project:Atlas"], "metadata": {"points": "3"}},
    }
    assert (found(draft, "Old").parent, members(draft, "Old")["status"]) == ("E-1", "completed")
    assert members(draft, "Drop")["labels"] == ["cancelled"]


def test_unclosed_quote_is_reported_with_line() -> None:
    with pytest.raises(FormatError, match="f:2: not a table"):
        tables.read_linear(doc('id,title,status\n1,"open,Todo\n2,b,Done\n'))


TODO = """(A) 2026-01-01 Call mom +family @phone due:2026-12-24
x 2026-01-15 2026-01-10 Buy milk for +party now pri:B
# a comment
Wait t:2099-01-01 id:w rec:1w
  Part p:w dep:w https://x.org/a
due:2026-02-30 Impossible
"""


def test_lines_of_todo_txt() -> None:
    draft = formats.build_draft(doc(TODO, "todo.txt"))
    assert (draft.source, titles(draft)) == (
        "todotxt",
        ["Call mom", "Buy milk for +party now", "Wait", "Part https://x.org/a", "Impossible"],
    )
    assert members(draft, "Call mom") == {
        **{"title": "Call mom", "priority": "urgent", "labels": ["+family", "@phone"], "due_day": "2026-12-24"}
    }
    assert members(draft, "Buy milk for +party now")["priority"] == "high"
    assert members(draft, "Wait")["not_before"] == local(2099, 1, 1)
    part = found(draft, "Part https://x.org/a")
    assert (part.parent, part.blocked_by) == ("w", ["w"])
    assert {"lines that begin with #, or without a word": 1, "`rec:`": 1}.items() <= passed(draft).items()
    assert todotxt.is_todotxt("(A) x\n") and not todotxt.is_todotxt("some\nwords\nof prose\nhere\nand\nthere\n")


ORG = """#+TITLE: Mine
#+TODO: TODO NEXT | DONE DROPPED
Some words.
* Project [1/2] :work:
Prose of the project.
** TODO [#A] Write [[https://x.org][the page]] :web:
DEADLINE: <2026-12-24 Thu 18:00> SCHEDULED: <2099-01-01 Thu +1w>
:PROPERTIES:
:ID: abc
:Effort: 1:30
:CUSTOM: x
:END:
:LOGBOOK:
- State "DONE" from "TODO"
:END:
A body with [[https://y.org]].
#+begin_src sh
* not a heading
#+end_src
- [ ] first
  - [X] second
- [-] [0/1]
** DROPPED Old
CLOSED: [2026-01-01 Thu]
** DONE Over
* Notes
Nothing.
"""


def test_unusual_todo_txt() -> None:
    text = "Log it [x]\n------\nMake search [x]\n    - book list [x]\n    - \nUser page -> []\n"
    draft = formats.build_draft(doc(text, "todo.txt"))
    assert [(item.title, item.members.get("status")) for item in draft.items] == [
        ("Log it", "completed"),
        ("Make search", "completed"),
        ("book list", "completed"),
        ("User page ->", None),
    ]
    assert passed(draft) == {"lines that begin with #, or without a word": 2}


def test_headings_and_boxes_of_org_mode() -> None:
    draft = formats.build_draft(doc(ORG, "x.org"))
    assert (draft.source, titles(draft)) == ("org", ["Project", "Write the page", "first", "second", "Old", "Over"])
    write = found(draft, "Write the page")
    assert write.members == {
        **{
            "title": "Write the page",
            "priority": "high",
            "due": local(2026, 12, 24, 18),
            "not_before": local(2099, 1, 1),
            "not_before_day": "2099-01-01",
        },
        **{"estimate_ms": 5_400_000, "labels": ["work", "web"], "links": [{"kind": "url", "to": "https://y.org"}]},
        "description": "A body with [[https://y.org]].\n#+begin_src sh\n* not a heading\n#+end_src",
    }
    assert (write.key, write.parent) == ("abc", found(draft, "Project").ref)
    assert (found(draft, "second").parent, members(draft, "second")["status"]) == (
        found(draft, "first").ref,
        "completed",
    )
    assert (members(draft, "Old")["status"], members(draft, "Over")["status"]) == ("completed", "completed")
    counted = passed(draft)
    assert {
        "CLOSED": 1,
        "property `CUSTOM`": 1,
        "lines of the drawer LOGBOOK": 1,
        "repetitions of dates": 1,
    }.items() <= counted.items()
    assert (counted["headings without a task"], counted["tasks without a title"]) == (1, 1)


def test_all_headings_of_plain_org_outline_are_tasks() -> None:
    draft = org.read(doc("* a\n** b\nwords\n* c\n"))
    assert titles(draft) == ["a", "b", "c"]
    done = org.read(doc("* p\n** CANCELLED c\n** DONE d\n"))
    assert [item.members.get("status") for item in done.items] == ["completed"] * 3


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
SUMMARY:No
END:VEVENT
BEGIN:VTODO
UID:1
SUMMARY:Pay\\, now
DESCRIPTION:A long line that is fol
 ded\\nand has two lines
DUE;TZID="Asia/Tokyo":20261224T180000
DTSTART;VALUE=DATE:20990101
PRIORITY:1
CATEGORIES:home,a\\,b
URL:https://x.org
COMMENT:Hm
PERCENT-COMPLETE:50
RRULE:FREQ=DAILY
BEGIN:VALARM
ACTION:DISPLAY
END:VALARM
END:VTODO
BEGIN:VTODO
UID:2
DESCRIPTION:No summary\\nat all
STATUS:CANCELLED
RELATED-TO:1
RELATED-TO;RELTYPE=DEPENDS-ON:1
RELATED-TO;RELTYPE=SIBLING:1
RELATED-TO;RELTYPE=CHILD:1
PRIORITY:9
COMPLETED:20260101T000000Z
a line of nothing
END:VTODO
END:VCALENDAR
"""


def test_to_dos_of_a_calendar() -> None:
    draft = formats.build_draft(doc(CALENDAR))
    assert (draft.source, titles(draft)) == ("ics", ["Pay, now", "No summary"])
    pay, none = draft.items
    assert pay.members == {
        **{
            "title": "Pay, now",
            "description": "A long line that is folded\nand has two lines",
            "status": "in_progress",
        },
        **{
            "priority": "urgent",
            "due": 1_798_102_800_000,
            "not_before": local(2099, 1, 1),
            "not_before_day": "2099-01-01",
            "labels": ["home", "a,b".replace(",", " ")],
        },
        "links": [{"kind": "url", "to": "https://x.org"}],
    }
    assert (pay.notes, none.parent, none.blocked_by, none.relations) == (
        [Note("Hm")],
        "1",
        ["1"],
        [("relates-to", "1")],
    )
    assert (none.members["status"], none.members["labels"]) == ("completed", ["cancelled"])
    assert passed(draft) == {"VEVENT": 1, "VALARM": 1, "`RRULE`": 1, "lines that are not properties": 1}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:a\n", 2, "the file is truncated"),
        ("BEGIN:VCALENDAR\nEND:VTODO\n", 2, "closes nothing"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n", 0, "no tasks found"),
    ],
)
def test_truncated_calendar_is_rejected(text: str, line: int, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        ics.read(doc(text))
    assert caught.value.line == line


def test_our_own_export_with_notes() -> None:
    tasks = [
        {
            "id": "4",
            "title": "a",
            "notes": [{"version": 3, "at": 1_767_312_000_000, "actor": "ann", "text": "Hm"}],
            "version": 3,
        },
        {"id": "5", "title": "b", "parent": "4", "blocked_by": ["4"], "labels": ["x"], "rank": "q", "colour": "red"},
    ]
    draft = formats.build_draft(doc(json.dumps({"format": "punchlist", "format_version": 1, "tasks": tasks})))
    assert (draft.source, draft.items[0].notes) == ("json", [Note("Hm", "ann", 1_767_312_000_000)])
    assert (draft.items[1].parent, draft.items[1].blocked_by, draft.items[0].key) == ("4", ["4"], "")
    assert passed(draft) == {"`colour`": 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "expected an object"),
        ({"tasks": 3}, "tasks: expected a list"),
        ({"tasks": [{"title": 3}]}, r"tasks\[0\].title: expected a string"),
        ({"tasks": [{"title": "a", "status": "odd"}]}, r"tasks\[0\].status: expected one of"),
        ({"tasks": [{"title": "a", "parent": "9"}]}, "task 9 is not in this file"),
        ({"tasks": [{"title": "a", "metadata": 3}]}, "expected an object"),
        ({"tasks": [], "format_version": 9}, "not known to this version"),
    ],
)
def test_invalid_export_is_rejected(value: Any, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        export.read(doc(json.dumps(value)))


def test_other_issues_are_not_github_or_beads() -> None:
    with pytest.raises(FormatError, match="no tasks found"):
        github.read(doc('[{"number": 1, "title": ""}]'))
    with pytest.raises(FormatError, match="f:1: not JSON"):
        taskwarrior.read(doc("nothing"))


def test_subtasks_of_task_master_without_ids() -> None:
    value = {"tasks": [{"title": "a", "subtasks": [{"title": "b"}, {"title": "c"}]}]}
    assert [item.key for item in taskmaster.read(doc(json.dumps(value))).items] == ["", "", ""]

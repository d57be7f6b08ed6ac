"""Import time is linear in the length and number of lines."""

from collections.abc import Callable
from typing import Any

import pytest

from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.formats import build_draft
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_apps.files.mirror.plan_text import get_title, parse_entries
from punchlist_testing.patterns import SHORT, grows_fast

RUNS = (
    *" \ta1[](){}<>*_`~+@#:;,.=|\"'\\!-",
    *("<!--", "a ", "+a ", "[[a]", "[a](", " (", ":a", "a:b ", ";a=b", '"a', "> ", "- ", "1. ", "2026-01-01 ", "`a"),
    *("<!-- punchlist: {", "SCHEDULED: <2026-01-01 ", "#+TODO: a(", "\ud800", "\u00a0", "\u0301"),
)
TASK = "BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:a\n{}\nEND:VTODO\nEND:VCALENDAR\n"
FORMS = {
    "markdown": ("- [ ] a{}b\n", "- [ ] a{}\n", "{}- [ ] a\n", "# a{}b\n\n- [ ] a\n", "- [ ] a\n  {}b\n", "---\n{}b"),
    "kiro": ("- [ ] 1.1 a depends on {}b\n", "- [ ]* 1. a\n  _Requirements: {}b\n", "- [ ] {} a\n"),
    "spec-kit": ("- [ ] T001 a (depends on T002{}b)\n", "- [ ] T001 [P] {}b\n", "- [ ] T001 a\n\nT001 before {}T001\n"),
    "obsidian": ("- [ ] a {} 📅 2099-01-01\n", "- [ ] a 🔁 {}b\n", "- [ ] a [due:: {}b\n"),
    "kanban": ("## a{}b\n\n- [ ] a\n", "---\nkanban-plugin: {}\n---\n## Done\n\n- [ ] a @{{2099-01-01}}\n"),
    "logseq": ("- TODO a{}b\n", "- TODO [#A] a\n  SCHEDULED: <2099-01-01 {}b>\n", "- TODO a\n  {}b\n"),
    "backlog": (
        "---\nid: 1\ntitle: a{}b\nstatus: c\nlabels: [{}]\n---\n",
        "---\nid: 1\ntitle: a\nstatus: c\n{}b\n---\n{}",
    ),
    "org": ("* TODO a{}b\n", "* TODO a {}:\n", "{}\n* TODO a\n", "* TODO a\n{}b\n", "* TODO a\n:A:\n{}b\n"),
    "todotxt": ("(A) a{}b\n", "(A) a {}\n", "(A) a +{} !\n", "x 2026-01-01 {}\n", "due:{}\n"),
    "ics": (TASK, TASK.format("DUE:20260101{}b"), TASK.format("DESCRIPTION:{}"), TASK.format("a;{}:b")),
    "linear": ("title,due date\na{}b,2026\n", "title,due date\na,2026{}b\n", "title,{}\na,b\n"),
    "jira": ("summary,original estimate\na,1{}b\n", "summary,comment\na,{}b\n", "summary,labels\na,{}b\n"),
    "csv": (
        *("title,due\na{}b,2026\n", "title,due\na,{}b\n", "title,{}\na,b\n", "name;blocked by;status\na;{};{}b\n"),
        *("card id,card name,labels\na,b,{}\n", "type,content,indent\ntask,{}b,1\n", "title,owner,link\na,{}b,{}\n"),
    ),
    "features": ('[{{"name": "a", "{}": "b", "due": "{}b", "owner": "{}", "blockedBy": "{}", "tags": "{}"}}]',),
    "taskwarrior": ('[{{"uuid": "1", "description": "a", "due": "{}b", "est": "1{}b", "tags": ["{}"]}}]',),
}


def imported(form: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return build_draft([Document("a", text)], form)
        except FormatError as error:
            return error

    return read


def texts(shape: str, run: str, length: int) -> str:
    return shape.replace("{}", run * max(1, length // len(run))).replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize("form", FORMS)
def test_import_time_is_linear_in_line_length(form: str) -> None:
    slow = [
        (shape, run)
        for shape in FORMS[form]
        for run in RUNS
        if grows_fast(imported(form), lambda length, shape=shape, run=run: texts(shape, run, length))
    ]
    assert not slow


@pytest.mark.parametrize(
    "run", ["a", "- [ ] a", "* TODO a", "(A) a +b", "  - [ ] a", "> a", "#", "title,status", "[a]: b", "\ta"]
)
@pytest.mark.parametrize("form", ["", "markdown", "org", "todotxt", "csv"])
def test_import_time_is_linear_in_lines(form: str, run: str) -> None:
    assert not grows_fast(imported(form), lambda length: f"{run}\n" * (length // 8))


@pytest.mark.parametrize("run", RUNS)
def test_plan_time_is_linear_in_lines(run: str) -> None:
    def read(text: str) -> Any:
        return [get_title(entry) for entry in parse_entries(text).entries]

    for shape in FORMS["markdown"]:
        assert not grows_fast(read, lambda length, shape=shape: texts(shape, run, length))


def test_forty_thousand_blanks_are_imported() -> None:
    for form in ("markdown", "org", "todotxt"):
        for shape in FORMS[form]:
            assert imported(form)(texts(shape, " ", 10 * SHORT))

"""The plugin in a real Emacs, with a real daemon, while another client changes the list."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from punchlist import Gate, connect
from punchlist.base.text import safe
from punchlist_apps.files.exporters.markdown import BOX_OF
from punchlist_schemas.things import Link
from punchlist_testing.daemon import Raw, Running, Spawned
from punchlist_testing.domain import HOSTILE_TITLES
from punchlist_testing.emacs import PLUGIN, Editor
from punchlist_testing.optional import needs

pytestmark = needs("emacs")


@pytest.fixture
def emacs(daemon: Running, tmp_path: Path) -> Iterator[Editor]:
    with Editor(daemon.socket, tmp_path) as emacs:
        yield emacs


def opened(emacs: Editor, plan: Any, *titles: str) -> Editor:
    for title in titles:
        plan.add(title)
    show(emacs, plan.id)
    emacs.until("(= (length (lines)) (car given))", len(titles))
    return emacs


def show(emacs: Editor, name: str) -> None:
    emacs.eval("(progn (punchlist--show (car given)) nil)", name)
    emacs.until("(punchlist--list-is-ready punchlist--list)")


def test_project_list_opens_and_follows_an_agent(emacs: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    emacs.eval("(progn (punchlist) nil)")
    emacs.until("(equal (buffer-name) (car given))", f"*punchlist: {plan.id}*")
    for number in range(50):
        plan.add(f"Task {number + 1}", parent="1" if number in (3, 4) else None)
    for number in range(10, 20):
        plan.complete(str(number))
    plan.start("30", actor="ann")
    plan.fail("30", "no paper")
    rows = [
        f"[{'x' if 10 <= n < 20 else '✗' if n == 30 else ' '}] #{n} Task {n}{'  no paper' if n == 30 else ''}"
        for n in range(2, 51)
        if n not in (4, 5)
    ]
    emacs.shows(["[ ] #1 Task 1", "  [ ] #4 Task 4", "  [ ] #5 Task 5", *rows])
    assert emacs.header() == f"{plan.id}  39 of 50 open"
    assert emacs.eval("(punchlist--format-mode-line)") == f" {plan.id} 39/50"


def test_push_draws_only_changed_lines(emacs: Editor, plan: Any) -> None:
    plan.add_many([f"Task {number + 1}" for number in range(1000)])
    show(emacs, plan.id)
    emacs.until("(= (length (lines)) 1000)")
    lines = emacs.lines()

    def drawn(expected: list[str]) -> int:
        emacs.shows(expected)
        count = emacs.eval("punchlist-rendered")
        emacs.eval("(setq punchlist-rendered 0)")
        return count

    assert drawn(lines) == 1000
    plan.edit("500", title="n")
    lines[499] = "[ ] #500 n"
    assert drawn(lines) == 1
    plan.add("new", after="500")
    lines.insert(500, "[ ] #1001 new")
    assert drawn(lines) == 1
    plan.delete("2")
    del lines[1]
    assert drawn(lines) == 0
    plan.move("1", after="4")
    lines[:3] = [*lines[1:3], lines[0]]
    assert drawn(lines) == 3


def test_hostile_titles_are_escaped(emacs: Editor, plan: Any) -> None:
    titles = [title for title in HOSTILE_TITLES if title.strip()] + ["a" * 500, "%s %d 100%", "`x` <b>"]
    opened(emacs, plan, *titles)
    shown = "\n".join(emacs.lines())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u200f\u202e]", shown)
    assert "\\x1b[31mred" in shown and "\\u202eright to left" in shown and "%s %d 100%" in shown
    emacs.at("1", "punchlist-delete", False)
    assert "\x1b" not in emacs.eval("(car asked)")


def test_keys_work_as_in_punch_ui(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One", "Two", "Three")
    assert emacs.eval('(symbol-name (key-binding (kbd "s")))') == "punchlist-start"
    assert emacs.eval('(symbol-name (key-binding (kbd "RET")))') == "punchlist-details"
    emacs.at("1", "punchlist-start")
    emacs.shows(["[/] #1 One", "[ ] #2 Two", "[ ] #3 Three"])
    emacs.at("1", "call-interactively #'punchlist-fail", "no paper")
    emacs.shows(["[✗] #1 One  no paper", "[ ] #2 Two", "[ ] #3 Three"])
    emacs.at("1", "punchlist-reopen")
    emacs.at("2", "call-interactively #'punchlist-done")
    emacs.at("2", "call-interactively #'punchlist-edit", "Deux")
    emacs.at("3", "call-interactively #'punchlist-blockers", "#1 #2")
    emacs.at("3", "punchlist-raise")
    emacs.shows(["[ ] #1 One", "[x] #2 Deux", "[.] #3 Three  !high  <- #1"])
    emacs.at("3", "punchlist-up")
    emacs.shows(["[ ] #1 One", "[.] #3 Three  !high  <- #1", "[x] #2 Deux"])
    emacs.at("1", "call-interactively #'punchlist-add", "New")
    emacs.at("1", "call-interactively #'punchlist-note", "seen")
    emacs.at("2", "punchlist-delete", True)
    emacs.shows(["[ ] #1 One", "[ ] #4 New", "[.] #3 Three  !high  <- #1"])
    emacs.at("4", "punchlist-claim")
    emacs.until('(equal (plist-get (gethash "4" (punchlist--list-rows punchlist--list)) :owner) punchlist-owner)')
    emacs.at("4", "punchlist-release")
    emacs.shows(["[ ] #1 One", "[ ] #4 New", "[.] #3 Three  !high  <- #1"])
    emacs.at("3", "punchlist-why")
    emacs.until('(member "#3 waits for #1 One (pending)" said)')
    assert [note.text for note in plan.get("1").notes] == ["seen"]


def test_gated_task_is_rejected_and_approved(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "Deploy")
    plan.edit("1", gate=Gate(yes=True))
    plan.complete("1", "deployed")
    emacs.shows(["[?] #1 Deploy  waits for your yes  deployed"])
    emacs.at("1", "condition-case problem (punchlist-start) (user-error (push (cadr problem) said))")
    assert "1 waits for your yes: y approves it" in emacs.eval("(car said)")
    emacs.at("1", "call-interactively #'punchlist-reject", "no tests")
    emacs.shows(["[ ] #1 Deploy"])
    plan.complete("1", "deployed again")
    emacs.shows(["[?] #1 Deploy  waits for your yes  deployed again"])
    assert emacs.eval('(symbol-name (key-binding (kbd "y")))') == "punchlist-approve"
    emacs.at("1", "punchlist-approve")
    emacs.shows(["[x] #1 Deploy  deployed again"])


def test_undo_and_redo_affect_own_changes(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    plan.edit("1", title="Uno", actor="ann")
    plan.add("Two")
    emacs.shows(["[ ] #1 Uno", "[ ] #2 Two"])
    emacs.at("1", "punchlist-undo")
    emacs.shows(["[ ] #1 One", "[ ] #2 Two"])
    emacs.until('(seq-some (lambda (one) (string-match-p "^Undone: .*(U: redo)$" one)) said)')
    emacs.at("1", "punchlist-redo")
    emacs.shows(["[ ] #1 Uno", "[ ] #2 Two"])
    assert emacs.eval("asked") is None
    emacs.eval("(punchlist-log)")
    emacs.until('(string-prefix-p "*punchlist log" (buffer-name))')
    day, *lines = emacs.lines()
    assert re.fullmatch(r"\w+ \d\d \w+ \d{4}", day)
    assert [re.sub(r"^ *\d+  [\d:]{8}  (\S+) +", r"\1: ", line) for line in lines] == [
        "ann: #1 edited: title Uno",
        "ann: #1 edited: title One",
        "agent: #2 added: Two",
        "ann: #1 edited: title Uno",
        "agent: #1 added: One",
        "agent: began the list",
    ]


def test_log_undoes_another_actors_change(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    plan.complete("1", "hours of work")
    emacs.eval("(progn (punchlist-undo) nil)")
    emacs.until('(seq-some (lambda (one) (string-search "you have nothing to undo here" one)) said)')
    emacs.eval("(punchlist-log)")
    emacs.until('(string-prefix-p "*punchlist log" (buffer-name))')
    assert "#1 done: hours of work" in emacs.lines()[1]
    emacs.eval(
        '(progn (goto-char (point-min)) (forward-line) (push "yes" answers) (call-interactively (key-binding "x")) nil)'
    )
    assert emacs.eval('(lookup-key special-mode-map "x")') in (None, [], "nil"), "other buffers keep their keys"
    emacs.until('(seq-some (lambda (one) (string-match-p ", by agent on .*\\n.*its result" one)) asked)')
    emacs.eval(f'(progn (punchlist--show "{plan.id}") nil)')
    emacs.shows(["[ ] #1 One"])


def test_log_outside_a_list_asks_for_one(emacs: Editor, plan: Any) -> None:
    plan.add("One")
    emacs.eval("(progn (fset 'completing-read (lambda (&rest _) (car given))) nil)")
    emacs.eval("(progn (fset 'completing-read `(lambda (&rest _) ,(car given))) (punchlist-log) nil)", plan.id)
    emacs.until("(equal (buffer-name) (car given))", f"*punchlist log: {plan.id}*")


def test_undo_that_loses_a_result_asks(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    plan.complete("1", "hours of work", actor="ann")
    emacs.shows(["[x] #1 One  hours of work"])
    emacs.at("1", "punchlist-undo", False)
    emacs.until('(seq-some (lambda (one) (string-search "its result" one)) asked)')
    assert plan.get("1").status == "completed"
    emacs.at("1", "punchlist-start", False)
    assert plan.get("1").status == "completed"


def test_rejected_undo_names_the_reason(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    plan.add("Two", actor="ann")
    plan.start("2")
    emacs.shows(["[ ] #1 One", "[/] #2 Two"])
    emacs.at("1", "punchlist-undo")
    emacs.until('(seq-some (lambda (one) (string-search "agent depends on it" one)) said)')
    assert plan.get("2").status == "in_progress"


def test_lines_show_members_of_tasks(emacs: Editor, plan: Any) -> None:
    plan.add("One", labels=["ops"], owner="ann", due=1577923200000, due_day="2020-01-02", description="Why\n**how**")
    plan.note("1", "seen \x1b")
    show(emacs, plan.id)
    emacs.shows(["[ ] #1 One  +ops  @ann  late: due 2020-01-02"])
    emacs.at("1", "punchlist-details")
    shown = "\n".join(emacs.lines())
    for text in ("# #1 One", "Why\n**how**", "## Note by agent", "seen \\x1b"):
        assert text in shown


def test_help_shows_own_keys_first(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    emacs.eval("(progn (punchlist-help) nil)")
    keys = emacs.eval('(with-current-buffer "*punchlist keys*" (buffer-string))')
    assert keys.startswith("RET  Show the task at point in full")


def test_description_never_overwrites_anothers_change(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One")
    emacs.at("1", "punchlist-describe")
    emacs.eval('(progn (insert "Mine\\n") (punchlist-save-description) nil)')
    emacs.until("(not (buffer-modified-p))")
    assert plan.get("1").description == "Mine\n"
    plan.edit("1", description="Theirs")
    emacs.until('(equal (plist-get (gethash "1" (punchlist--list-rows (car punchlist--task))) :description) "Theirs")')
    emacs.eval('(insert "More")')
    emacs.eval("(progn (setq mine (current-buffer)) (punchlist-save-description) nil)")
    emacs.until('(seq-some (lambda (one) (string-search "#1 was changed by someone else" one)) said)')
    shown = emacs.eval('(with-current-buffer "*Diff*" (buffer-string))')
    assert "-Theirs" in shown and "+More" in shown
    emacs.eval("(progn (switch-to-buffer mine) nil)")
    assert plan.get("1").description == "Theirs" and emacs.lines() == ["Mine", "More"]
    emacs.eval("(progn (punchlist-save-description) nil)")
    emacs.until("(not (buffer-modified-p))")
    assert plan.get("1").description == "Mine\nMore"
    plan.delete("1")
    emacs.eval('(progn (insert "!") (punchlist-save-description) nil)')
    emacs.until('(seq-some (lambda (one) (string-search "nothing was saved" one)) said)')
    assert emacs.lines() == ["Mine", "More!"]


def test_unrelated_change_does_not_block_a_description(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One", "Two")
    emacs.at("1", "punchlist-describe")
    emacs.eval(
        """(progn (insert "Mine")
        (let ((command (car given)))
          (advice-add 'punchlist--change :before
            (lambda (&rest _)
              (advice-remove 'punchlist--change 'once)
              (call-process shell-file-name nil nil nil "-c" command))
            '((name . once))))
        (punchlist-save-description) nil)""",
        f"{sys.executable} -m punchlist -c {plan.id} start 2",
    )
    emacs.until("(not (buffer-modified-p))")
    assert (plan.get("1").description, plan.get("2").status) == ("Mine", "in_progress")


def test_todo_becomes_a_task_that_leads_back(emacs: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("one\ntwo\n# TODO: mend this\n")
    emacs.eval("(progn (punchlist) nil)")
    emacs.until("punchlist--list")
    emacs.eval('(progn (find-file "src/a.py") (forward-line 2) (setq answers (list "Mend this")) nil)')
    emacs.eval("(progn (call-interactively #'punchlist-add-here) nil)")
    emacs.until('(member (format "punchlist: #1 in %s" (car given)) said)', plan.id)
    assert [(task.title, task.links) for task in plan.list()] == [
        ("Mend this", (Link(kind="path", to="src/a.py:3"),)),
    ]
    show(emacs, plan.id)
    emacs.shows(["[ ] #1 Mend this"])
    emacs.at("1", "punchlist-visit")
    assert emacs.eval("(list (file-name-nondirectory buffer-file-name) (line-number-at-pos))") == ["a.py", 3]


def test_list_of_another_project_is_not_opened(emacs: Editor, plan: Any, tmp_path: Path) -> None:
    plan.add("theirs")
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    emacs.eval("(progn (punchlist) nil)")
    message = "was not made for this project; to allow it: punch init --trust"
    emacs.until("(seq-some (lambda (one) (string-search (car given) one)) said)", message)
    assert emacs.eval("(buffer-name)") == "*scratch*"


def test_notifications_follow_the_option(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One", "Two", "Three")
    owner = emacs.eval("punchlist-owner")
    plan.edit("2", owner=owner, add_blocked_by=["1"])
    plan.edit("3", owner=owner)
    emacs.until('(string-search "<- #1" (buffer-string))')
    emacs.at("3", "call-interactively #'punchlist-fail", "our own doing")
    emacs.until('(string-search "our own doing" (buffer-string))')
    assert emacs.said() == []
    plan.complete("1")
    emacs.until("said")
    plan.fail("2", "no paper")
    emacs.until("(nthcdr 2 said)")
    assert emacs.said() == [
        "punchlist: #2 can start now: Two",
        "punchlist: #2 failed: Two (no paper)",
        f"punchlist: all tasks of {plan.id} are finished",
    ]
    emacs.eval("(progn (setq said nil punchlist-notify nil) nil)")
    plan.reopen("1")
    plan.fail("1", "no ink")
    emacs.until('(string-search "no ink" (buffer-string))')
    assert emacs.said() == []


def test_presence_is_shown(emacs: Editor, daemon: Running, plan: Any) -> None:
    opened(emacs, plan, "One")
    assert emacs.header() == f"{plan.id}  1 of 1 open"
    peer = Raw(daemon.socket)
    try:
        peer.result("daemon.hello", client={"name": "claude\x1b 100%"})
        peer.result("event.subscribe", conversation=plan.id, view="rows")
        emacs.until("(equal header-line-format (car given))", f"{plan.id}  1 of 1 open  also here: claude\\x1b 100%%")
    finally:
        peer.close()
    emacs.until("(equal header-line-format (car given))", f"{plan.id}  1 of 1 open")


def test_each_window_stays_at_its_task(emacs: Editor, plan: Any) -> None:
    opened(emacs, plan, "One", "Two", "Three")
    emacs.at("3", "split-window")
    emacs.eval("(progn (set-window-point (next-window) (point-min)) nil)")
    plan.add("New", before="1")
    plan.edit("3", title="Drei")
    emacs.shows(["[ ] #4 New", "[ ] #1 One", "[ ] #2 Two", "[ ] #3 Drei"])
    spots = "(vconcat (mapcar (lambda (window) (line-number-at-pos (window-point window))) (get-buffer-window-list)))"
    assert emacs.eval(spots) == [4, 2]


def test_places_in_titles_are_buttons(emacs: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    opened(emacs, plan, "Mend gone.py:7 or a.py:2")
    emacs.eval("(progn (goto-char (point-min)) (forward-button 2) (push-button) nil)")
    assert emacs.eval("(list (file-name-nondirectory buffer-file-name) (line-number-at-pos))") == ["a.py", 2]


def test_long_word_is_searched_quickly(emacs: Editor) -> None:
    search = (
        "(let ((began (float-time))) (string-match punchlist--place (make-string 100000 ?a)) (- (float-time) began))"
    )
    assert emacs.eval(search) < 10


@pytest.mark.long
def test_keys_work_while_ten_thousand_tasks_are_drawn(emacs: Editor, plan: Any) -> None:
    for first in range(0, 10_000, 1000):
        plan.add_many([f"Task {first + at}" for at in range(1000)])
    emacs.eval("(progn (punchlist--show (car given)) nil)", plan.id)
    emacs.until("(> (length (lines)) 0)")
    assert emacs.eval("(length (lines))") < 10_000
    emacs.at("1", "punchlist-start")
    plan.edit("10000", title="the last one")
    emacs.until('(string-suffix-p "] #10000 the last one" (string-trim (buffer-string)))')
    lines = emacs.lines()
    assert (len(lines), lines[0]) == (10_000, "[/] #1 Task 0")


def test_change_to_a_dead_daemon_reaches_the_next(tmp_path: Path) -> None:
    process = Spawned(tmp_path)
    try:
        process.start()
        with Editor(process.socket, tmp_path) as emacs:
            show(emacs, "website")
            process.kill()
            emacs.eval('(progn (punchlist--change punchlist--list "task.add" (list :title "One")) nil)')
            process.start()
            emacs.shows(["[ ] #1 One"])
            assert emacs.said() == []
    finally:
        process.kill()


def test_ert_tests_pass(tmp_path: Path) -> None:
    done = subprocess.run(
        ["emacs", "--batch", "-Q", "-L", PLUGIN, "-l", "punchlist-tests", "-f", "ert-run-tests-batch-and-exit"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_escapes_equal_those_of_python(emacs: Editor, odd_texts: list[str]) -> None:
    assert emacs.eval("(vconcat (mapcar #'punchlist--safe (car given)))", odd_texts) == [
        safe(text) for text in odd_texts
    ]
    looks = emacs.eval("(vconcat (mapcar (lambda (one) (vector (car one) (cadr one))) punchlist--looks))")
    assert {status: box for status, box in looks} == BOX_OF


@pytest.mark.long
def test_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    process = Spawned(tmp_path)
    kills = int(os.environ.get("KILLS") or 5)
    try:
        with Editor(process.socket, tmp_path) as emacs:
            emacs.eval('(progn (punchlist--show "website") nil)')
            assert "away: no daemon listens on" in (emacs.header() or "")
            process.start()
            emacs.until("(punchlist--list-is-ready punchlist--list)")
            lines = list[str]()
            for number in range(1, kills + 1):
                emacs.until("punchlist--connected")
                emacs.eval('(punchlist--change punchlist--list "task.add" (list :title (car given)))', f"Task {number}")
                process.kill()  # at a random time: before or after the response, or before the push
                emacs.until("(not punchlist--connected)")
                assert "away, showing the last known list" in (emacs.header() or "")
                process.start()
                lines.append(f"[ ] #{number} Task {number}")
                emacs.shows(lines)
            with connect(socket=process.socket, autostart=False) as client:
                assert len(client.conversation("website").list()) == kills
            assert emacs.said() == []
    finally:
        process.kill()


def test_files_compile_and_pass_checkdoc(tmp_path: Path) -> None:
    names = sorted(path.name for path in PLUGIN.glob("punchlist*.el") if path.name != "punchlist-pkg.el")
    assert "punchlist.el" in names
    for name in names:
        shutil.copy(PLUGIN / name, tmp_path)
    for name in names:
        if name == "punchlist-autoloads.el":
            continue  # Emacs generates such files itself
        form = f'(progn (byte-compile-file "{name}") (checkdoc-file "{name}"))'
        command = ["emacs", "--batch", "-Q", "-L", ".", "--eval", form]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "arning" not in done.stderr, done.stderr

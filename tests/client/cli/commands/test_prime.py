import json
from typing import Any

from punchlist_testing.daemon import Running

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"


def hook(punch: Any, event: str, session: str = SESSION, **members: Any) -> Any:
    given = {"session_id": session, "hook_event_name": event, "cwd": "/", "transcript_path": "/x", **members}
    return punch("prime", "--hook", stdin=json.dumps(given))


def test_open_tasks_are_printed_and_nothing_when_there_are_none(punch: Any) -> None:
    assert punch("prime").out == ""
    punch("add", "Write")
    assert punch("prime").lines[1:] == ['  #1 "Write" [pending]']
    punch("start", "1")
    punch("done", "1")
    assert punch("prime").out == ""


def test_a_session_is_told_what_changed_since_it_last_looked_once(punch: Any) -> None:
    punch("add", "Write")
    assert len(punch("prime", "--session", SESSION).lines) == 2
    punch("start", "1", "--actor", "ada")
    told = punch("prime", "--session", SESSION).lines
    assert told[1:] == ['  #1 "Write" [in_progress]', "Since you last looked:", '  #1 "Write" in_progress by ada']
    assert len(punch("prime", "--session", SESSION).lines) == 2


def test_a_prompt_is_given_news_alone_and_never_the_hosts_own(punch: Any) -> None:
    punch("add", "Write")
    assert hook(punch, "SessionStart", source="startup").lines[1:] == ['  #1 "Write" [pending]']
    assert hook(punch, "UserPromptSubmit", prompt="hello").out == ""
    punch("start", "1", "--actor", "claude-code")
    assert hook(punch, "UserPromptSubmit").out == ""
    punch("done", "1", "--actor", "bob")
    assert hook(punch, "UserPromptSubmit").lines[1:] == ['  #1 "Write" completed by bob']
    assert hook(punch, "UserPromptSubmit").out == ""


def test_stopping_with_work_in_progress_is_reminded_of_once(punch: Any) -> None:
    punch("add", "Write")
    assert hook(punch, "Stop").out == ""
    punch("start", "1")
    assert hook(punch, "Stop", stop_hook_active=True).out == ""
    told = hook(punch, "Stop").json
    assert told["decision"] == "block"
    assert '#1 "Write"' in told["reason"]
    assert hook(punch, "Stop").out == ""
    assert hook(punch, "Stop", session="another").json["decision"] == "block"


def test_another_agents_work_is_not_this_ones_to_finish(punch: Any) -> None:
    punch("add", "Write", "--owner", "bob")
    punch("start", "1")
    assert hook(punch, "Stop").out == ""


def test_an_attached_session_is_told_of_its_list(punch: Any) -> None:
    punch("add", "There", "-c", "website")
    punch("attach", SESSION, "-c", "website")
    assert '"There"' in hook(punch, "SessionStart").out
    assert hook(punch, "SessionStart", session="another").out == ""


def test_a_hook_never_stands_in_the_way(run: Any, punch: Any, daemon: Running) -> None:
    for given in ("", "{", "[]", '{"session_id": 3}', '{"session_id": "../\\ud800"}'):
        assert punch("prime", "--hook", stdin=given).code == 0
    daemon.app.stop()
    gone = run("prime", "--hook", "--socket", daemon.socket + ".gone", stdin="{}")
    assert (gone.code, gone.out) == (0, "")
    assert gone.err.startswith("punchlist: ")

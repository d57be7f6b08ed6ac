import pytest

from punchlist.errors import ConnectionLost, NoConversation, build_error
from punchlist.tools.refusals import to_problem
from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import OUTCOME_UNKNOWN, SHUTTING_DOWN
from punchlistd.replication.port import Link
from punchlistd.replication.posts import refusals


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("not_found", {"what": "task", "id": "9"}, "task 9 not found"),
        (
            "not_found",
            {"what": "conversation", "id": "a", "names": ["a-1", "a-2"]},
            "a is the name of 2 lists: name a-1 or a-2",
        ),
        ("dependency_cycle", {"path": ["1", "2", "1"]}, "the dependency would close a cycle: 1 -> 2 -> 1"),
        ("lease_held", {"task": "3", "owner": "bob"}, "task 3 is being worked on by bob: take another one"),
        (
            "illegal_transition",
            {"task": "3", "from": "failed", "to": "paused", "allowed": ["pending"]},
            "task 3 is failed and can't become paused; it can become: pending",
        ),
        (
            "blocked",
            {"task": "2", "blockers": [{"id": "1", "title": "Copy"}]},
            "task 2 is blocked by #1 Copy: complete that first",
        ),
        (
            "blocked",
            {"task": "2", "blockers": [{"id": "1", "title": "Copy", "status": "failed"}]},
            "task 2 is blocked by #1 Copy (failed): complete what has failed, or delete it",
        ),
        (
            "key_conflict",
            {"key": "k"},
            "this call had been carried out before the server restarted: look at the list, and don't repeat the call",
        ),
        ("from_a_newer_daemon", {}, "as the daemon said"),
    ],
)
def test_errors_become_actionable_sentences(kind: str, data: dict[str, object], text: str) -> None:
    problem = to_problem(build_error(-32000, "as the daemon said", {"kind": kind, **data}))
    assert problem.text == text


@pytest.mark.parametrize(
    "told",
    [
        refusals.unreachable("team", Link()),
        refusals.partial("team", Link()),
        refusals.unknown("team", "It did not answer."),
        SHUTTING_DOWN,
        OUTCOME_UNKNOWN,
    ],
)
def test_retryable_errors_advise_a_retry(told: Rejection) -> None:
    problem = to_problem(build_error(-32000, told.message, {"kind": told.kind}))
    assert "call it again" in problem.text and "key" not in problem.text


def test_connection_errors_say_nothing_is_lost() -> None:
    problem = to_problem(ConnectionLost("the daemon went away"))
    assert (problem.kind, "nothing is lost" in problem.text) == ("unavailable", True)
    assert to_problem(NoConversation("none")).kind == "no_conversation"


def test_invalid_member_has_the_tools_name() -> None:
    data = {"kind": "invalid_params", "field": "title", "expected": "string of length <= 500"}
    error = build_error(-32602, "title is wrong: expected string of length <= 500.", data)
    assert to_problem(error, {"subject"}).text == "subject is wrong: expected at most 500 characters"
    assert to_problem(error, {"title"}).text == "title is wrong: expected at most 500 characters"


def test_removing_a_dependency_is_advised_if_possible() -> None:
    error = build_error(-1, "blocked", {"kind": "blocked", "task": "2", "blockers": [{"id": "1", "title": "Copy"}]})
    assert to_problem(error, can_unblock=True).text.endswith(": complete that first, or remove the dependency")


def test_a_long_message_is_cut() -> None:
    assert len(to_problem(build_error(-1, "x" * 90_000, {"kind": "internal_error"})).text) < 1_100

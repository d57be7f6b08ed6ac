from typing import Any

from punchlist_schemas.methods import METHODS


def test_params_are_words_or_json(punch: Any) -> None:
    added = punch("daemon", "call", "task.add", "title=Write", 'metadata={"a": [1]}', "--actor", "ada")
    assert added.json["task"]["metadata"] == {"a": [1]}
    got = punch("daemon", "call", "task.get", '{"conversation": "default", "task": "1"}')
    assert got.json["task"]["title"] == "Write"
    assert punch("log", "--json").out.count('"actor":"ada"') == 2


def test_required_conversation_is_filled_in(punch: Any) -> None:
    punch("add", "a", "-c", "one")
    punch("add", "b", "-c", "two")
    assert {event["conversation"] for event in punch("daemon", "call", "event.read", "after=0").json["events"]} == {
        "one",
        "two",
    }
    one = punch("daemon", "call", "event.read", "after=0", "-c", "one").json["events"]
    assert {event["conversation"] for event in one} == {"one"}
    assert punch("daemon", "call", "task.list", "conversation=two").json["tasks"][0]["title"] == "b"


def test_methods_are_listed(run: Any) -> None:
    outcome = run("daemon", "call", "--list")
    assert [line.split()[0] for line in outcome.lines] == list(METHODS)
    assert run("daemon", "call", "--list", "--json").json == sorted(METHODS)


def test_number_is_text_if_type_is_text(punch: Any) -> None:
    punch("add", "a")
    assert punch("daemon", "call", "task.get", "task=1").json["task"]["title"] == "a"
    assert punch("daemon", "call", "task.list", "limit=1").json["total"] == 1
    assert punch("daemon", "call", "task.edit", "task=1", "title=7", "metadata={}").json["task"]["title"] == "7"
    assert punch("daemon", "call", "task.list", "limit=few").err.startswith("error: limit is wrong")

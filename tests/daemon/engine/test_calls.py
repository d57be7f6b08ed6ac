import pytest

from punchlist_schemas.params import ConversationDelete, ListClear, TaskAdd
from punchlistd.engine.calls import fingerprint

ADD = TaskAdd(conversation="c", title="a", key="k")


def test_a_repeat_has_the_same_fingerprint_whatever_its_key_or_confirmation() -> None:
    assert fingerprint("task.add", ADD) == fingerprint("task.add", TaskAdd(conversation="c", title="a", key="other"))
    asked, confirmed = ListClear(conversation="c", key="k"), ListClear(conversation="c", key="k", confirm="t")
    assert fingerprint("list.clear", asked) == fingerprint("list.clear", confirmed)


def test_the_order_of_members_makes_no_other_call() -> None:
    one, two = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    first = fingerprint("task.add", TaskAdd(conversation="c", title="a", metadata=one))
    assert first == fingerprint("task.add", TaskAdd(conversation="c", title="a", metadata=two))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("task.add", TaskAdd(conversation="c", title="b")),
        ("task.add", TaskAdd(conversation="d", title="a")),
        ("task.add", TaskAdd(conversation="c", title="a", expect_version=1)),
        ("task.add", TaskAdd(conversation="c", title="a", actor="x")),
        ("list.clear", ListClear(conversation="c")),
        ("conversation.delete", ConversationDelete(conversation="c")),
    ],
)
def test_other_content_has_another_fingerprint(method: str, params: TaskAdd | ListClear | ConversationDelete) -> None:
    assert fingerprint(method, params) != fingerprint("task.add", ADD)

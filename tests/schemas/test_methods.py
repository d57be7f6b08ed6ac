import pytest

from punchlist_schemas.methods import METHODS, NOTIFICATIONS
from punchlist_schemas.results import Written

CONTRACT = """
daemon.hello rpc.discover rpc.cancel daemon.status daemon.backup daemon.shutdown conversation.open conversation.get
conversation.list conversation.configure conversation.attach conversation.detach conversation.delete task.add
task.add_many task.get task.list task.edit task.set_status task.move task.delete task.claim task.renew
task.release list.replace list.clear list.undo message.append message.list event.read event.wait event.subscribe
event.unsubscribe
"""


def test_the_methods_of_the_contract_are_there() -> None:
    assert set(CONTRACT.split()) <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_exactly_the_writing_methods_answer_with_version_and_position(name: str) -> None:
    assert issubclass(METHODS[name].result, Written) == (METHODS[name].kind == "write")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_under_its_name_and_says_what_it_does(name: str) -> None:
    assert METHODS[name].name == name
    assert METHODS[name].summary.endswith(".")


def test_the_notifications_are_those_of_the_contract() -> None:
    assert set(NOTIFICATIONS) == {"events", "list", "rows", "board", "presence", "end"}

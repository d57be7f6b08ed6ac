from punchlist import Client
from punchlist.tools import Toolbox, ToolCaller


def restarted(client: Client) -> Toolbox:
    """What a process remembers goes with it."""
    return Toolbox(client, ToolCaller("work", "ann"))


def test_only_what_others_changed_since_the_last_look_is_told(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two", "Three"]})
    box.call("native", "tasks")
    box.call("native", "update", {"id": "1", "title": "Mine"})
    plan.edit("2", title="Changed")
    plan.delete("3")
    told = box.call("native", "tasks", {"since": "last"})
    assert told.text.splitlines()[1:] == ["#2 Changed — by bob", "gone: #3"]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_a_restart_tells_again_rather_than_missing_anything(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan.edit("1", title="Before the restart")
    box = restarted(client)
    plan.edit("2", title="After it")
    told = box.call("native", "tasks", {"since": "last"})
    assert [task["id"] for task in told.data["tasks"]] == ["1", "2"]


def test_a_write_tells_what_others_did_before_it(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    client.conversation("work", actor="bob").edit("2", title="Changed")
    box = restarted(client)
    reply = box.call("native", "next")
    assert reply.text.splitlines()[-2:] == ["Others changed #2:", "#2 Changed — by bob"]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_an_agent_that_never_looked_gets_the_whole_list(client: Client) -> None:
    client.conversation("work").add_many(["One", "Two"])
    told = Toolbox(client, ToolCaller("work", "newcomer")).call("native", "tasks", {"since": "last"})
    assert [task["title"] for task in told.data["tasks"]] == ["One", "Two"]


def test_the_last_own_event_is_found_far_back_in_the_log(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["Own"]})
    for part in range(3):
        client.conversation("work", actor="bob").add_many([f"{part}.{number}" for number in range(1_000)])
    box = restarted(client)
    told = box.call("native", "tasks", {"since": "last"})
    assert told.text.startswith("3000 changed")


def test_a_task_that_was_deleted_and_brought_back_is_changed_not_gone(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One"]})
    plan.delete("1")
    plan.undo()
    told = box.call("native", "tasks", {"since": "last"})
    assert (told.data["tasks"][0]["id"], told.data["gone"]) == ("1", [])


def test_after_the_list_was_cleared_the_whole_new_one_is_told(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan.clear()
    plan.add("New one")
    told = box.call("native", "tasks", {"since": "last"})
    assert "New one" in told.text
    assert "One" not in told.text


def test_waiting_ends_with_what_others_did(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One"]})
    client.conversation("work", actor="bob").edit("1", title="Changed")
    assert "#1 Changed — by bob" in box.call("native", "wait", {"seconds": "20"}).text

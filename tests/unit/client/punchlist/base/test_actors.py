import pytest

from punchlist.base.actors import belongs_to_agent, chat_actor


@pytest.mark.parametrize(
    ("actor", "agent", "is_so"),
    [
        ("ann", "ann", True),
        ("ann/scout", "ann", True),
        ("anna", "ann", False),
        ("ann", "ann/scout", False),
        ("", "", False),
    ],
)
def test_agent_owns_only_itself_and_sub_agents(actor: str, agent: str, *, is_so: bool) -> None:
    assert belongs_to_agent(actor, agent) is is_so


@pytest.mark.parametrize(
    ("thread", "actor"),
    [
        ("chat-0d1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b", "chat/0d1f2a3b"),
        ("chat-project-one", "chat/project-one"),
        ("of:ann:chat-project-one", "chat/project-one"),
        ("chat-chat-one", "chat/chat-one"),
        ("talk", "chat/talk"),
        ("t" * 128, "chat/" + "t" * 123),
    ],
)
def test_threads_of_one_list_are_separate_actors(thread: str, actor: str) -> None:
    assert chat_actor(thread) == actor

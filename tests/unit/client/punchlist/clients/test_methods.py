import pytest

from punchlist import AsyncClient, Client, Conversation
from punchlist.calls.call import ClientCalls
from punchlist.calls.conversations import ConversationCalls
from punchlist.clients.aio import AsyncConversation


@pytest.mark.parametrize(
    ("calls", "clients"),
    [(ClientCalls, (Client, AsyncClient)), (ConversationCalls, (Conversation, AsyncConversation))],
)
def test_clients_have_a_method_for_every_call(calls: type, clients: tuple[type, type]) -> None:
    builders = {name for name in dir(calls) if not name.startswith("_") and callable(getattr(calls, name))}
    assert len(builders) > 10
    assert [sorted(builders - set(dir(client))) for client in clients] == [[], []]

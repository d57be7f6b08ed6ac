"""The route table, which maps each verb and path to the protocol method that it calls.

A name in a path is a parameter of the call. GET and DELETE take additional parameters from the query, and other verbs
from a JSON object.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Verb = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

API = "/api/v1"
WHO = f"{API}/agents"
_LIST = f"{API}/conversations/{{conversation}}"
_TASK = f"{_LIST}/tasks/{{task}}"


class Route(NamedTuple):
    """A row of the table.

    Attributes:
        many: The method to call if the body has the member `tasks`.
        narrows: Whether a request with a token for one list is about that list, although the path names none.
        defaults: Parameters that the query may omit.
    """

    verb: Verb
    path: str
    method: str
    status: int = 200
    many: str | None = None
    narrows: bool = False
    defaults: Mapping[str, Any] = {}


ROUTES = (
    Route("GET", f"{API}/status", "daemon.status"),
    Route("GET", f"{API}/resolve", "conversation.resolve"),
    Route("GET", f"{API}/confirmations/{{token}}", "confirmation.get"),
    Route("GET", f"{API}/conversations", "conversation.list"),
    Route("GET", f"{API}/search", "task.search"),
    Route("GET", _LIST, "conversation.get"),
    Route("PUT", _LIST, "conversation.open"),
    Route("PATCH", _LIST, "conversation.configure"),
    Route("DELETE", _LIST, "conversation.delete"),
    Route("PUT", f"{_LIST}/sessions/{{session}}", "conversation.attach"),
    Route("DELETE", f"{_LIST}/sessions/{{session}}", "conversation.detach"),
    Route("GET", f"{_LIST}/tasks", "task.list"),
    Route("POST", f"{_LIST}/tasks", "task.add", 201, many="task.add_many"),
    Route("DELETE", f"{_LIST}/tasks", "task.delete"),
    Route("GET", _TASK, "task.get"),
    Route("GET", f"{_TASK}/explanation", "task.explain"),
    Route("PATCH", _TASK, "task.edit"),
    Route("DELETE", _TASK, "task.delete"),
    Route("POST", f"{_TASK}/status", "task.set_status"),
    Route("POST", f"{_TASK}/notes", "task.note"),
    Route("POST", f"{_TASK}/approval", "task.approve"),
    Route("POST", f"{_TASK}/move", "task.move"),
    Route("POST", f"{_LIST}/claim", "task.claim"),
    Route("POST", f"{_TASK}/claim", "task.claim"),
    Route("POST", f"{_TASK}/renew", "task.renew"),
    Route("POST", f"{_TASK}/release", "task.release"),
    Route("POST", f"{_LIST}/undo", "list.undo"),
    Route("POST", f"{_LIST}/changes", "list.apply"),
    Route("POST", f"{_LIST}/replace", "list.replace"),
    Route("POST", f"{_LIST}/clear", "list.clear"),
    Route("POST", f"{_LIST}/turn-end", "turn.end"),
    Route("GET", f"{_LIST}/messages", "message.list"),
    Route("GET", f"{_LIST}/messages/{{message}}", "message.get"),
    Route("POST", f"{_LIST}/messages", "message.append", 201),
    Route("POST", f"{_LIST}/messages/{{message}}/retract", "message.retract"),
    Route("GET", f"{_LIST}/events", "event.read"),
    Route("GET", f"{API}/events/recent", "event.read", narrows=True, defaults={"about": True, "limit": 60}),
    Route("GET", f"{_LIST}/presence", "conversation.presence"),
    Route("GET", f"{_LIST}/keys/{{key}}", "event.find"),
)

UNROUTED = {
    "daemon.hello": "the connection to the daemon belongs to the server",
    "daemon.shutdown": "would stop the daemon for all its clients",
    "daemon.backup": "writes files on this machine",
    "rpc.discover": "/api/v1/openapi.json documents this interface",
    "rpc.cancel": "closing the connection cancels a request",
    "$/cancelRequest": "closing the connection cancels a request",
    "initialize": "for language-server clients",
    "initialized": "for language-server clients",
    "shutdown": "for language-server clients",
    "exit": "for language-server clients",
    "event.wait": "the streams replace it",
    "event.subscribe": "the streams replace it",
    "event.unsubscribe": "the streams replace it",
    "agent.enter": "the connection to the daemon belongs to the server",
    "agent.leave": "the connection to the daemon belongs to the server",
    "agent.list": "returns directories and tasks of other lists; GET /api/v1/agents filters them by token",
    "space.add": "decides which files and addresses of this machine the daemon uses",
    "space.list": "shows the configuration of this machine",
    "space.remove": "changes the configuration of this machine",
    "list.share": "publishes a list outside this machine",
    "list.join": "changes the configuration of this machine",
    "list.leave": "changes the configuration of this machine",
    "space.repair": "changes the configuration of this machine",
}
"""Methods without a route, with the reasons."""

"""The table of what is served: which request makes which call of the method table.

A name in a path is the name of the call's parameter. What GET and DELETE take besides comes from the query,
what the others take from a JSON object.
"""

from typing import Literal, NamedTuple

Verb = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

API = "/api/v1"
WHO = f"{API}/agents"
_LIST = f"{API}/conversations/{{conversation}}"
_TASK = f"{_LIST}/tasks/{{task}}"


class Route(NamedTuple):
    """A row: `many` is the method for a body that has `tasks`."""

    verb: Verb
    path: str
    method: str
    status: int = 200
    many: str | None = None


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
    Route("GET", f"{_LIST}/presence", "conversation.presence"),
    Route("GET", f"{_LIST}/keys/{{key}}", "event.find"),
)

LEFT_OUT = {
    "daemon.hello": "the connection to the daemon is the server's",
    "daemon.shutdown": "ends more than a face should",
    "daemon.backup": "writes files",
    "rpc.discover": "the document of this interface is /api/v1/openapi.json",
    "rpc.cancel": "a request that is hung up is given up",
    "$/cancelRequest": "a request that is hung up is given up",
    "initialize": "for clients of language servers",
    "initialized": "for clients of language servers",
    "shutdown": "for clients of language servers",
    "exit": "for clients of language servers",
    "event.wait": "streams do that",
    "event.subscribe": "streams do that",
    "event.unsubscribe": "streams do that",
    "agent.enter": "the connection to the daemon is the server's",
    "agent.leave": "the connection to the daemon is the server's",
    "agent.list": "names directories, and tasks of other lists: GET /api/v1/agents says what a token may see",
    "space.add": "decides which files and addresses of this machine the daemon uses",
    "space.list": "belongs to who configures the machine",
    "space.remove": "belongs to who configures the machine",
    "list.share": "gives a list out of this machine",
    "list.join": "belongs to who configures the machine",
    "list.leave": "belongs to who configures the machine",
    "space.repair": "belongs to who configures the machine",
}
"""The methods that have no route, and why."""

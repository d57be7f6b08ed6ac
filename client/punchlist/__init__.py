"""The client library of punchlist: task lists for agents, stored by one daemon per user and pushed live.

```python
import punchlist

with punchlist.connect() as client:
    plan = client.conversation("website")
    copy = plan.add("Write the copy", priority="high")
    plan.add("Publish", blocked_by=[copy.id])
    plan.start(copy.id)
    done = plan.complete(copy.id, result="in docs/copy.md")
    print(done.next_task, done.unblocked, done.remaining)
```

`connect_async()` gives the same with `async with` and `await`. Names load on first use, so importing the package
costs nothing.
"""

from typing import TYPE_CHECKING

from punchlist.base import __version__

if TYPE_CHECKING:
    from punchlist.calls.cursor import Change, TaskList
    from punchlist.clients.aio import AsyncClient, AsyncConversation, connect_async
    from punchlist.clients.scope import conversation, current_conversation
    from punchlist.clients.streams import scoped
    from punchlist.clients.sync import Claim, Client, Conversation, Watch, Work, connect
    from punchlist.clients.watch import AsyncWatch
    from punchlist.clients.work import AsyncClaim, AsyncWork
    from punchlist.errors import (
        Blocked,
        Cancelled,
        ConfirmationRequired,
        ConnectionLost,
        DaemonStopped,
        DaemonUnavailable,
        Damaged,
        DependencyCycle,
        Diverged,
        Forbidden,
        Gap,
        IllegalTransition,
        InternalError,
        InvalidParams,
        InvalidRequest,
        KeyConflict,
        LeaseHeld,
        LeaseLost,
        LimitExceeded,
        MethodNotFound,
        MisplacedScope,
        NoConversation,
        NotFound,
        OutcomeUnknown,
        ParseError,
        ProtocolError,
        PunchlistError,
        RateLimited,
        RequestRefused,
        ShuttingDown,
        StorageFull,
        TimedOut,
        UndoConflict,
        Unreachable,
        UpgradeNeeded,
        VersionConflict,
        WrongDataDirectory,
        WrongEpoch,
    )
    from punchlist_schemas.params import NewTask
    from punchlist_schemas.results import SetStatusResult
    from punchlist_schemas.things import Counts, Gate, Link, Message, Note, SettingsPatch, Task

__all__ = [
    "__version__",
    "AsyncClaim",
    "AsyncClient",
    "AsyncConversation",
    "AsyncWatch",
    "AsyncWork",
    "Blocked",
    "Cancelled",
    "Change",
    "Claim",
    "Client",
    "ConfirmationRequired",
    "ConnectionLost",
    "Conversation",
    "Counts",
    "DaemonStopped",
    "DaemonUnavailable",
    "Damaged",
    "DependencyCycle",
    "Diverged",
    "Forbidden",
    "Gap",
    "Gate",
    "IllegalTransition",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "KeyConflict",
    "LeaseHeld",
    "LeaseLost",
    "LimitExceeded",
    "Link",
    "Message",
    "MethodNotFound",
    "MisplacedScope",
    "NewTask",
    "NoConversation",
    "NotFound",
    "Note",
    "OutcomeUnknown",
    "ParseError",
    "ProtocolError",
    "PunchlistError",
    "RateLimited",
    "RequestRefused",
    "SetStatusResult",
    "SettingsPatch",
    "ShuttingDown",
    "StorageFull",
    "Task",
    "TaskList",
    "TimedOut",
    "UndoConflict",
    "Unreachable",
    "UpgradeNeeded",
    "VersionConflict",
    "Watch",
    "Work",
    "WrongDataDirectory",
    "WrongEpoch",
    "connect",
    "connect_async",
    "conversation",
    "current_conversation",
    "scoped",
]

_MODULES = {
    "punchlist.clients.aio": "AsyncClient AsyncConversation connect_async",
    "punchlist.clients.watch": "AsyncWatch",
    "punchlist.calls.cursor": "Change TaskList",
    "punchlist.errors": (
        "Blocked Cancelled ConfirmationRequired ConnectionLost DaemonStopped DaemonUnavailable Damaged "
        "DependencyCycle Diverged "
        "Forbidden Gap IllegalTransition InternalError InvalidParams InvalidRequest KeyConflict LeaseHeld LeaseLost "
        "LimitExceeded MethodNotFound MisplacedScope NoConversation NotFound OutcomeUnknown ParseError ProtocolError "
        "PunchlistError RateLimited RequestRefused ShuttingDown StorageFull TimedOut UndoConflict "
        "Unreachable UpgradeNeeded VersionConflict WrongDataDirectory WrongEpoch"
    ),
    "punchlist.clients.scope": "conversation current_conversation",
    "punchlist.clients.streams": "scoped",
    "punchlist.clients.sync": "Claim Client Conversation Watch Work connect",
    "punchlist.clients.work": "AsyncClaim AsyncWork",
    "punchlist_schemas.params": "NewTask",
    "punchlist_schemas.results": "SetStatusResult",
    "punchlist_schemas.things": "Counts Gate Link Message Note SettingsPatch Task",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # else any misspelt name would pass for one of ours

    def __getattr__(name: str) -> object:
        """Load what a public name stands for (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

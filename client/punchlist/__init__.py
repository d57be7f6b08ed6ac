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

`connect_async()` returns the same client for `async with` and `await`. Public names load on first use, so importing the
package is cheap.
"""

from punchlist.base import __version__

TYPE_CHECKING = False

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
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 # pyright: ignore[reportUnsupportedDunderAll]


if TYPE_CHECKING:
    from punchlist.calls.cursor import Change as Change
    from punchlist.calls.cursor import TaskList as TaskList
    from punchlist.clients.aio import AsyncClient as AsyncClient
    from punchlist.clients.aio import AsyncConversation as AsyncConversation
    from punchlist.clients.aio import connect_async as connect_async
    from punchlist.clients.scope import conversation as conversation
    from punchlist.clients.scope import current_conversation as current_conversation
    from punchlist.clients.streams import scoped as scoped
    from punchlist.clients.sync import Claim as Claim
    from punchlist.clients.sync import Client as Client
    from punchlist.clients.sync import Conversation as Conversation
    from punchlist.clients.sync import Watch as Watch
    from punchlist.clients.sync import Work as Work
    from punchlist.clients.sync import connect as connect
    from punchlist.clients.watch import AsyncWatch as AsyncWatch
    from punchlist.clients.work import AsyncClaim as AsyncClaim
    from punchlist.clients.work import AsyncWork as AsyncWork
    from punchlist.errors import Blocked as Blocked
    from punchlist.errors import Cancelled as Cancelled
    from punchlist.errors import ConfirmationRequired as ConfirmationRequired
    from punchlist.errors import ConnectionLost as ConnectionLost
    from punchlist.errors import DaemonStopped as DaemonStopped
    from punchlist.errors import DaemonUnavailable as DaemonUnavailable
    from punchlist.errors import Damaged as Damaged
    from punchlist.errors import DependencyCycle as DependencyCycle
    from punchlist.errors import Diverged as Diverged
    from punchlist.errors import Forbidden as Forbidden
    from punchlist.errors import Gap as Gap
    from punchlist.errors import IllegalTransition as IllegalTransition
    from punchlist.errors import InternalError as InternalError
    from punchlist.errors import InvalidParams as InvalidParams
    from punchlist.errors import InvalidRequest as InvalidRequest
    from punchlist.errors import KeyConflict as KeyConflict
    from punchlist.errors import LeaseHeld as LeaseHeld
    from punchlist.errors import LeaseLost as LeaseLost
    from punchlist.errors import LimitExceeded as LimitExceeded
    from punchlist.errors import MethodNotFound as MethodNotFound
    from punchlist.errors import MisplacedScope as MisplacedScope
    from punchlist.errors import NoConversation as NoConversation
    from punchlist.errors import NotFound as NotFound
    from punchlist.errors import OutcomeUnknown as OutcomeUnknown
    from punchlist.errors import ParseError as ParseError
    from punchlist.errors import ProtocolError as ProtocolError
    from punchlist.errors import PunchlistError as PunchlistError
    from punchlist.errors import RateLimited as RateLimited
    from punchlist.errors import RequestRefused as RequestRefused
    from punchlist.errors import ShuttingDown as ShuttingDown
    from punchlist.errors import StorageFull as StorageFull
    from punchlist.errors import TimedOut as TimedOut
    from punchlist.errors import UndoConflict as UndoConflict
    from punchlist.errors import Unreachable as Unreachable
    from punchlist.errors import UpgradeNeeded as UpgradeNeeded
    from punchlist.errors import VersionConflict as VersionConflict
    from punchlist.errors import WrongDataDirectory as WrongDataDirectory
    from punchlist.errors import WrongEpoch as WrongEpoch
    from punchlist_schemas.params import NewTask as NewTask
    from punchlist_schemas.results import SetStatusResult as SetStatusResult
    from punchlist_schemas.things import Counts as Counts
    from punchlist_schemas.things import Gate as Gate
    from punchlist_schemas.things import Link as Link
    from punchlist_schemas.things import Message as Message
    from punchlist_schemas.things import Note as Note
    from punchlist_schemas.things import SettingsPatch as SettingsPatch
    from punchlist_schemas.things import Task as Task
else:  # Hidden from type checkers, which would otherwise accept misspelled names.

    def __getattr__(name: str) -> object:
        """Import a public name on first access (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

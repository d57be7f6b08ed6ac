import importlib

import pytest

import punchlist
import punchlist.errors

PUBLIC = {
    "punchlist": (
        "AsyncClaim AsyncClient AsyncConversation AsyncWatch AsyncWork Blocked Cancelled Change Claim Client "
        "ConfirmationRequired ConnectionLost Conversation Counts DaemonStopped DaemonUnavailable Damaged "
        "DependencyCycle Diverged Forbidden Gap Gate IllegalTransition InternalError InvalidParams InvalidRequest "
        "KeyConflict LeaseHeld LeaseLost LimitExceeded Link Message MethodNotFound MisplacedScope NewTask "
        "NoConversation NotFound Note OutcomeUnknown ParseError ProtocolError PunchlistError RateLimited "
        "RequestRefused SetStatusResult SettingsPatch ShuttingDown StorageFull Task TaskList TimedOut UndoConflict "
        "Unreachable UpgradeNeeded VersionConflict Watch Work WrongDataDirectory WrongEpoch __version__ connect "
        "connect_async conversation current_conversation scoped"
    ),
    "punchlist.errors": "Blocked DaemonUnavailable NotFound PunchlistError RequestRefused VersionConflict",
    "punchlist.tools": (
        "FORMATS AsyncToolbox Dialect Format Problem Question Reply Tool ToolCaller Toolbox call definitions dialect "
        "names offered prompt"
    ),
    "punchlist.tools.adapters": "agents_tools answer_anthropic answer_openai answer_responses",
    "punchlist.tools.functions": "functions",
}
"""Names that other programs import. Removing one breaks them."""


@pytest.mark.parametrize("module", PUBLIC)
def test_public_imports_stay(module: str) -> None:
    imported = importlib.import_module(module)
    missing = [name for name in PUBLIC[module].split() if not hasattr(imported, name)]
    assert missing == []


@pytest.mark.parametrize("module", ["punchlist", "punchlist.tools"])
def test_star_import_gives_all_public_names(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module].split())


def test_package_exports_every_error() -> None:
    errors = {
        name
        for name, value in vars(punchlist.errors).items()
        if isinstance(value, type) and issubclass(value, punchlist.errors.PunchlistError)
    }
    assert errors - set(punchlist.__all__) == set()

"""Conversations: opening, configuring and deleting them, and attaching and detaching sessions."""

from msgspec import UNSET, structs

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, ConversationDeleted, ConversationOpened
from punchlist_schemas.things import Metadata, Settings, SettingsPatch
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.rejections import conversation_not_found
from punchlistd.domain.state import State


def open_(state: State, params: p.ConversationOpen, command: Command) -> Decision:
    # Opening an existing conversation changes nothing, whatever its params are.
    if state.exists:
        return NOTHING
    user = command.user or params.user or ""
    metadata = _merge({}, params.metadata)
    opened = ConversationOpened(params.title, user, apply_patch(Settings(), params.settings), params.kind, metadata)
    return Decision((opened,))


def configure(state: State, params: p.ConversationConfigure, _command: Command) -> Decision | Rejection:
    """Change the title, settings and metadata. Reject making the list serial while several tasks are in progress."""
    settings = apply_patch(state.settings, params.settings)
    metadata = _merge(state.metadata, params.metadata or {})
    if settings.execution == "serial" != state.settings.execution and len(state.running) > 1:
        return _reject_serial(state)
    event = ConversationConfigured(
        title=UNSET if params.title is None or params.title == state.title else params.title,
        settings=UNSET if settings == state.settings else settings,
        metadata=UNSET if metadata == state.metadata else metadata,
    )
    return NOTHING if event == ConversationConfigured() else Decision((event,))


def attach(state: State, params: p.ConversationAttach, _command: Command) -> Decision:
    if params.session in state.sessions:
        return NOTHING
    return Decision((ConversationConfigured(attached=params.session),))


def detach(state: State, params: p.ConversationDetach, _command: Command) -> Decision | Rejection:
    if not state.exists:
        return conversation_not_found(params.conversation)
    if params.session not in state.sessions:
        return NOTHING
    return Decision((ConversationConfigured(detached=params.session),))


def delete(state: State, params: p.ConversationDelete, _command: Command) -> Decision | Rejection:
    if not state.exists:
        return conversation_not_found(params.conversation)
    return Decision((ConversationDeleted(),))


def _reject_serial(state: State) -> Rejection:
    names = sorted(state.running, key=state.key)
    message = (
        f"{len(names)} tasks are in progress (#{names[0]}, #{names[1]}, …) and a serial list runs one at a time; "
        "pause or finish the others first."
    )
    return Rejection("illegal_transition", message, {"to": "serial", "running": names[0]})


def _merge(metadata: Metadata, patch: Metadata) -> Metadata:
    return {name: value for name, value in {**metadata, **patch}.items() if value is not None}


def apply_patch(settings: Settings, patch: SettingsPatch | None) -> Settings:
    if patch is None:
        return settings
    changes = {name: value for name, value in structs.asdict(patch).items() if value is not None}
    return structs.replace(settings, **changes)

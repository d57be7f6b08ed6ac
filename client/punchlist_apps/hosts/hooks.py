"""The hosts that run `punch agent prime --hook --host HOST`: their events, input and output.

| host | documentation |
|---|---|
| Claude Code | https://code.claude.com/docs/en/hooks |
| Codex | https://developers.openai.com/codex/hooks |
| Gemini CLI | docs/hooks/reference.md in its package |
| Cursor | https://cursor.com/docs/agent/hooks |
| Copilot CLI | https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-hooks-reference |
| OpenCode | https://opencode.ai/docs/plugins; `client/punchlist_apps/hosts/opencode.js` sends Claude Code's input |

Input and output are JSON. A host adds the output of Claude Code's and OpenCode's hooks to the context as it is.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

Moment = Literal["start", "prompt", "tool", "stop", "end"]
"""When a hook runs: a session starts, a person sends a prompt, a tool returns, the agent stops, a session ends."""

Output = Literal["text", "hookSpecificOutput", "additionalContext", "additional_context"]

Identity = Literal["session", "thread", "process"]
"""What identifies an agent, as in `punchlist_apps.mcp.agents`.

- `session`: its session; after `/clear` the agent continues with another one.
- `thread`: its session, which the host also names in each call.
- `process`: its host's process, whose MCP server serves all sessions.
"""


class HookHost(NamedTuple):
    """A host with hooks.

    Attributes:
        events: The host's name of each event -> when it occurs. The end of a session matters only if its MCP server
            continues.
        output: How the host reads text for the context.
        identity: What identifies an agent.
    """

    events: Mapping[str, Moment]
    output: Output
    identity: Identity


_CLAUDE: dict[str, Moment] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SessionEnd": "end",
}

HOOK_HOSTS: dict[str, HookHost] = {
    "claude-code": HookHost(_CLAUDE, "text", "session"),
    "codex": HookHost(_CLAUDE, "hookSpecificOutput", "thread"),
    "gemini": HookHost(
        {"SessionStart": "start", "BeforeAgent": "prompt", "AfterAgent": "stop"}, "hookSpecificOutput", "process"
    ),
    # Cursor adds nothing to a prompt, so it gets the changes with a tool's result.
    "cursor": HookHost(
        {"sessionStart": "start", "postToolUse": "tool", "stop": "stop"}, "additional_context", "process"
    ),
    # With these names, Copilot sends Claude Code's input; with its own (`agentStop`), the input doesn't name the event.
    "copilot": HookHost(
        {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "stop"}, "additionalContext", "process"
    ),
    "opencode": HookHost({"SessionStart": "start", "UserPromptSubmit": "prompt"}, "text", "process"),
}


class HookEvent(NamedTuple):
    """A hook's input.

    Attributes:
        moment: When the hook runs; None for an event that its host's hooks don't handle.
        name: The host's name of the event.
        session: The id of the session; empty if unknown.
        directory: The session's directory; empty if unknown.
        source: How a session started: `startup`, `resume`, `clear` or `compact`; empty if unknown.
        reason: Why a session ended.
        is_repeated: Whether the agent stops after a reminder, or because its user stopped it.
    """

    moment: Moment | None = "start"
    name: str = "SessionStart"
    session: str = ""
    directory: str = ""
    source: str = ""
    reason: str = ""
    is_repeated: bool = False


def read_event(host: str, data: bytes) -> HookEvent:
    """Return a hook's input. Members that are missing or have the wrong type count as empty."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    members: dict[str, Any] = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}

    def get(*names: str) -> str:
        return next((value for name in names if isinstance(value := members.get(name), str)), "")

    events = HOOK_HOSTS[host].events
    name = get("hook_event_name", "hookEventName") or next(iter(events))
    roots = members.get("workspace_roots")
    first = cast("list[Any]", roots)[0] if isinstance(roots, list) and roots else ""
    return HookEvent(
        events.get(name),
        name,
        get("session_id", "sessionId", "conversation_id"),
        get("cwd") or (first if isinstance(first, str) else ""),
        get("source"),
        get("reason"),
        bool(members.get("stop_hook_active") or members.get("stopHookActive") or members.get("loop_count"))
        or get("status") in ("aborted", "error"),
    )


def format_context(host: str, event: HookEvent, text: str) -> str:
    """Return the output that adds a text to the model's context."""
    match HOOK_HOSTS[host].output:
        case "text":
            return text
        case "hookSpecificOutput":
            return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})
        case name:
            return json.dumps({name: text})


def format_reminder(host: str, text: str) -> str:
    """Return the output that makes an agent continue instead of stopping."""
    if host == "cursor":
        return json.dumps({"followup_message": text})
    return json.dumps({"decision": "block", "reason": text}, ensure_ascii=False)

import json
from typing import Any

import pytest

from punchlist_apps.hosts.hooks import HOOK_HOSTS, HookEvent, format_context, format_reminder, read_event

CLAUDE = {"session_id": "s", "cwd": "/p", "hook_event_name": "SessionStart", "source": "resume"}


def read(host: str, members: object) -> HookEvent:
    return read_event(host, json.dumps(members).encode())


@pytest.mark.parametrize(
    ("host", "members", "event"),
    [
        ("claude-code", CLAUDE, HookEvent("start", "SessionStart", "s", "/p", "resume")),
        ("codex", CLAUDE, HookEvent("start", "SessionStart", "s", "/p", "resume")),
        (
            "gemini",
            {"session_id": "s", "hook_event_name": "AfterAgent", "stop_hook_active": True},
            HookEvent("stop", "AfterAgent", "s", is_repeated=True),
        ),
        (
            "cursor",
            {"conversation_id": "s", "workspace_roots": ["/p", "/q"], "hook_event_name": "postToolUse"},
            HookEvent("tool", "postToolUse", "s", "/p"),
        ),
        (
            "cursor",
            {"conversation_id": "s", "hook_event_name": "stop", "status": "aborted", "loop_count": 0},
            HookEvent("stop", "stop", "s", is_repeated=True),
        ),
        (
            "copilot",
            {"sessionId": "s", "cwd": "/p", "hookEventName": "Stop", "stopHookActive": True},
            HookEvent("stop", "Stop", "s", "/p", is_repeated=True),
        ),
        (
            "opencode",
            {**CLAUDE, "hook_event_name": "UserPromptSubmit", "source": ""},
            HookEvent("prompt", "UserPromptSubmit", "s", "/p"),
        ),
        (
            "claude-code",
            {"hook_event_name": "SessionEnd", "reason": "clear"},
            HookEvent("end", "SessionEnd", reason="clear"),
        ),
        ("gemini", {"hook_event_name": "BeforeTool"}, HookEvent(None, "BeforeTool")),
        ("cursor", {"workspace_roots": [3], "cwd": 4, "session_id": None}, HookEvent("start", "sessionStart")),
        ("gemini", ["session_id"], HookEvent()),
    ],
)
def test_input_of_a_host_is_read(host: str, members: object, event: HookEvent) -> None:
    assert read(host, members) == event


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"NaN"])
def test_invalid_input_is_a_start(data: bytes) -> None:
    assert read_event("codex", data) == HookEvent()


@pytest.mark.parametrize("host", HOOK_HOSTS)
def test_output_has_the_shape_of_its_host(host: str) -> None:
    event, text = HookEvent(name=next(iter(HOOK_HOSTS[host].events))), 'Say "é"'
    shapes: dict[str, Any] = {
        "codex": {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}},
        "gemini": {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}},
        "cursor": {"additional_context": text},
        "copilot": {"additionalContext": text},
    }
    output = format_context(host, event, text)
    assert (json.loads(output) if host in shapes else output) == shapes.get(host, text)
    reminder = {"followup_message": text} if host == "cursor" else {"decision": "block", "reason": text}
    assert json.loads(format_reminder(host, text)) == reminder

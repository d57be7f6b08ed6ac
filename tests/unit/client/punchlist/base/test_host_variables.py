from punchlist.base import host_variables


def test_only_variables_of_sessions_are_selected() -> None:
    chosen = {name: "1" for name in ("PUNCHLIST_SOCKET", "PUNCHLIST_NEW", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID")}
    chosen |= {name: "/" for name in (*host_variables.PROJECT, *host_variables.PLUGIN)}
    others = {"ANTHROPIC_API_KEY": "secret", "HOME": "/", "CLAUDE_CONFIG_DIR": "/", "MY_PUNCHLIST_X": "1"}
    assert host_variables.select(chosen | others) == chosen

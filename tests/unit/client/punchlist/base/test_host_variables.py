from punchlist.base import host_variables


def test_only_variables_of_sessions_are_selected() -> None:
    chosen = {name: "1" for name in ("PUNCHLIST_SOCKET", "PUNCHLIST_NEW", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID")}
    chosen |= {name: "/" for name in (*host_variables.PROJECT, *host_variables.PLUGIN)}
    places = {name: "/" for name in host_variables.PLACES}
    others = {"ANTHROPIC_API_KEY": "secret", "CLAUDE_CONFIG_DIR": "/", "MY_PUNCHLIST_X": "1"}
    assert host_variables.select(chosen | places | others) == chosen | places
    env = chosen | places | others
    host_variables.remove(env)
    assert env == places | others

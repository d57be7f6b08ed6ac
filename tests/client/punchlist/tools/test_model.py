from punchlist import tools


def test_a_reply_reads_as_its_text() -> None:
    assert str(tools.Reply(text="Task #1 created: x")) == "Task #1 created: x"


def test_a_tool_is_found_by_its_exact_name() -> None:
    claude = tools.dialect("claude")
    assert claude.tool("TaskGet") is claude.tools[2]
    assert claude.tool("taskget") is None

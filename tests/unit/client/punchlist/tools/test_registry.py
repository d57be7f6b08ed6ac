from pathlib import Path

import pytest

from punchlist import tools
from punchlist.tools import dialects

SIXTH = """
from punchlist.tools.model import Dialect, NoArguments, Reply, Tool

def run(desk, args):
    tasks = yield desk.calls.list()
    return Reply(text=f"{len(tasks)} in {desk.conversation}")

DIALECT = Dialect(
    name="sixth", summary="s", guide="# p", refuse=lambda problem: Reply(text=problem.text, refused=True),
    tools=(Tool("count", "Count the tasks.", NoArguments, run, "reads"),),
)
"""


def test_native_dialect_comes_first() -> None:
    assert tools.names() == ("native", "checklist", "claude", "queue", "todo", "todo-v1")


def test_new_dialect_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, box: tools.Toolbox) -> None:
    (tmp_path / "sixth.py").write_text(SIXTH)
    monkeypatch.setattr(dialects, "__path__", [*dialects.__path__, str(tmp_path)])
    assert "sixth" in tools.names()
    assert tools.definitions("sixth")[0]["name"] == "count"
    assert box.call("sixth", "count").text == "0 in work"

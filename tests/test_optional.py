"""What `make test` says of the tests that it skips."""

import os
import sys
from pathlib import Path

import pytest

from punchlist_testing.optional import NEEDS, explain

pytest_plugins = ("pytester",)

SUITE = """
import pytest
from punchlist_testing.optional import needs, require_package

@needs("nvim", present={present})
@pytest.mark.parametrize("number", range(2))
def test_with_neovim(number):
    pass

@pytest.mark.skipif(True, reason="only root can mount")
def test_as_root():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite with this one's conftest.py."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text("utf-8"))
    return pytester


def test_each_reason_is_one_line_with_its_command(suite: pytest.Pytester) -> None:
    suite.makepyfile(SUITE.format(present=False))
    suite.makepyfile(test_whole_file="from punchlist_testing.optional import require_package\nrequire_package('mcp')")
    assert suite.runpytest_subprocess("-p", "no:cacheprovider").outlines[-4:-1] == [
        "2 tests need Neovim: make coverage",
        "1 file needs the MCP SDK: make conformance",
        "1 test skipped: only root can mount",
    ]


@pytest.mark.parametrize(("optional", "outcomes"), [("0", {"skipped": 3}), ("1", {"passed": 2, "skipped": 1})])
def test_optional_programs_can_be_hidden(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, optional: str, outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv("OPTIONAL", optional)
    suite.makepyfile(SUITE.format(present=True))
    suite.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(**outcomes)


def test_every_command_is_a_target_of_make() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text("utf-8")
    for name, need in NEEDS.items():
        assert f"\n{need.command.split()[1]}:" in makefile, explain(name)


def test_make_coverage_installs_what_it_is_named_for() -> None:
    """The Makefile gets these three by pip and npm, all others by apt."""
    others = {"nats-server", "page", "npm"}
    by_apt = {name for name, need in NEEDS.items() if need.package}
    assert by_apt | others == {name for name, need in NEEDS.items() if need.command == "make coverage"}

import subprocess
import sys

import pytest

from punchlist_testing.unmeasured import unmeasured
from punchlistd import __version__
from punchlistd.__main__ import build_parser, main


def test_help_names_the_exit_codes_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f" {code} " in said for code in (0, 2, 70, 74, 75, 78))
    assert "examples:" in said


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"punchlistd {__version__}\n"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--ready-fd", "x"], ["--log-level", "loud"], ["extra"]])
def test_usage_error_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: punchlistd" in capsys.readouterr().err


def test_help_needs_no_event_loop_and_no_database() -> None:
    code = (
        "from punchlistd.__main__ import build_parser; build_parser(); print({'asyncio', 'sqlite3'} & set(sys.modules))"
    )
    path = [each for each in sys.path if each]
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        env=unmeasured(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.stdout == "set()\n", ended.stderr


def test_options_are_as_documented() -> None:
    options = vars(build_parser().parse_args([]))
    serving = {"socket", "data_dir", "ready_fd", "idle_exit", "grace", "read_only", "log_level", "log_format"}
    assert set(options) == serving | {"verify", "restore", "repair", "aside"}

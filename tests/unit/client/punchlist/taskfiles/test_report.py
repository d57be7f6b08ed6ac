from pathlib import Path

from punchlist.taskfiles.config import Config, Entry
from punchlist.taskfiles.report import Problem, Report, is_corrupt, status


def problem(kind: str, file: str = "/m/web.json", copy: str = "", text: str = "x") -> Problem:
    return Problem("web", file, kind, text, 1, copy)


def test_problem_is_reported_once_and_cleared(tmp_path: Path) -> None:
    told: list[Problem] = []
    report = Report(str(tmp_path), told.append)
    Config(str(tmp_path)).add(Entry(str(tmp_path)))
    file = tmp_path / "web.json"
    file.write_text("{")
    report.add(problem("corrupt", str(file)))
    report.add(problem("corrupt", str(file)))
    assert told == [problem("corrupt", str(file))]
    assert is_corrupt("web", str(tmp_path))
    assert not is_corrupt("other", str(tmp_path))
    report.clear(str(file), "corrupt")
    assert not is_corrupt("web", str(tmp_path))


def test_conflict_persists_until_its_copy_is_removed(tmp_path: Path) -> None:
    copy = tmp_path / "web.json.1.conflict"
    copy.write_text("")
    Report(str(tmp_path), print).add(problem("conflict", copy=str(copy)))
    again = Report(str(tmp_path), print)
    again.add(problem("trouble", "/m"))
    found = status(str(tmp_path))
    assert found
    assert [one.kind for one in found.problems] == ["conflict", "trouble"]
    copy.unlink()
    found = status(str(tmp_path))
    assert found
    assert [one.kind for one in found.problems] == ["trouble"]


def test_missing_or_broken_file_reports_nothing(tmp_path: Path) -> None:
    assert status(str(tmp_path)) is None
    for text in ("", "[]", '{"problems": 3}', '{"problems": [3]}', "\x00"):
        (tmp_path / "mirror-status.json").write_text(text)
        assert status(str(tmp_path)) is None
        assert not is_corrupt("web", str(tmp_path))

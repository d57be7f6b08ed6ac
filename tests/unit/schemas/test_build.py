import shutil
import sys
from pathlib import Path

import pytest

from punchlist_schemas.build import build_stamp, is_same_code

ROOT = Path(__file__).parents[3]


def copied(directory: Path) -> Path:
    for package, folder in (("punchlistd", "daemon"), ("punchlist_schemas", "schemas")):
        shutil.copytree(ROOT / folder / package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    return directory


def test_same_files_have_the_same_stamp_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = build_stamp("1.0")
    assert here.startswith("1.0+")
    monkeypatch.setattr(sys, "path", [str(copied(tmp_path))])
    assert build_stamp("1.0") == here
    (tmp_path / "punchlistd" / "__pycache__").mkdir()
    (tmp_path / "punchlistd" / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"compiled")
    assert build_stamp("1.0") == here


@pytest.mark.parametrize("file", ["punchlistd/app/app.py", "punchlistd/store/sqlite.py", "punchlist_schemas/params.py"])
def test_change_of_any_file_changes_the_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setattr(sys, "path", ["", str(copied(tmp_path))])
    before = build_stamp("1.0")
    with open(tmp_path / file, "a") as source:
        source.write("# more\n")
    assert build_stamp("1.0") != before


def test_stamp_without_a_daemon_is_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert build_stamp("1.0") == "1.0"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.2.0+g26fd1d7b+e54b75f4", "0.2.0+gcb19efad.changed+e54b75f4", True),
        ("0.2.0+g26fd1d7b+e54b75f4", "0.2.1+gcb19efad+e54b75f4", False),
        ("0.2.0+g26fd1d7b+e54b75f4", "0.2.0+e54b75f4", True),
        ("0.2.0+g26fd1d7b+e54b75f4", "0.2.0+g26fd1d7b+e54b75f5", False),
        ("0.2.0+g26fd1d7b+e54b75f4", "0.2.0+g26fd1d7b", False),
        ("0.2.0+g26fd1d7", "0.2.0.post3+g26fd1d7", False),
        ("0.2.0", "0.2.0", True),
        ("", "0.2.0+e54b75f4", False),
    ],
)
def test_same_version_and_digest_are_the_same_code(one: str, other: str, same: bool) -> None:
    assert is_same_code(one, other) is same
    assert is_same_code(other, one) is same

import os
from pathlib import Path

import pytest

from punchlist import project


def write(directory: Path, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / project.NAME
    path.write_text(text)
    return path


def test_the_nearest_file_above_a_directory_counts(tmp_path: Path) -> None:
    write(tmp_path, project.text_for("outer"))
    write(tmp_path / "a", project.text_for("inner"))
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert project.conversation(str(deep)) == "inner"
    assert project.conversation(str(tmp_path)) == "outer"


def test_no_file_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "website.toml").write_text('conversation = "website"')
    assert project.find(str(tmp_path)) is None
    assert project.conversation(str(tmp_path)) is None


@pytest.mark.parametrize(
    "text",
    [
        'conversation = "a.b:c-1"\n',
        'conversation="a.b:c-1"',
        "# a comment\n\nconversation = 'a.b:c-1'  # and another\n",
        'other = 1\nconversation = """a.b:c-1"""\n[table]\nx = 1\n',
    ],
)
def test_any_toml_that_names_a_list_will_do(tmp_path: Path, text: str) -> None:
    assert project.read(str(write(tmp_path, text))) == "a.b:c-1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "conversation = 3",
        'conversation = ""',
        'conversation = "../etc"',
        'conversation = "a b"',
        'conversation = "é"',
        f'conversation = "{"a" * 129}"',
        'conversation = "a',
        "\ufeff=",
        '[conversation]\nname = "a"',
    ],
)
def test_a_file_that_names_none_is_an_error_that_tells_its_path(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(project.ProjectFileError, match=str(path)):
        project.conversation(str(tmp_path))


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / project.NAME).write_bytes(b"\xff\xfe")
    with pytest.raises(project.ProjectFileError):
        project.conversation(str(tmp_path))


def test_what_is_no_regular_file_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, project.text_for("outer"))
    (tmp_path / "a" / project.NAME).mkdir(parents=True)
    os.mkfifo(write(tmp_path / "b", "").with_name("pipe"))
    (tmp_path / "b" / project.NAME).unlink()
    os.rename(tmp_path / "b" / "pipe", tmp_path / "b" / project.NAME)
    assert project.conversation(str(tmp_path / "a")) == "outer"
    assert project.conversation(str(tmp_path / "b")) == "outer"


def test_another_users_file_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, project.text_for("theirs"))
    if os.getuid() == 0:
        os.chown(tmp_path / project.NAME, 4711, 4711)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert project.conversation(str(tmp_path)) is None


def test_a_directory_that_is_gone_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project.conversation() is None

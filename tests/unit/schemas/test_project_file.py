import os
from pathlib import Path

import pytest

from punchlist_schemas import project_file
from punchlist_schemas.project_file import DirectoryError


def write(directory: Path, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / project_file.NAME
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        project_file.format_text("a.b:c-1"),
        'conversation = "a.b:c-1"\n',
        'conversation="a.b:c-1"',
        "# a comment\n\nconversation = 'a.b:c-1'  # and another\n",
        'other = 1\nconversation = """a.b:c-1"""\n[table]\nx = 1\n',
    ],
)
def test_any_toml_with_a_list_is_accepted(tmp_path: Path, text: str) -> None:
    assert project_file.read(str(write(tmp_path, text))) == "a.b:c-1"


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
        "a = " + "[" * 30_000,
        "#" * 100_000 + '\nconversation = "late"',
    ],
)
def test_error_without_list_has_the_path(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DirectoryError, match=str(path)):
        project_file.read(str(path))


def test_bytes_that_are_not_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / project_file.NAME).write_bytes(b"\xff\xfe")
    with pytest.raises(DirectoryError):
        project_file.read(str(tmp_path / project_file.NAME))


def test_links_directories_and_pipes_are_rejected_unread(tmp_path: Path) -> None:
    path = tmp_path / project_file.NAME
    path.mkdir()
    with pytest.raises(DirectoryError, match="is not a file"):
        project_file.exists(str(path))
    path.rmdir()
    os.mkfifo(path)
    for look in (project_file.exists, project_file.read):
        with pytest.raises(DirectoryError, match="is not a file"):
            look(str(path))
    path.unlink()
    path.symlink_to(write(tmp_path / "elsewhere", project_file.format_text("private")))
    for look in (project_file.exists, project_file.read):
        with pytest.raises(DirectoryError):
            look(str(path))


def test_file_of_another_user_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, project_file.format_text("theirs"))
    if os.getuid() == 0:
        os.chown(path, 4711, 4711)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    for look in (project_file.exists, project_file.read):
        with pytest.raises(DirectoryError, match="another user"):
            look(str(path))

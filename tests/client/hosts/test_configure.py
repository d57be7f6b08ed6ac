import os
from pathlib import Path

import pytest

from punchlist.hosts import jsonc
from punchlist.hosts.catalog import Edit, FileEdits
from punchlist.hosts.configure import Configurator, SetupError


def has_x(item: dict[str, int]) -> bool:
    return "x" in item


EDITS = (
    Edit(("mcpServers", "punchlist"), {"command": "punch"}),
    Edit(("hooks", "Stop"), {"x": 1}, ours=has_x),
)
OTHER = (Edit(("mcpServers", "punchlist"), {"command": "/new/punch"}), EDITS[1]._replace(value={"x": 2}))
MINE = '{\n  // mine\n  "theme": "dark",\n  "mcpServers": {"a": {"command": "x"}}\n}'


@pytest.fixture
def files(tmp_path: Path) -> Configurator:
    return Configurator(str(tmp_path / "data"))


@pytest.fixture
def wanted(tmp_path: Path) -> FileEdits:
    return FileEdits(str(tmp_path / "host" / "deep" / "settings.json"), "json", EDITS)


def write(wanted: FileEdits, text: str) -> Path:
    path = Path(wanted.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_of_ours_alone_is_taken_back_with_the_directories_made_for_it(
    files: Configurator, wanted: FileEdits, tmp_path: Path
) -> None:
    files.apply(files.plan(wanted))
    assert jsonc.parse(Path(wanted.path).read_text()).value["hooks"] == {"Stop": [{"x": 1}]}
    files.apply_removal(files.plan_removal(wanted))
    assert not (tmp_path / "host").exists()
    assert list((tmp_path / "data" / "setup").iterdir()) == []


def test_a_file_is_put_back_byte_for_byte(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    path.chmod(0o640)
    files.apply(files.plan(wanted))
    assert Path(files.backup_of(wanted.path)).read_text() == MINE
    assert path.read_text() != MINE
    again = files.plan(wanted)
    assert again.before == again.after
    files.apply_removal(files.plan_removal(wanted))
    assert path.read_text() == MINE
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_second_setup_keeps_the_first_backup(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    files.apply(files.plan(wanted))
    newer = wanted._replace(edits=(Edit(("mcpServers", "punchlist"), {"command": "/new/punch"}), EDITS[1]))
    files.apply(files.plan(newer))
    assert "/new/punch" in path.read_text()
    files.apply_removal(files.plan_removal(newer))
    assert path.read_text() == MINE


def test_what_others_wrote_since_stays_when_we_go(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    files.apply(files.plan(wanted))
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    files.apply_removal(files.plan_removal(wanted))
    assert path.read_text() == MINE.replace('"dark"', '"light"')


def test_a_setup_after_others_wrote_is_taken_back_as_well(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    files.apply(files.plan(wanted))
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    files.apply(files.plan(wanted._replace(edits=OTHER)))
    assert "/new/punch" in path.read_text()
    files.apply_removal(files.plan_removal(wanted))
    assert path.read_text() == MINE.replace('"dark"', '"light"')


def test_a_file_that_is_ours_alone_goes_away_however_often_it_was_written(
    files: Configurator, wanted: FileEdits, tmp_path: Path
) -> None:
    files.apply(files.plan(wanted))
    path = Path(wanted.path)
    path.write_text(path.read_text().replace('"x": 1', '"x": 3'))
    files.apply(files.plan(wanted))
    path.write_text(path.read_text().replace("\n", "\n\n"))
    files.apply_removal(files.plan_removal(wanted))
    assert not (tmp_path / "host").exists()


def test_another_setup_replaces_the_item_of_an_earlier_one(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, '{"hooks": {"Stop": [{"y": 1}]}}')
    for edits in (EDITS, OTHER):
        files.apply(files.plan(wanted._replace(edits=edits)))
    assert jsonc.find(path.read_text(), ("hooks", "Stop")) == [{"y": 1}, {"x": 2}]
    path.write_text(path.read_text() + "\n")
    files.apply_removal(files.plan_removal(wanted))
    assert jsonc.find(path.read_text(), ("hooks", "Stop")) == [{"y": 1}]


def test_a_file_whose_backup_is_gone_loses_our_members_only(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    files.apply(files.plan(wanted))
    Path(files.backup_of(wanted.path)).unlink()
    files.apply_removal(files.plan_removal(wanted))
    assert path.read_text() == MINE


def test_removing_what_was_never_set_up_changes_nothing(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, MINE)
    change = files.plan_removal(wanted)
    assert change.before == change.after
    files.apply_removal(change)
    assert path.read_text() == MINE


def test_a_linked_file_stays_a_link(files: Configurator, wanted: FileEdits, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text(MINE)
    path = Path(wanted.path)
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    files.apply(files.plan(wanted))
    assert path.is_symlink()
    assert "punchlist" in target.read_text()
    files.apply_removal(files.plan_removal(wanted))
    assert path.is_symlink()
    assert target.read_text() == MINE


@pytest.mark.parametrize(
    ("text", "told"),
    [('{\n"a": }', ":2: expected a value"), ("[]", ":1: the file: expected an object"), ('{"mcpServers": 3}', ":1: ")],
)
def test_a_file_that_cannot_be_changed_is_refused_with_its_line(
    files: Configurator, wanted: FileEdits, text: str, told: str
) -> None:
    path = write(wanted, text)
    with pytest.raises(SetupError) as caught:
        files.plan(wanted)
    assert str(caught.value).startswith(wanted.path + told)
    assert path.read_text() == text


def test_what_is_no_text_file_is_refused(files: Configurator, wanted: FileEdits) -> None:
    path = write(wanted, "")
    path.write_bytes(b"{\n\xff}")
    with pytest.raises(SetupError, match=":2: not UTF-8"):
        files.plan(wanted)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SetupError, match="not a regular file"):
        files.plan(wanted)


def test_the_difference_is_shown(files: Configurator, wanted: FileEdits) -> None:
    write(wanted, MINE)
    lines = files.plan(wanted).diff()
    assert lines[:2] == [f"--- {wanted.path}", f"+++ {wanted.path}"]
    assert any(line.startswith("+") and "punchlist" in line for line in lines)

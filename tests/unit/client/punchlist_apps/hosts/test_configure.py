import json
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from punchlist_apps.hosts import configure, jsonc
from punchlist_apps.hosts.catalog import Edit, FileEdits
from punchlist_apps.hosts.configure import Configurator, SetupError
from punchlist_apps.hosts.files import Replacement


def has_x(item: dict[str, int]) -> bool:
    return "x" in item


EDITS = (Edit(("mcpServers", "punchlist"), {"command": "punch"}), Edit(("hooks", "Stop"), {"x": 1}, is_ours=has_x))
OTHER = (Edit(("mcpServers", "punchlist"), {"command": "/new/punch"}), EDITS[1]._replace(value={"x": 2}))
MINE = '{\n  // mine\n  "theme": "dark",\n  "mcpServers": {"a": {"command": "x"}}\n}'


@pytest.fixture
def files(tmp_path: Path) -> Configurator:
    return Configurator(str(tmp_path / "data"))


@pytest.fixture
def target(tmp_path: Path) -> FileEdits:
    return FileEdits(str(tmp_path / "host" / "deep" / "settings.json"), "json", EDITS)


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def write(target: FileEdits, text: str) -> Path:
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_removal_deletes_created_file_and_directories(files: Configurator, target: FileEdits, tmp_path: Path) -> None:
    files.edit([target])
    assert jsonc.parse(Path(target.path).read_text()).value["hooks"] == {"Stop": [{"x": 1}]}
    files.edit([target], remove=True)
    assert not (tmp_path / "host").exists()
    assert list((tmp_path / "data" / "setup").iterdir()) == []


@pytest.mark.parametrize("text", [MINE, '{"mcpServers": {}, "hooks": {"Stop": []}}'])
def test_unchanged_file_is_restored_exactly(files: Configurator, target: FileEdits, text: str) -> None:
    path = write(target, text)
    path.chmod(0o640)
    files.edit([target])
    assert Path(files.get_backup_path(target.path)).read_text() == text
    assert path.read_text() != text
    again = files.plan(target)
    assert again.before == again.after
    files.edit([target], remove=True)
    assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_second_setup_keeps_the_first_backup(files: Configurator, target: FileEdits) -> None:
    path = write(target, MINE)
    files.edit([target])
    newer = target._replace(edits=(Edit(("mcpServers", "punchlist"), {"command": "/new/punch"}), EDITS[1]))
    files.edit([newer])
    assert "/new/punch" in path.read_text()
    files.edit([newer], remove=True)
    assert path.read_text() == MINE


def test_removal_keeps_external_changes(files: Configurator, target: FileEdits) -> None:
    path = write(target, MINE)
    files.edit([target])
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    files.edit([target], remove=True)
    assert path.read_text() == MINE.replace('"dark"', '"light"')


def test_setup_after_external_changes_is_undone(files: Configurator, target: FileEdits) -> None:
    path = write(target, MINE)
    files.edit([target])
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    files.edit([target._replace(edits=OTHER)])
    assert "/new/punch" in path.read_text()
    files.edit([target], remove=True)
    assert path.read_text() == MINE.replace('"dark"', '"light"')


def test_removal_deletes_file_after_several_setups(files: Configurator, target: FileEdits, tmp_path: Path) -> None:
    files.edit([target])
    path = Path(target.path)
    path.write_text(path.read_text().replace('"x": 1', '"x": 3'))
    files.edit([target])
    path.write_text(path.read_text().replace("\n", "\n\n"))
    files.edit([target], remove=True)
    assert not (tmp_path / "host").exists()


def test_later_setup_replaces_earlier_item(files: Configurator, target: FileEdits) -> None:
    path = write(target, '{"hooks": {"Stop": [{"y": 1}]}}')
    for edits in (EDITS, OTHER):
        files.edit([target._replace(edits=edits)])
    assert jsonc.find(path.read_text(), ("hooks", "Stop")) == [{"y": 1}, {"x": 2}]
    path.write_text(path.read_text() + "\n")
    files.edit([target], remove=True)
    assert jsonc.find(path.read_text(), ("hooks", "Stop")) == [{"y": 1}]


def test_without_backup_only_own_members_are_removed(files: Configurator, target: FileEdits) -> None:
    path = write(target, MINE)
    files.edit([target])
    Path(files.get_backup_path(target.path)).unlink()
    files.edit([target], remove=True)
    assert path.read_text() == MINE


def test_setup_after_a_lost_record_is_undone(files: Configurator, target: FileEdits, tmp_path: Path) -> None:
    path = write(target, MINE)
    files.edit([target._replace(edits=OTHER)])
    shutil.rmtree(tmp_path / "data")
    files.edit([target])
    files.edit([target], remove=True)
    assert path.read_text() == MINE


def test_removal_without_setup_changes_nothing(files: Configurator, target: FileEdits) -> None:
    path = write(target, MINE)
    [change] = files.edit([target], remove=True)
    assert not change.is_change
    assert path.read_text() == MINE


def test_a_linked_file_stays_a_link(files: Configurator, target: FileEdits, tmp_path: Path) -> None:
    linked = tmp_path / "dotfiles.json"
    linked.write_text(MINE)
    path = Path(target.path)
    path.parent.mkdir(parents=True)
    path.symlink_to(linked)
    files.edit([target])
    assert path.is_symlink()
    assert "punchlist" in linked.read_text()
    files.edit([target], remove=True)
    assert path.is_symlink()
    assert linked.read_text() == MINE


@pytest.mark.parametrize(
    ("text", "told"),
    [('{\n"a": }', ":2: expected a value"), ("[]", ":1: the file: expected an object"), ('{"mcpServers": 3}', ":1: ")],
)
def test_unparsable_file_is_rejected_with_its_line(
    files: Configurator, target: FileEdits, text: str, told: str
) -> None:
    path = write(target, text)
    with pytest.raises(SetupError) as caught:
        files.plan(target)
    assert str(caught.value).startswith(target.path + told)
    assert path.read_text() == text


def test_binary_file_is_rejected(files: Configurator, target: FileEdits) -> None:
    path = write(target, "")
    path.write_bytes(b"{\n\xff}")
    with pytest.raises(SetupError, match=":2: not UTF-8"):
        files.plan(target)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SetupError, match="not a regular file"):
        files.plan(target)


def test_several_files_are_written_all_or_none(files: Configurator, target: FileEdits, tmp_path: Path) -> None:
    path = write(target, MINE)
    other = FileEdits(str(tmp_path / "taken" / "deep" / "x.json"), "json", EDITS)
    (tmp_path / "taken").write_text("no directory")
    before = everything(tmp_path)
    for order in ([target, other], [other, target]):
        with pytest.raises(SetupError, match="taken"):
            files.edit(order)
        assert everything(tmp_path) == before
    (tmp_path / "taken").unlink()
    files.edit([target, other])
    assert "punchlist" in path.read_text()
    files.edit([target, other], remove=True)
    assert path.read_text() == MINE
    assert not (tmp_path / "taken").exists()


def test_concurrent_writes_of_a_host_are_kept(files: Configurator, target: FileEdits) -> None:
    path = write(target, '{"turns": 0}')
    landed: list[int] = []
    rounds = threading.Event()

    def host() -> None:
        for turn in range(1, 500):
            seen = json.loads(path.read_text())
            beside = path.with_name(f"host.{turn}")
            beside.write_text(json.dumps({**seen, "turns": turn}))
            os.replace(beside, path)
            landed.append(turn)
            if rounds.wait(0.001):
                return

    thread = threading.Thread(target=host)
    thread.start()
    try:
        for number in range(30):
            with suppress(SetupError):  # the host writes first each time
                files.edit([target._replace(edits=(Edit(("mcpServers", "punchlist"), {"round": number}),))])
    finally:
        rounds.set()
        thread.join()
    files.edit([target])
    assert jsonc.find(path.read_text(), ("turns",)) == landed[-1]
    assert jsonc.find(path.read_text(), ("mcpServers", "punchlist")) == {"command": "punch"}
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_changed_file_is_planned_again(files: Configurator, target: FileEdits, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(target, '{"a": 1}')
    replace_all = configure.replace_all

    def late(replacements: list[Replacement]) -> dict[str, tuple[str, ...]]:
        path.write_text('{"a": 2}')
        monkeypatch.setattr(configure, "replace_all", replace_all)
        return replace_all(replacements)

    monkeypatch.setattr(configure, "replace_all", late)
    files.edit([target])
    assert jsonc.find(path.read_text(), ("a",)) == 2
    files.edit([target], remove=True)
    assert path.read_text() == '{"a": 2}'


def test_difference_is_shown(files: Configurator, target: FileEdits) -> None:
    write(target, MINE)
    lines = files.plan(target).diff()
    assert lines[:2] == [f"--- {target.path}", f"+++ {target.path}"]
    assert any(line.startswith("+") and "punchlist" in line for line in lines)

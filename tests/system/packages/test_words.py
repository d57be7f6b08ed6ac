"""One program generates and checks the files that the page and the editors share with the Python sources."""

from pathlib import Path

import pytest

from punchlist_packages import words


def test_files_are_written_and_then_up_to_date(tmp_path: Path) -> None:
    for name in words.files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(SystemExit, match=r"words\.js is not up to date: make fmt"):
        words.main(["--check"], tmp_path)
    words.main([], tmp_path)
    words.main(["--check"], tmp_path)
    (tmp_path / "editors/nvim/lua/punchlist/characters.lua").write_text("-- another\n", "utf-8")
    with pytest.raises(SystemExit, match=r"characters\.lua is not up to date: make fmt"):
        words.main(["--check"], tmp_path)


def test_committed_files_are_up_to_date() -> None:
    words.main(["--check"])


def test_page_has_its_own_keys() -> None:
    groups = words.key_groups()
    keys = [key for group in groups for key in group["keys"]]
    assert all(group["keys"] for group in groups)
    assert all("web" in key.get("faces", ("web",)) for key in keys) and any("faces" in key for key in keys)

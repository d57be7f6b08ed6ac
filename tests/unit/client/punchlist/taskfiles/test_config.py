from pathlib import Path

import pytest

from punchlist.taskfiles.config import Config, ConfigError, Entry


def test_conversations_join_an_entry_and_leave_it(tmp_path: Path) -> None:
    config = Config(str(tmp_path))
    assert config.read().mirrors == ()
    config.add(Entry("/a", "checklist", ("x",)))
    config.add(Entry("/a", "checklist", ("y", "x")))
    config.add(Entry("/a", "claude"))
    assert config.read().mirrors == (Entry("/a", "checklist", ("x", "y")), Entry("/a", "claude", None))
    assert config.remove("/a", "x")
    assert config.read().mirrors[0].conversations == ("y",)
    assert not config.remove("/b")
    assert config.remove("/a")
    assert config.read().mirrors == ()


def test_all_swallows_the_named(tmp_path: Path) -> None:
    config = Config(str(tmp_path))
    config.add(Entry("/a", "checklist", ("x",)))
    (entry,) = config.add(Entry("/a", "checklist"))
    assert entry.conversations is None
    assert entry.holds("anything")


def test_broken_file_is_named_in_error(tmp_path: Path) -> None:
    config = Config(str(tmp_path))
    config.add(Entry("/a"))
    Path(config.path).write_text('{"mirrors": [{"directory": 3}]}')
    with pytest.raises(ConfigError, match="config.json"):
        config.read()

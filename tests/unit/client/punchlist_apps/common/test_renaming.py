import errno
import os
from pathlib import Path

from punchlist_apps.common.renaming import EXCHANGE, NO_REPLACE, rename_if


def test_exchange_overwrites_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert rename_if(folder, "a", "b", EXCHANGE) == 0
        assert (tmp_path / "a").read_bytes() == b"b"
        assert rename_if(folder, "a", "b", NO_REPLACE) == errno.EEXIST
        assert rename_if(folder, "gone", "b", EXCHANGE) == errno.ENOENT
    finally:
        os.close(folder)

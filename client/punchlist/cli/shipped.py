"""Files that go with the packages: units for systemd, completion scripts. In a checkout they stand at its top."""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from punchlist.cli.failure import NotShipped

CHECKOUT = Path(__file__).resolve().parents[3]


def shipped(source: str, *installed: str) -> str:
    """The text of a file as it was shipped.

    Args:
        source: Its path in a checkout.
        installed: The paths at whose end it may stand in an installation.

    Raises:
        NotShipped: It is not part of this installation.
    """
    if (path := CHECKOUT / source).is_file():
        return path.read_text("utf-8")
    try:
        found = files("punchlist") or []
    except PackageNotFoundError:
        found = []
    for one in found:
        if str(one).endswith(installed):
            return one.read_text("utf-8")
    raise NotShipped(f"{source} is not part of this installation")


def shipped_tree(source: str, installed: str) -> dict[str, bytes]:
    """All files below a directory as it was shipped, by their paths in it.

    Args:
        source: The directory in a checkout.
        installed: What stands before these paths in an installation.

    Raises:
        NotShipped: It is not part of this installation.
    """
    if (top := CHECKOUT / source).is_dir():
        return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}
    try:
        found = files("punchlist") or []
    except PackageNotFoundError:
        found = []
    tree = {str(one).partition(installed)[2]: one.read_binary() for one in found if installed in str(one)}
    if not tree:
        raise NotShipped(f"{source} is not part of this installation")
    return tree

"""Files that go with the packages: units, completion scripts, plugins. In a checkout they stand at its top."""

from pathlib import Path

from punchlist.cli.failure import NotShipped

CHECKOUT = Path(__file__).resolve().parents[3]
INSTALLED = Path(__file__).resolve().parents[1] / "shipped"


def shipped(source: str) -> str:
    """The text of a file as it was shipped.

    Args:
        source: Its path in a checkout.

    Raises:
        NotShipped: It is not part of this installation.
    """
    return shipped_path(source).read_text("utf-8")


def shipped_tree(source: str) -> dict[str, bytes]:
    """All files below a directory as it was shipped, by their paths in it.

    Args:
        source: The directory in a checkout.

    Raises:
        NotShipped: It is not part of this installation.
    """
    top = shipped_path(source)
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def shipped_path(source: str) -> Path:
    """Where a file or a directory is as it was shipped.

    Args:
        source: Its path in a checkout.

    Raises:
        NotShipped: It is not part of this installation.
    """
    for place in (INSTALLED, CHECKOUT):
        if (path := place / source).exists():
            return path
    raise NotShipped(f"{source} is not part of this installation")

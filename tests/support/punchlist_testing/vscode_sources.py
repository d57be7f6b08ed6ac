"""What the extension of VS Code is made of: `make vscode` hashes these files, and a test looks whether it was run."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
MADE = {"punchlist.vsix", "sources.sha256"}
_SHARED = ("client/punchlist/web/page/rows.js", "client/punchlist/web/page/text.js", "LICENSE")


def sources() -> list[Path]:
    """The files, in the order in which they are hashed; tests and what git ignores are none of them."""
    kept = ("src", "media")
    own = [path for path in EXTENSION.iterdir() if path.is_file() and path.name not in MADE | {"LICENSE"}]
    own += [path for folder in kept for path in (EXTENSION / folder).iterdir()]
    return [*sorted(own), *(ROOT / name for name in _SHARED)]


if __name__ == "__main__":
    print("\n".join(map(str, sources())))

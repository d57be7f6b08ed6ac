"""Hooks of mkdocs: the pages that stand beside README.md join the site, and links find them there."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {name: name for name in ("LICENSE", *(path.name for path in ROOT.glob("*.md")))} | {"README.md": "index.md"}
"""File of the repository's top folder → its address in the site."""

LINK = re.compile(r"\]\(([\w./-]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the top folder."""
    for name, address in sorted(BESIDE.items()):
        files.append(File.generated(config, address, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site, which has no folders."""
    folder = "" if page.file.src_uri in BESIDE.values() else "docs"

    def to_site(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        return f"]({BESIDE.get(path, path.removeprefix('docs/'))}"

    return LINK.sub(to_site, markdown)

"""Hooks of mkdocs: add the pages of the top folder to the site, and adapt links to them."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TOP_PAGES = {name: name for name in ("LICENSE", *(path.name for path in ROOT.glob("*.md")))} | {"README.md": "index.md"}
"""File in the top folder → its address in the site."""

LINK = re.compile(r"\]\(([\w./-]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the top folder."""
    for name, address in sorted(TOP_PAGES.items()):
        files.append(File.generated(config, address, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links between files of the repository by links between pages of the site, which has no folders."""
    folder = "" if page.file.src_uri in TOP_PAGES.values() else "docs"

    def to_site(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        return f"]({TOP_PAGES.get(path, path.removeprefix('docs/'))}"

    return LINK.sub(to_site, markdown)

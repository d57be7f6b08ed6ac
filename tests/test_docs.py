"""The pages as one book: each stands in the site's navigation, and no link leads nowhere. `make docs` builds it."""

import posixpath
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOP = sorted(path.name for path in ROOT.glob("*.md"))
PAGES = [*TOP, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!`)\]\((?!https?:)([^)\s]*)\)")


def text(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text("utf-8"))


def anchors(page: str) -> set[str]:
    """What GitHub calls the headings of a page, and `make docs` as well."""
    headings = re.findall(r"^#+ (.+)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lost_links(page: str, source: str) -> list[str]:
    """The links of a page's source that lead to no file of the repository, or to no heading of it."""
    lost: list[str] = []
    for link in LINK.findall(source):
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if not (ROOT / target).exists() or (anchor and (target not in PAGES or anchor not in anchors(target))):
            lost.append(link)
    return lost


def test_every_page_stands_in_the_sites_navigation_once() -> None:
    site = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\ntheme:\n")[0]
    named = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", site, re.MULTILINE)
    assert sorted(named) == sorted({"README.md": "index.md"}.get(page, page.removeprefix("docs/")) for page in PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_link_of_a_page_leads_to_a_file_and_a_heading_that_are_there(page: str) -> None:
    assert lost_links(page, text(page)) == []


@pytest.mark.parametrize("link", ["gone.md", "queue.md#gone", "#gone", "docs/queue.md", "../client#gone"])
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    assert lost_links("docs/agents.md", f"See [this]({link}) and [that](queue.md#claims).") == [link]


def test_every_source_file_that_the_theory_of_operation_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)`", text("docs/how-it-works.md"))
    places = (ROOT, ROOT / "daemon/punchlistd", ROOT / "client/punchlist", ROOT / "client/punchlist_apps")
    assert len(named) > 15
    assert [name for name in named if not any((place / name).exists() for place in places)] == []

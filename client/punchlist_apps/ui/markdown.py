"""Renders Markdown of tasks, which is text of others, for the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.theme import Theme

from punchlist.base.text import safe_block
from punchlist_apps.ui.dialogs import render_parts
from punchlist_apps.ui.parts import Part

MARKDOWN = "markdown"
"""Style of a part that contains Markdown."""
_MAX_CHARS = 20_000
"""Longest text that is rendered. A longer one is shown as it is."""
_SCHEMES = ("http://", "https://")


class _Heading(Heading):
    """A heading without the frame that rich draws."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    """Markdown in the colors of the screen, without links other than to web pages, images and HTML.

    Args:
        source: Text that is escaped for the terminal.
    """

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Heading}

    def __init__(self, source: str, styles: Mapping[str, str]) -> None:
        super().__init__("")
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.parsed = [_make_harmless(token) for token in parser.parse(source)]
        code, link = styles.get("high", ""), styles.get("label", "")
        names = ("h1", "h2", "h3", "h4", "h5", "h6")
        self._theme = Theme(
            {
                **{f"markdown.{name}": "bold" for name in names},
                **dict.fromkeys(("markdown.code", "markdown.code_block"), code),
                **dict.fromkeys(("markdown.link", "markdown.link_url"), link),
                **dict.fromkeys(("markdown.item.bullet", "markdown.item.number", "markdown.hr"), styles.get("dim", "")),
                "markdown.block_quote": styles.get("dim", ""),
            }
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(self._theme):
            yield from super().__rich_console__(console, options)


def _make_harmless(token: Token) -> Token:
    """Escape a token's text again, since entities can stand for any character, and replace images and bad links."""
    token.content = safe_block(token.content)
    # Without the language, the code isn't highlighted, whose colors would not be those of the screen.
    token.info = ""
    token.children = list(_filter_inline(token.children)) if token.children else token.children
    return token


def _filter_inline(tokens: Iterable[Token]) -> Iterator[Token]:
    are_kept: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrs.get("href", ""))
            are_kept.append(target.startswith(_SCHEMES) and safe_block(target) == target)
            if not are_kept[-1]:
                continue
        elif token.type == "link_close" and not are_kept.pop():
            continue
        elif token.type == "image":
            token = Token("text", "", 0, content=token.content)  # noqa: PLW2901 - a token for another
        yield _make_harmless(token)


def render_blocks(parts: Iterable[Part], styles: Mapping[str, str]) -> RenderableType:
    """Return parts as one renderable. Those with the style `MARKDOWN` are rendered as Markdown."""
    blocks: list[RenderableType] = []
    plain: list[Part] = []

    def close() -> None:
        if not plain:
            return
        # Each block ends its last line.
        text = render_parts(plain, styles)
        if text.plain.endswith("\n"):
            text.right_crop(1)
        text.no_wrap, text.overflow = False, "fold"
        blocks.append(text)
        plain.clear()

    for style, words in parts:
        if style != MARKDOWN or len(words) > _MAX_CHARS:
            plain.append((style if style != MARKDOWN else "", words))
            continue
        close()
        blocks.append(_Markdown(words, styles))
    close()
    return Group(*blocks) if len(blocks) != 1 else blocks[0]

import io
import random
import time
from typing import Any

import pytest
from rich.console import Console

from punchlist.base.text import is_safe, safe_block
from punchlist_apps.ui.markdown import MARKDOWN, render_blocks


def render(source: str) -> tuple[str, list[Any]]:
    """Return what is shown, and the targets of its links."""
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system="truecolor")
    segments = list(console.render(render_blocks([(MARKDOWN, safe_block(source))], {})))
    return "".join(part.text for part in segments), [
        part.style.link for part in segments if part.style and part.style.link
    ]


def test_markdown_is_rendered() -> None:
    shown, links = render(
        "# Head\n\n- **must** work\n- `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[docs](https://example.org/x)"
    )
    assert all(sign not in shown for sign in ("**", "`", "# Head", "|--"))
    assert "• must work" in " ".join(shown.split())
    assert links == ["https://example.org/x"]


@pytest.mark.parametrize(
    "link",
    [
        "[a](javascript:alert(1))", "[a](file:///etc/passwd)", "[a](//evil.example)", "[a](data:text/html,x)",
        "[a](ftp://x)", "<mailto:x@example.org>", "![a](https://example.org/spy.png)",
    ],
)  # fmt: skip
def test_only_web_pages_are_linked(link: str) -> None:
    shown, links = render(link)
    assert links == []
    assert shown.strip()


def test_html_is_shown_as_text() -> None:
    assert "<b>hidden</b>" in render("<b>hidden</b>")[0]


@pytest.mark.parametrize(
    "source",
    ["&#27;[31m", "\x1b]8;;https://evil.example\x1b\\x", "&#x202e;", "```\x1b[2J\n&#7;\n```", "[a](https://x/&#27;)"],
)
def test_hostile_text_controls_nothing(source: str) -> None:
    shown, links = render(source)
    assert all(is_safe(char) for char in shown if char != "\n")
    assert all(is_safe(char) for link in links for char in link)


def test_random_markdown_is_always_rendered() -> None:
    seed = random.randrange(10**6)
    source = random.Random(seed)
    signs = ["#", "*", "`", "[", "](", ")", "|", "\n", "> ", "- ", "1. ", "~~", "&#27;", "中", "a", " ", "<b>", "\x1b"]
    for _ in range(300):
        shown, _ = render("".join(source.choice(signs) for _ in range(60)))
        assert all(is_safe(char) for char in shown if char != "\n"), f"seed {seed}"


@pytest.mark.parametrize(
    "source", ["[" * 20_000, "**a " * 5_000, "> " * 10_000, "- " * 10_000, "`" * 20_000, "|" * 20_000]
)
def test_hostile_repetition_costs_little(source: str) -> None:
    prose = "Some words of prose. " * 1_000
    times: list[float] = []
    for text in (prose, source):
        begin = time.process_time()
        render(text[:20_000])
        times.append(time.process_time() - begin)
    assert times[1] < 20 * times[0] + 1


def test_very_long_text_stays_as_it_is() -> None:
    assert "**a**" in render("**a** " * 4_000)[0]

"""Markdown of tasks, read by the page's own module."""

import html
import os
from random import Random
from typing import Any

import pytest

from punchlist_testing.page_modules import run_in_node

TAGS = set(
    "p h4 h5 h6 ul ol li blockquote pre code hr table tr th td".split()
    + "strong em del a span small input path task commit".split()
)
"""All elements that a text can become."""

ATTRIBUTES = {"href", "rel", "target", "type", "checked", "disabled", "start", "data-lang"}
VOID = {"hr", "input"}
LENGTH = 65_536
PROSE = "The quick brown fox jumps over the lazy dog, and then *rests* a while in src/app.py:12.\n"


def write_html(node: Any) -> str:
    if isinstance(node, str):
        return html.escape(node, quote=False)
    given: dict[str, Any] = node["attributes"] or {}
    attributes = "".join(f' {key}="{given[key]}"' for key in ("href", "start", "checked") if key in given)
    content = "".join(map(write_html, node["children"]))
    return f"<{node['tag']}{attributes}>" + ("" if node["tag"] in VOID else f"{content}</{node['tag']}>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
        ("# One\n### Two ##", "<h4>One</h4><h6>Two</h6>"),
        (
            "**bold** and *not* __strong__ _em_",
            "<p><strong>bold</strong> and <em>not</em> <strong>strong</strong> <em>em</em></p>",
        ),
        ("***both** one*", "<p><em><strong>both</strong> one</em></p>"),
        ("snake_case_name 2*3*4", "<p>snake_case_name 2<em>3</em>4</p>"),
        ("a ** b ** c", "<p>a ** b ** c</p>"),
        ("~~gone~~ ~not~", "<p><del>gone</del> ~not~</p>"),
        ("`a *b*` ``c ` d``", "<p><code>a *b*</code> <code>c ` d</code></p>"),
        (r"\*plain\* \[x]", "<p>*plain* [x]</p>"),
        ("- a\n- b\n  - c\n\n  d", "<ul><li>a</li><li>b<ul><li>c</li></ul><p>d</p></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- [x] a\n- [ ] b", '<ul><li><input checked="True">a</li><li><input checked="False">b</li></ul>'),
        ("> a\n> > b\nc", "<blockquote><p>a</p><blockquote><p>b\nc</p></blockquote></blockquote>"),
        ("```py\nif *a*:\n\n    b\n```\nc", "<pre><code>if *a*:\n\n    b</code></pre><p>c</p>"),
        ("a\n\n---\n* * *", "<p>a</p><hr><hr>"),
        (
            "| a | b |\n|---|:-:|\n| *1* | 2 |",
            "<table><tr><th>a</th><th>b</th></tr><tr><td><em>1</em></td><td>2</td></tr></table>",
        ),
        (
            "[docs](https://a.example/x)",
            '<p><span><a href="https://a.example/x">docs</a><small> (a.example)</small></span></p>',
        ),
        ("see https://a.example/x?y=1.", '<p>see <a href="https://a.example/x?y=1">https://a.example/x?y=1</a>.</p>'),
        (
            "src/a/b.py:12, #17 and 3c23227",
            "<p><path>src/a/b.py:12</path>, <task>#17</task> and <commit>3c23227</commit></p>",
        ),
        ("1234567 deadbeef a#17 &#17;", "<p>1234567 deadbeef a#17 &amp;#17;</p>"),
        (
            "[x](javascript:alert(1)) [y](data:text/html,z) [z](//evil.example)",
            "<p>[x](javascript:alert(1)) [y](data:text/html,z) [z](//evil.example)</p>",
        ),
        (
            "![x](https://evil.example/p.png)",
            '<p>!<span><a href="https://evil.example/p.png">x</a><small> (evil.example)</small></span></p>',
        ),
        ("<b onclick=x>&lt;", "<p>&lt;b onclick=x&gt;&amp;lt;</p>"),
        ("a\u202eb", "<p>a\\u202eb</p>"),
    ],
)
def test_markdown_becomes_elements(text: str, expected: str) -> None:
    [[nodes]] = run_in_node({"markdown": [text]})
    assert "".join(map(write_html, nodes)) == expected


def check(node: Any, depth: int = 0) -> None:
    assert depth < 100
    if isinstance(node, str):
        return
    assert node["tag"] in TAGS
    attributes: dict[str, Any] = node["attributes"] or {}
    assert set(attributes) <= ATTRIBUTES
    href = str(attributes.get("href", "https://"))
    assert href.lower().startswith(("https://", "http://", "mailto:"))
    for child in node["children"]:
        check(child, depth + 1)


def test_random_text_becomes_only_known_elements() -> None:
    random = Random(seed := int.from_bytes(os.urandom(4)))
    print("seed", seed)
    pieces = [*"*_~`[]()<>#|\\-+.!:/ \n\t1aZ", "**", "```", "\n- ", "\n> ", "\n1. ", "](", "javascript:", "data:", "//",
              "https://a.b", "#7", "&lt;", "\u202e", "\x00", "| - |", "\n|-|\n", "[ ] "]  # fmt: skip
    texts = ["".join(random.choices(pieces, k=random.randrange(1, 60))) for _ in range(3_000)]
    [answers] = run_in_node({"markdown": texts})
    for text, nodes in zip(texts, answers, strict=True):
        print(repr(text))
        for node in nodes:
            check(node)


def test_hostile_text_costs_little_more_than_prose() -> None:
    patterns = [
        *("[", "**a ", "*a _b ", "`", "``a `", "_a", "~~a", "[a](", "[[a](b", "> ", "- ", "a|b\n-|-\n", "#", "\\", "*"),
        *("***a ", "[a](http://x ", "a/", "0a", "- a\n  ", "* * ", "(](", "`a``b", "\u0301", "[a](http://x.y/z) "),
    ]
    texts = [(each * (LENGTH // len(each) + 1))[:LENGTH] for each in (PROSE, *patterns)]
    [[prose, *times]] = run_in_node({"time": texts})
    assert {each: spent / prose for each, spent in zip(patterns, times, strict=True) if spent > 20 * prose} == {}

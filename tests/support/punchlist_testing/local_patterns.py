"""Patterns that calls of `re` receive as local variables, where `patterns` can't find them."""

from punchlist.tools import refusals
from punchlist_apps.chat import claims, small_talk
from punchlist_apps.chat.rules import reading, words
from punchlist_apps.chat.rules.phrases import PHRASES
from punchlist_apps.files.importers import org
from punchlist_schemas.spaces import SPACE_PATTERN
from punchlist_testing.patterns import CallPatterns
from punchlistd.net import param_errors

LOCAL_PATTERNS = {
    ("punchlist_apps.chat.claims", "claim"): CallPatterns(vars(claims)["_CLAIMS"]),
    ("punchlist_apps.chat.rules.reading", "source"): CallPatterns([phrase.pattern for phrase in PHRASES], "fullmatch"),
    ("punchlist_apps.chat.rules.replies", "pattern"): CallPatterns(
        (words.NEITHER, words.NO, words.GREETING, *(words.agreement(name) for name in ("", "delete", "update"))),
        "fullmatch",
    ),
    ("punchlist_apps.chat.rules.replies", "words.all_of(len(question.ids))"): CallPatterns(
        (words.all_of(2),), "fullmatch"
    ),
    ("punchlist_apps.chat.rules.references", "words"): CallPatterns((words.RUNNING, words.DONE, words.OPEN)),
    ("punchlist_apps.chat.small_talk", "pattern"): CallPatterns([pattern for pattern, _ in vars(small_talk)["_TALK"]]),
    ("punchlist_apps.cli.commands.space", "SPACE_PATTERN"): CallPatterns((SPACE_PATTERN,), "match"),
    ("punchlist_apps.cli.installing.systemd_units", "f'^{setting}=.*$'"): CallPatterns(("^ExecStart=.*$",)),
    (
        "punchlist_apps.hosts.tomltable",
        "f'\\\\s*\\\\[\\\\s*{name}\\\\s*(?:\\\\.[^\\\\]]*)?\\\\]\\\\s*(?:#.*)?$'",
    ): CallPatterns((r"\s*\[\s*mcp\s*\.\s*punchlist\s*(?:\.[^\]]*)?\]\s*(?:#.*)?$",), "match"),
    ("punchlist_apps.files.mirror.plan_text", "f'(?<!\\\\S){re.escape(words)}'"): CallPatterns((r"(?<!\S)words",)),
    (
        "punchlist_apps.files.importers.org",
        "f'^(?:\\\\*+ (?:{keywords})\\\\s|#\\\\+(?:TITLE|TODO|STARTUP|FILETAGS):)'",
    ): CallPatterns((rf"^(?:\*+ (?:{'|'.join(vars(org)['_STATUSES'])})\s|#\+(?:TITLE|TODO|STARTUP|FILETAGS):)",)),
    ("punchlist.tools.refusals", "pattern"): CallPatterns([pattern for pattern, _ in vars(refusals)["_PLAIN"]]),
    ("punchlistd.net.param_errors", "pattern"): CallPatterns([pattern for pattern, _ in vars(param_errors)["_PLAIN"]]),
}
"""(module, expression) -> patterns."""

BOUNDED = {"client/punchlist_apps/chat/rules/": reading.MAX_CHARS}
"""Directory -> maximum length of the texts that its patterns match."""

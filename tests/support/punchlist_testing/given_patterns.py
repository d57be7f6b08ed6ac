"""Patterns that `patterns` can't read off a call of `re`, because it gets them as a local variable."""

from punchlist.tools import refusals
from punchlist_apps.chat import claims, small_talk
from punchlist_apps.chat.rules import reading, words
from punchlist_apps.chat.rules.phrases import PHRASES
from punchlist_apps.files.importers import org
from punchlist_schemas.spaces import SPACE_PATTERN
from punchlist_testing.patterns import Given
from punchlistd.net import param_errors

GIVEN = {
    ("punchlist_apps.chat.claims", "claim"): Given(vars(claims)["_CLAIMS"]),
    ("punchlist_apps.chat.rules.reading", "source"): Given([phrase.pattern for phrase in PHRASES], "fullmatch"),
    ("punchlist_apps.chat.rules.replies", "pattern"): Given(
        (words.NEITHER, words.NO, words.GREETING, *(words.agreement(name) for name in ("", "delete", "update"))),
        "fullmatch",
    ),
    ("punchlist_apps.chat.rules.replies", "words.all_of(len(question.ids))"): Given((words.all_of(2),), "fullmatch"),
    ("punchlist_apps.chat.rules.references", "words"): Given((words.RUNNING, words.DONE, words.OPEN)),
    ("punchlist_apps.chat.small_talk", "pattern"): Given([pattern for pattern, _ in vars(small_talk)["_TALK"]]),
    ("punchlist_apps.cli.commands.space", "SPACE_PATTERN"): Given((SPACE_PATTERN,), "match"),
    ("punchlist_apps.cli.installing.systemd_units", "f'^{setting}=.*$'"): Given(("^ExecStart=.*$",)),
    (
        "punchlist_apps.hosts.tomltable",
        "f'\\\\s*\\\\[\\\\s*{name}\\\\s*(?:\\\\.[^\\\\]]*)?\\\\]\\\\s*(?:#.*)?$'",
    ): Given((r"\s*\[\s*mcp\s*\.\s*punchlist\s*(?:\.[^\]]*)?\]\s*(?:#.*)?$",), "match"),
    (
        "punchlist_apps.files.importers.org",
        "f'^(?:\\\\*+ (?:{keywords})\\\\s|#\\\\+(?:TITLE|TODO|STARTUP|FILETAGS):)'",
    ): Given((rf"^(?:\*+ (?:{'|'.join(vars(org)['_STATUSES'])})\s|#\+(?:TITLE|TODO|STARTUP|FILETAGS):)",)),
    ("punchlist.tools.refusals", "pattern"): Given([pattern for pattern, _ in vars(refusals)["_PLAIN"]]),
    ("punchlistd.net.param_errors", "pattern"): Given([pattern for pattern, _ in vars(param_errors)["_PLAIN"]]),
}
"""`(module, expression) → patterns`."""

BOUNDED = {"client/punchlist_apps/chat/rules/": reading.MAX_CHARS}
"""The patterns below a place see texts of at most so many characters."""

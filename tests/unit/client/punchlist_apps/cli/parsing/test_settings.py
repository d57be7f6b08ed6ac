from typing import Any, get_args, get_type_hints

import pytest

from punchlist_apps.cli.parsing.settings import (
    SETTINGS,
    TITLE,
    WrongSetting,
    describe_setting,
    list_settings,
    parse_changes,
)
from punchlist_schemas.things import Settings


def test_the_table_matches_the_schema() -> None:
    hints = get_type_hints(Settings)
    assert {setting.name for setting in SETTINGS} == {TITLE, *hints}
    for setting in SETTINGS:
        assert tuple(setting.values) == (get_args(hints[setting.name]) if setting.values else ())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {}),
        (("execution=serial", "max_attempts=2"), {"settings": {"execution": "serial", "max_attempts": 2}}),
        (("title=a = b",), {"title": "a = b"}),
        (("title=", "auto_clear=idle"), {"title": "", "settings": {"auto_clear": "idle"}}),
    ],
)
def test_words_become_call_parameters(words: tuple[str, ...], expected: dict[str, Any]) -> None:
    assert parse_changes(words) == expected


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("excution=serial", "unknown setting 'excution'; did you mean execution?"),
        (
            "colour=red",
            "unknown setting 'colour'; "
            "choose from title, execution, on_failure, max_attempts, auto_clear, complete_parents, rate_limit, "
            "leave_grace",
        ),
        ("execution=seral", "execution is one of manual, serial, not 'seral'; did you mean serial?"),
        ("auto_clear=", "auto_clear is one of never, when_done, idle, not ''"),
        ("max_attempts=1001", "max_attempts is a number from 0 to 1000, not '1001'"),
        ("max_attempts=-1", "max_attempts is a number from 0 to 1000, not '-1'"),
        ("max_attempts=²", "max_attempts is a number from 0 to 1000, not '²'"),
        (
            "serial",
            "'serial' is not NAME=VALUE; "
            "choose from title, execution, on_failure, max_attempts, auto_clear, complete_parents, rate_limit, "
            "leave_grace",
        ),
        (f"title={'x' * 501}", "title is at most 500 characters"),
    ],
)
def test_unknown_settings_and_values_are_rejected_with_choices(word: str, message: str) -> None:
    with pytest.raises(WrongSetting) as caught:
        parse_changes([word])
    assert str(caught.value) == message


def test_a_repeated_setting_is_rejected() -> None:
    with pytest.raises(WrongSetting, match="given twice"):
        parse_changes(["max_attempts=1", "max_attempts=2"])


def test_every_meaning_fits_on_one_line() -> None:
    for name, value in list_settings("Release", Settings("serial", "stop", 2, "idle")).items():
        assert describe_setting(name, value)
        assert "\n" not in describe_setting(name, value)

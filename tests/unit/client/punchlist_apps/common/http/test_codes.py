"""A code signs in one browser within a minute, and wrong tries end it."""

from pathlib import Path

import pytest

from punchlist_apps.common.http import codes as module
from punchlist_apps.common.http import keys as keys_module
from punchlist_apps.common.http.codes import Codes, TooManyTries
from punchlist_apps.common.http.keys import Keys, Scope
from punchlist_apps.common.http.secret_file import SecretFile


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(SecretFile(str(tmp_path / "web.token")), tmp_path / "web.used")


@pytest.fixture
def codes(keys: Keys) -> Codes:
    return Codes(keys)


def make_wrong(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06}"


def test_code_works_once_with_its_scope(codes: Codes, keys: Keys, tmp_path: Path) -> None:
    scope = Scope("ro", "plan")
    code = codes.issue(scope)
    assert len(code) == 6 and code.isdecimal()
    assert (tmp_path / "web.code").stat().st_mode & 0o777 == 0o600
    session = Codes(keys).redeem(code)
    assert session is not None and session.scope == scope
    assert codes.redeem(code) is None


def test_newer_code_replaces_the_older(codes: Codes) -> None:
    first, second = codes.issue(Scope()), codes.issue(Scope())
    assert first == second or codes.redeem(first) is None
    assert codes.redeem(second) is not None


def test_code_expires_after_a_minute(codes: Codes, monkeypatch: pytest.MonkeyPatch) -> None:
    code, now = codes.issue(Scope()), keys_module.time.time()
    monkeypatch.setattr(keys_module.time, "time", lambda: now + keys_module.TICKET_S + 1)
    assert codes.redeem(code) is None


def test_three_wrong_tries_end_code_and_delay_the_next(codes: Codes, monkeypatch: pytest.MonkeyPatch) -> None:
    code = codes.issue(Scope())
    for _ in range(module.MAX_TRIES):
        assert codes.redeem(make_wrong(code)) is None
    assert codes.redeem(code) is None
    with pytest.raises(TooManyTries, match="seconds, or use --link"):
        codes.issue(Scope())
    up = module.get_uptime_s()
    monkeypatch.setattr(module, "get_uptime_s", lambda: up + module.WAIT_S)
    assert codes.redeem(codes.issue(Scope())) is not None


def test_two_wrong_tries_leave_the_code_valid(codes: Codes) -> None:
    code = codes.issue(Scope())
    for _ in range(module.MAX_TRIES - 1):
        assert codes.redeem(make_wrong(code)) is None
    assert codes.redeem(code) is not None


def test_guesses_without_a_code_change_nothing(codes: Codes, tmp_path: Path) -> None:
    for guess in ("", "000000", "\ud800", "x" * 4000, "१२३४५६"):
        assert codes.redeem(guess) is None
    assert codes.redeem(codes.issue(Scope())) is not None
    (tmp_path / "web.code").write_text("{")
    assert codes.redeem("000000") is None


def test_new_secret_ends_the_code(codes: Codes, keys: Keys, tmp_path: Path) -> None:
    code = codes.issue(Scope())
    SecretFile(str(tmp_path / "web.token")).rotate()
    assert codes.redeem(code) is None

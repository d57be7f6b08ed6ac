import pytest

from punchlist_schemas.errors import ERRORS, Rejection, error_object

CONTRACT = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "internal_error": -32603,
    "not_found": -32001,
    "version_conflict": -32002,
    "illegal_transition": -32003,
    "blocked": -32004,
    "dependency_cycle": -32005,
    "lease_held": -32006,
    "key_conflict": -32007,
    "limit_exceeded": -32008,
    "storage_full": -32009,
    "outcome_unknown": -32010,
    "forbidden": -32011,
    "shutting_down": -32012,
    "confirmation_required": -32013,
}


def test_kinds_and_codes_match_the_contract() -> None:
    assert {kind: ERRORS[kind].code for kind in CONTRACT} == CONTRACT


def test_codes_are_unique() -> None:
    assert len({row.code for row in ERRORS.values()}) == len(ERRORS)


@pytest.mark.parametrize("kind", ERRORS)
def test_data_always_has_the_kind(kind: str) -> None:
    error = error_object(Rejection(kind, "No.", {"a": 1}))
    assert (error.code, error.message, error.data) == (ERRORS[kind].code, "No.", {"kind": kind, "a": 1})
    assert Rejection(kind, "").code == ERRORS[kind].code


def test_rejections_do_not_share_data() -> None:
    first = Rejection("not_found", "")
    first.data["what"] = "task"
    assert Rejection("not_found", "").data == {}

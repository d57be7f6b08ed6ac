import pickle

import pytest

from punchlist import errors
from punchlist.errors import RequestRefused, build_error
from punchlist_schemas.errors import ERRORS, Rejection, error_object


def test_each_error_kind_has_one_class() -> None:
    assert set(RequestRefused.kinds) == set(ERRORS)
    assert len(set(RequestRefused.kinds.values())) == len(ERRORS)


@pytest.mark.parametrize("kind", ERRORS)
def test_exception_has_facts_from_table(kind: str) -> None:
    row = ERRORS[kind]
    assert tuple(name.rstrip("_") for name in RequestRefused.kinds[kind].facts()) == row.data
    wire = error_object(Rejection(kind, "because", {name: f"a {name}" for name in row.data}))
    error = build_error(wire.code, wire.message, wire.data)
    assert type(error) is RequestRefused.kinds[kind]
    assert (error.kind, error.code, str(error)) == (kind, row.code, "because")
    for name in error.facts():
        assert getattr(error, name) == f"a {name.rstrip('_')}"
    assert type(error).__doc__


@pytest.mark.parametrize("kind", ERRORS)
def test_request_error_survives_pickling(kind: str) -> None:
    error = RequestRefused.kinds[kind](kind, ERRORS[kind].code, "because", {"kind": kind})
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), twin.kind, twin.message, twin.data) == (type(error), kind, "because", {"kind": kind})


def test_omitted_fact_is_none() -> None:
    error = build_error(-32602, "no", {"kind": "invalid_params", "field": "title"})
    assert isinstance(error, errors.InvalidParams)
    assert (error.field, error.nearest) == ("title", None)


def test_unknown_error_kind_is_plain_request_error() -> None:
    error = build_error(-32099, "no", {"kind": "too_modern", "hint": 1})
    assert type(error) is RequestRefused
    assert (error.kind, error.code, error.data["hint"]) == ("too_modern", -32099, 1)


def test_every_exception_is_in_the_drawing() -> None:
    drawing = (errors.__doc__ or "").split("There is one")[0]
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, errors.PunchlistError):
            assert name in drawing, name


def test_running_out_of_time_is_also_pythons_timeout() -> None:
    assert issubclass(errors.TimedOut, TimeoutError)

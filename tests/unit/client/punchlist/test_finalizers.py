"""Finalizers, which also run for objects whose constructor was interrupted before it did anything."""

import importlib
import pkgutil
from typing import Any

import pytest

import punchlist


@pytest.fixture
def classes() -> set[type]:
    """The library's classes that define a finalizer."""
    names = [module.name for module in pkgutil.walk_packages(punchlist.__path__, "punchlist.")]
    found = [each for name in names for each in vars(importlib.import_module(name)).values()]
    return {each for each in found if isinstance(each, type) and "__del__" in vars(each)}


def test_interrupted_constructor_causes_no_finalizer_error(classes: set[type]) -> None:
    assert {"AsyncClient", "AsyncWork", "Starting", "Watch"} <= {kind.__name__ for kind in classes}
    for kind in classes:
        finalize: Any = vars(kind)["__del__"]
        finalize(object.__new__(kind))

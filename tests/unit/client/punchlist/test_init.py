import importlib
import subprocess
import sys

import pytest

import punchlist
import punchlistd


def test_importing_package_loads_no_heavy_modules() -> None:
    program = "import sys; before = set(sys.modules); import punchlist; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    loaded = run.stdout.split()
    assert [name for name in loaded if name.startswith("punchlist")] == ["punchlist", "punchlist.base"]
    assert {"asyncio", "anyio", "msgspec"}.isdisjoint(loaded)


@pytest.mark.parametrize("name", punchlist.__all__)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(punchlist, name)
    assert name in dir(punchlist)
    if name != "__version__":
        assert value.__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(punchlist, "no_such_name")  # noqa: B009 - the type checker would reject the attribute


def test_type_checker_names_match_run_time() -> None:
    source = importlib.import_module("inspect").getsource(punchlist)
    typed = source.split("if TYPE_CHECKING:")[1].split("__version__")[0]
    for name in set(punchlist.__all__) - {"__version__"}:
        assert f" {name}" in typed.replace("(", " ").replace(",", " "), name


def test_library_and_daemon_have_one_version() -> None:
    assert punchlist.__version__ == punchlistd.__version__

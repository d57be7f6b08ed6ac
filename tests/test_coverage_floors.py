import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.coverage_floors import MODULE, PARTS, SERVERS, choose_parts, judged, main, part_of

ROOT = Path(__file__).resolve().parents[1]


def module(covered: int, of: int = 100) -> dict[str, Any]:
    """What the report says of a module: half of what can be covered are branches."""
    half, rest = covered // 2, covered - covered // 2
    summary = {"num_statements": of // 2, "covered_lines": half, "num_branches": of // 2, "covered_branches": rest}
    return {"summary": summary}


def test_what_reaches_its_floors_passes() -> None:
    assert judged({"daemon/a.py": module(95), "client/b.py": module(90)}, ["daemon", "client"])[1] == []


def test_a_part_below_its_floor_is_named() -> None:
    short = judged({"daemon/a.py": module(100), "daemon/b.py": module(88), "client/b.py": module(100)}, ["daemon"])[1]
    assert short == ["daemon as a whole is covered to 94.0 %: 95 % is the floor"]


def test_one_module_below_its_floor_is_named_though_its_part_is_well_covered() -> None:
    files = {f"client/{number}.py": module(100) for number in range(30)} | {"client/low.py": module(MODULE - 2)}
    assert judged(files, ["client"])[1] == [
        f"client/low.py is covered to {MODULE - 2}.0 %: {MODULE} % is the floor of a module"
    ]


def test_a_part_that_was_not_measured_is_named() -> None:
    assert judged({"daemon/a.py": module(100)}, ["client"])[1] == ["client was not measured"]


def test_what_needs_the_sdk_is_a_part_of_its_own() -> None:
    assert (
        part_of("client/punchlist_apps/mcp/server.py") == part_of("client/punchlist_apps/cli/commands/mcp.py") == "mcp"
    )
    assert part_of("client/punchlist_apps/cli/commands/mirror.py") == "client"


@pytest.mark.parametrize(("covered", "code"), [(100, 0), (50, 1)])
def test_the_exit_code_says_whether_all_is_well(
    covered: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {"schemas/a.py": module(covered)}}))
    assert main([str(report), "schemas"]) == code
    assert capsys.readouterr().out.startswith(f"schemas: {covered}.0 % of 1 modules, the floor is 95 %\n")


def test_all_sources_are_measured() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]["run"]
    starts = {start.split("/")[0] for part in PARTS.values() for start in part.paths}
    assert set(settings["source"]) == starts == {"client", "daemon", "schemas"}
    assert "omit" not in settings


def test_a_part_without_its_server_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVERS, "nats", ("nats-server", lambda: None))
    parts, lacking = choose_parts()
    assert "nats" not in parts and {"daemon", "schemas", "client"} <= set(parts)
    assert "nats: not judged, it needs a NATS server: make coverage" in lacking

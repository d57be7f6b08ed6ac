"""The comparison with other task lists, run with punchlist alone and with three tasks."""

import importlib.util
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from punchlist_bench import process
from punchlist_compare import __main__, picture, report, servers
from punchlist_compare import place as place_module
from punchlist_compare.comparison import Comparison
from punchlist_compare.peers import PEERS, Peer
from punchlist_compare.place import Place, UnmeasuredError
from punchlist_compare.results import Results, list_rows, load, save
from punchlist_testing.optional import needs

ROOT = Path(__file__).resolve().parents[3]
OURS = PEERS[0].name
SERVED = ("mcp", "call", "tokens")


def fail_to_install(peer: Peer) -> Path:
    if peer.name == OURS:
        return Path(sys.prefix)
    raise UnmeasuredError("not installed: no network")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "SESSIONS", 2)
        comparison = Comparison(PEERS[:2], [3], 1, tmp_path_factory.mktemp("compare"))
        comparison.install(fail_to_install)
        return __main__.compare(comparison)


def test_each_cell_has_figure_or_reason(results: Results) -> None:
    has_sdk = importlib.util.find_spec("mcp") is not None
    for row in list_rows(results.sizes):
        cell = results.get(row.key, OURS)
        if has_sdk or not row.key.startswith(SERVED):
            assert cell.samples or row.key == "flushes", (row.key, cell.why)
        assert cell.samples or cell.why, row.key
        assert results.get(row.key, PEERS[1].name).why == "not installed: no network"


def test_figures_are_plausible(results: Results) -> None:
    wall = results.get("list.3.wall", OURS).value
    processor = results.get("list.3.cpu", OURS).value
    assert wall is not None
    assert processor is not None
    assert wall > 1
    assert processor > 1


@needs("strace")
def test_add_is_flushed(results: Results) -> None:
    cell = results.get("flushes", OURS)
    assert cell.value is not None, cell.why
    assert cell.value >= 1


def test_table_and_picture_show_results(results: Results, tmp_path: Path) -> None:
    save(results, tmp_path / "results.json")
    again = load(tmp_path / "results.json")
    assert "load average of" in report.describe_run(again)
    drawn = report.draw_table(again)
    for row in list_rows(again.sizes):
        assert f"| {row.label}" in drawn
    assert "1. not installed: no network" in drawn
    names = [element.text for element in ElementTree.fromstring(picture.draw(again, OURS)).iter() if element.text]
    assert OURS in names


def test_place_ends_its_processes(tmp_path: Path) -> None:
    place = Place(Path(sys.prefix) / "bin/punch", [], {}, 1, tmp_path / "work")
    try:
        PEERS[0].fill(place)
        (daemon,) = place.find_processes()
        assert place.count_memory_bytes() > 1 << 20
    finally:
        place.close()
    assert not process.is_running(daemon)


def test_failed_command_is_explained(tmp_path: Path) -> None:
    place = Place(Path(sys.prefix) / "bin/punch", [], {}, 1, tmp_path / "work")
    try:
        with pytest.raises(UnmeasuredError, match="punch failed: .*999"):
            place.time(place.fill_words("done 999"))
    finally:
        place.close()


@pytest.mark.parametrize("page", __main__.PAGES)
def test_page_has_place_for_table(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert text.count("<!-- figures: compare -->") == 1
    assert text.count("compare.svg") == 1
    assert os.path.exists(__main__.PICTURE)


def test_slow_commands_get_fewer_samples(tmp_path: Path) -> None:
    comparison = Comparison(PEERS[:1], [3], 10, tmp_path)
    assert comparison.pick_rounds(PEERS[0], 0.5, "add.3.") == 10
    assert comparison.pick_rounds(PEERS[0], 9.0, "list.3.") == 3
    assert comparison.results.get("add.3.wall", OURS).why == ""
    assert comparison.results.get("list.3.wall", OURS).why == "median of 3"


def test_too_slow_command_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_module, "TIMEOUT_S", 0.2)
    place = Place(Path("/bin/sleep"), [], {}, 1, tmp_path / "work")
    try:
        with pytest.raises(UnmeasuredError, match="takes longer"):
            place.time(place.fill_words("1000"))
        assert place.find_processes() == []
    finally:
        place.close()


def test_background_processor_time_counts(tmp_path: Path) -> None:
    place = Place(Path("/bin/sh"), [], {}, 1, tmp_path / "work")
    work = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo > ready; exec sleep 1000) > /dev/null 2>&1 &"
    try:
        run = place.time(["/bin/sh", "-c", f"mkfifo ready; {work} read line < ready"])
        assert run.processor_s > 0.9 * place.count_processor_s() > 0
    finally:
        place.close()

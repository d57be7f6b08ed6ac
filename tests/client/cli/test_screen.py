from punchlist.cli.screen import crop, frame
from punchlist.cli.style import Style


def test_a_frame_replaces_the_one_before() -> None:
    assert frame(["a", "b"], 0) == "\ra\x1b[K\nb\x1b[K\n\x1b[J"
    assert frame(["c"], 2) == "\x1b[2A\rc\x1b[K\n\x1b[J"


def test_what_does_not_fit_is_counted() -> None:
    assert crop(["a", "b"], 2, Style()) == ["a", "b"]
    assert crop(["a", "b", "c"], 2, Style()) == ["a", "  … 2 more lines"]

from punchlist.base.tree import as_tree, titles_above, with_path


def test_children_stand_under_their_parent() -> None:
    chain = [{"id": str(number), "parent": str(number - 1) if number > 1 else None} for number in range(1, 3001)]
    assert [depth for depth, _ in as_tree(chain)] == list(range(3000))


def test_every_task_is_shown_once_despite_wrong_parents() -> None:
    parents = {"1": "2", "2": "1", "3": "3", "4": "99"}
    tasks = [{"id": id, "parent": parent} for id, parent in parents.items()]
    assert sorted(one["id"] for _, one in as_tree(tasks)) == ["1", "2", "3", "4"]


def test_long_path_is_cut_in_middle() -> None:
    assert with_path("tests", []) == "tests"
    assert with_path("tests", ["Plan", "Backend"]) == "Plan › Backend › tests"
    assert with_path("tests", ["Plan", "a", "b", "Backend"]) == "Plan › … › Backend › tests"
    assert with_path("t", ["two\nlines", "x" * 99]) == f"two lines › {'x' * 39}… › t"


def test_titles_above_end_at_a_circle() -> None:
    by_id = {"1": {"id": "1", "title": "a", "parent": "2"}, "2": {"id": "2", "title": "b", "parent": "1"}}
    assert titles_above({"id": "3", "parent": "2"}, by_id) == ["a", "b"]
    assert titles_above({"id": "3", "parent": "9"}, by_id) == []

from punchlistd.engine.listings import Listings


class List:
    forgotten = 0

    def forget_listing(self) -> None:
        self.forgotten += 1


def test_the_oldest_go_when_there_is_too_much_together() -> None:
    kept, lists = Listings(10), [List() for _ in range(4)]
    for each in (*lists[:3], lists[0]):
        kept.keep(each, 3)
    assert [each.forgotten for each in lists] == [0, 0, 0, 0], "an encoding takes the place of the one before it"
    kept.keep(lists[3], 3)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]
    kept.drop(lists[2])
    kept.keep(lists[1], 4)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]


def test_a_single_large_one_is_kept() -> None:
    kept, small, large = Listings(10), List(), List()
    kept.keep(small, 1)
    kept.keep(large, 100)
    assert (small.forgotten, large.forgotten) == (1, 0)

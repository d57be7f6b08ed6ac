from punchlist.tools import budget


def test_items_that_do_not_fit_are_counted() -> None:
    assert budget.fit(["a", "bb", "ccc"], str, budget=5) == (["a", "bb"], 1)
    assert budget.fit(["a" * 9, "b"], str, budget=5) == ([], 2)


def test_shortened_text_says_what_is_missing() -> None:
    assert budget.shorten("abcdef", 3) == "abc… [3 characters left out]"
    assert budget.shorten("abc", 3) == "abc"
    assert budget.join_ids([str(number) for number in range(202)]).endswith("199 and 2 more")


def test_token_is_four_characters() -> None:
    assert [budget.count_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]

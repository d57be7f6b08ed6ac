import pytest

from punchlist_apps.chat.rules.reading import Intent, interpret
from punchlist_apps.chat.rules.references import Item
from punchlist_apps.chat.small_talk import EXAMPLES, HELP, find_nearest, reply

ITEMS = [Item("1", "Buy milk", "pending"), Item("2", "Buy bread", "pending")]


@pytest.mark.parametrize(
    ("intent", "items", "said"),
    [
        (Intent("help"), [], HELP),
        (
            Intent("clarify", need="which", ids=("1", "2")),
            ITEMS,
            "Which one do you mean?\n  #1 Buy milk\n  #2 Buy bread",
        ),
        (Intent("clarify", need="task"), [], "Your list has no tasks."),
        (Intent("clarify", need="task"), ITEMS, "Which task? I found no match. “show my tasks” lists them."),
        (Intent("clarify", need="title"), ITEMS, "What should it be called?"),
        (
            Intent("clarify", need="question"),
            ITEMS,
            "That was a question, so nothing was changed. To have it done, leave out the question mark.",
        ),
    ],
)
def test_clarifications_have_texts(intent: Intent, items: list[Item], said: str) -> None:
    assert reply(intent, "", items) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello there", "Hello! What can I do for you?"),
        ("THANKS!", "You're welcome."),
        ("don’t delete anything", "All right: nothing was changed."),
        ("blah", "I didn't understand that, so nothing was changed. Say “help” for what I understand."),
    ],
)
def test_talk_is_answered_and_changes_nothing(text: str, said: str) -> None:
    assert reply(Intent("talk"), text, ITEMS) == said


@pytest.mark.parametrize("sentence", [sentence for sentence, _ in EXAMPLES])
def test_examples_are_understood(sentence: str) -> None:
    items = [Item(str(id), f"Task {id}", "completed" if id == 5 else "pending") for id in range(1, 6)]
    assert interpret(sentence, [*items, Item("6", "Buy milk", "pending")]).name not in ("talk", "clarify")


@pytest.mark.parametrize("text", ["", "x" * 100_000, "\ud800 what", "whats failing"])
def test_three_sentences_are_nearest(text: str) -> None:
    assert len(set(find_nearest(text))) == 3

"""Detection of claims that a turn's events don't support."""

import pytest

from punchlist_apps.chat.claims import find_untrue
from punchlist_apps.chat.receipts import Receipt, ToolResult

CHANGE = ToolResult("create_todo_task", changes=(Receipt(7, 3, "u/c1.1", "TaskAdded", "3", "milk"),))
ROWS = [
    {"id": 1, "title": "a", "completed": False, "status": "pending"},
    {"id": 2, "title": "b", "completed": True, "status": "completed"},
    {"id": 3, "title": "c", "completed": False, "status": "in_progress"},
]
LIST = ToolResult("list_todo_tasks", data=ROWS)
EMPTY = ToolResult("list_todo_tasks", data=[])

FALSE = [
    "Created task: milk (#7)",
    "I've deleted task 1. Verified: your list is now empty.",
    "You have 7 tasks.",
    'I have added "milk" to your list.',
    "Done! Task 3 has been marked as completed.",
    "Sure, I’ve renamed it.",
    "Task 4 is now deleted.",
    "All your tasks were removed.",
    "Successfully created the task.",
    "Okay, deleted.",
    "Your task has been updated.",
    "All done.",
    "It's done.",
    "Your list is empty.",
    "Here are your tasks:\n- #1 milk",
    "There are twelve tasks on it.",
    "You currently have no tasks.",
    "Your list now contains milk.",
    "I just completed both of them for you.",
]
TRUE = [
    "Hello! I'm doing well, thank you.",
    "I'm your Todo AI Assistant.",
    "I can add tasks for you.",
    "Would you like me to delete task 1?",
    "I have not deleted anything.",
    "Nothing was changed.",
    "Shall I mark it as completed?",
    "Tell me when you have completed it.",
    "To add a task, say: add milk.",
    "I could not find that task.",
    "If you want, I'll add it.",
    "Have you finished the report?",
    "The weather is fine.",
    "A task is deleted only after you said yes.",
    "",
]


@pytest.mark.parametrize("text", FALSE)
def test_a_claim_without_a_call_is_found(text: str) -> None:
    assert find_untrue(text, [])


@pytest.mark.parametrize("text", TRUE)
def test_text_without_claims_passes(text: str) -> None:
    assert find_untrue(text, []) == []


def test_counts_must_match_list() -> None:
    assert find_untrue("You have 3 tasks, 1 of them completed.", [LIST]) == []
    assert find_untrue("You have two open tasks.", [LIST]) == []
    assert find_untrue("You have 4 tasks.", [LIST]) == ["You have 4 tasks."]
    assert find_untrue("Your list is empty.", [LIST]) and find_untrue("Your list is empty.", [EMPTY]) == []
    assert find_untrue("You have no tasks.", [EMPTY]) == [] and find_untrue("Task 2 is completed.", [LIST]) == []
    assert find_untrue("I have completed task 2.", [LIST])


def test_change_proves_claim() -> None:
    assert find_untrue("I've added milk.", [CHANGE]) == []
    assert find_untrue("You have 9 tasks.", [CHANGE]) == ["You have 9 tasks."]

"""Answers without tool calls: greetings, help, questions for missing details, and replies to unclear messages."""

import re
from difflib import SequenceMatcher

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.reading import MAX_CHARS, MAX_REQUESTS, Intent
from punchlist_apps.chat.rules.references import Item

EXAMPLES = (
    ("add buy milk", "adds a task"),
    ("add rent due friday", "adds a task with a due date"),
    ("show my tasks", "lists all tasks"),
    ("what is left?", "lists the open tasks"),
    ("what failed?", "lists the failed tasks, with their reasons"),
    ("what is blocked?", "lists the tasks that wait for others"),
    ("what is waiting for me?", "lists the tasks that wait for your yes"),
    ("who is working?", "lists the tasks in progress"),
    ("details for 3", "shows a task"),
    ("start 3", "starts a task"),
    ("done with 3", "completes a task"),
    ("I bought milk", "completes the task with these words"),
    ("reopen 5", "makes a finished task open again"),
    ("approve 2", "says yes to a task that waits for it"),
    ("assign 2 to ann", "reserves a task for a person or an agent"),
    ("make 4 urgent", "changes the priority of a task"),
    ("rename 4 to Call Ann", "renames a task, after a question"),
    ("delete 2", "deletes a task, after a question"),
    ("delete completed tasks", "deletes several tasks, after a question"),
    ("undo that", "undoes the last change of this chat"),
    ("redo", "makes an undone change again"),
)
"""Sentences that the rules understand, and what each does."""

_COLUMN = max(len(sentence) for sentence, _ in EXAMPLES)
HELP = "\n".join(
    ["You can say, for example:", *(f"  {sentence:<{_COLUMN}}  {meaning}" for sentence, meaning in EXAMPLES)]
)
_MAX_OFFERS = 3
_MAX_COMPARED = 200
"""Length of a message that is compared with the examples, in characters."""

_TALK = (
    (
        r"\bhow are you\b|\bhow was your\b|\bhow's it going\b",
        "Hello! I'm doing well, thank you. What can I do for you?",
    ),
    (r"^(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|greetings|there)\b", "Hello! What can I do for you?"),
    (
        r"\bwho are you\b|\byour name\b|\bwhat are you\b",
        "I'm your Todo AI Assistant. Say “help” for what I understand.",
    ),
    (r"\bthank|\bthanks\b|\bthx\b|\bcheers\b", "You're welcome."),
    (r"^(?:bye|goodbye|good night|see you|(?:quit|exit)$)\b", "Goodbye."),
    (r"^(?:don't|do not|never)\b", "All right: nothing was changed."),
    (rf"^(?:{words.agreement()}|{words.NO})\??$", "There is no open question. Say “help” for what I understand."),
    (r"^should\b", "That is for you to decide. Nothing was changed."),
)
NOT_UNDERSTOOD = "I didn't understand that, so nothing was changed. Say “help” for what I understand."

_NEED_TEXTS = {
    "title": "What should it be called?",
    "task": "Which task? I found no match. “show my tasks” lists them.",
    "question": "That was a question, so nothing was changed. To have it done, leave out the question mark.",
    "instead": "Nothing was changed. Say what to do instead, for example: delete 3.",
    "long": "Nothing was changed: the message has {length:,} characters; the limit without a model is {maximum:,}. "
    "Send it in parts, or put the tasks into a file and run: punch import FILE",
    "many": f"Nothing was changed: a message can contain at most {MAX_REQUESTS} requests. Send it in parts.",
}
_WORD = re.compile(r"\w+")
_EMPTY = "Your list has no tasks."
_KINDS = {"pending": "open", "completed": "completed", "in_progress": "running"}


def reply(intent: Intent, text: str, items: list[Item]) -> str:
    """Answer a message that doesn't need a tool."""
    if intent.name == "help":
        return HELP
    if intent.need == "which":
        titles = {item.id: item.title for item in items}
        return "\n".join(["Which one do you mean?", *(f"  #{id} {titles.get(id, '')}" for id in intent.ids)])
    if intent.need == "task":
        return _explain_missing_task(intent) if items else _EMPTY
    if intent.need:
        return _NEED_TEXTS[intent.need].format(length=len(text), maximum=MAX_CHARS)
    low = text.lower().replace("’", "'").strip()
    return next((answer for pattern, answer in _TALK if re.search(pattern, low)), NOT_UNDERSTOOD)


def find_nearest(text: str) -> list[str]:
    """Return the examples that are most similar to a message, the nearest first."""
    text = text[:_MAX_COMPARED].casefold()
    words_of_text = set(_WORD.findall(text))

    def score(sentence: str) -> tuple[int, float]:
        shared = words_of_text & set(_WORD.findall(sentence.casefold()))
        return len(shared), SequenceMatcher(None, text, sentence.casefold(), autojunk=False).ratio()

    return sorted((sentence for sentence, _ in EXAMPLES), key=score, reverse=True)[:_MAX_OFFERS]


def build_offer(sentences: list[str]) -> str:
    """Return the answer to a message that wasn't understood."""
    first, *others = (f"“{sentence}”" for sentence in sentences)
    return NOT_UNDERSTOOD.replace("Say", f"Nearest are {', '.join([first, *others[:-1]])} and {others[-1]}. Say")


def _explain_missing_task(intent: Intent) -> str:
    if intent.missing:
        plural = "s" if len(intent.missing) > 1 else ""
        return f"You have no task{plural} {', '.join(intent.missing)}. “show my tasks” lists all tasks."
    return f"You have no {_KINDS[intent.status]} tasks." if intent.status else _NEED_TEXTS[intent.need]

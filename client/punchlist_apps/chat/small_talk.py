"""Answers without tool calls: greetings, help, questions for missing details, and replies to unclear messages."""

import re

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.reading import MAX_CHARS, MAX_REQUESTS, Intent
from punchlist_apps.chat.rules.references import Item

HELP = """You can say, for example:
  add buy milk              show my tasks            what is left?
  done with 3               I bought milk            mark the report as done
  rename 4 to Call Ann      make 4 urgent            reopen 5
  delete 2                  delete completed tasks   undo that
  add rent due friday       assign 2 to ann          who is working?
  what is waiting for me?   approve 2"""

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


def _explain_missing_task(intent: Intent) -> str:
    if intent.missing:
        plural = "s" if len(intent.missing) > 1 else ""
        return f"You have no task{plural} {', '.join(intent.missing)}. “show my tasks” lists all tasks."
    return f"You have no {_KINDS[intent.status]} tasks." if intent.status else _NEED_TEXTS[intent.need]

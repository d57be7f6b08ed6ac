"""The English vocabulary of the rules, as data. Another language needs another module with the same names."""

LIST = r"(?:tasks?|to-?dos?|(?:to-?do |task )?lists?|items?|things)"
PLACE = r"(?:my|the|our|this) (?:to-?do |task )?list"
PRIORITY = r"(?:urgent|high|top|normal|medium|low)"
OPEN = r"(?:pending|open|unfinished|remaining|incomplete|outstanding|undone|uncompleted|active|left|still open|to do)"
DONE = r"(?:completed?|done|finished|closed|checked off|ticked off)"
RUNNING = r"(?:in progress|in_progress|started|running)"
FAILED = r"(?:failed|failing|broken)"
BLOCKED = r"(?:blocked|stuck|held up)"
STATUS = rf"(?:{OPEN}|{DONE}|{RUNNING}|{FAILED}|{BLOCKED})"
UNDONE = r"(?:not (?:yet )?(?:done|finished|completed?)|undone|incomplete|unfinished|open|pending)"

PRIORITIES = {"top": "high", "medium": "normal"}
"""Synonyms of priorities."""

POLITE = (
    r"(?:hey|hi|hello|ok|okay|so|well|now|please|pls|kindly|just|also|oops|whoops|actually)(?:[ ,.!]++| there[ ,.!]++)"
    r"|good (?:morning|afternoon|evening|day)[ ,.!]++"
    r"|(?:thanks|thank you|thx)(?: a lot| so much| very much)?[,.!]++ *+"
    r"|(?:can|could|would|will) (?:you|u) (?:please |kindly |just )?"
    r"|i(?:'d| would) like (?:you )?to |i want (?:you )?to |i wanna |let's |let us |go ahead and "
)
"""Polite phrases before a request, which are stripped."""

POLITE_QUESTION = r"(?:please|pls|can|could|would|will)\b"
"""Polite phrases that turn a question into a request, as in "can you add milk?"."""

THANKS = r"(?<![ ,.!])[ ,.!]++(?:please|pls|thanks|thank you|thx)[.!?]*"
"""Polite phrases after a request."""

CONFIRMING = (
    r"(?<![ ,.;!-])[ ,.;!-]++(?:(?:and )?(?:yes|yep|i(?:'m| am) (?:sure|certain)(?: (?:of|about) (?:it|that|this))?"
    r"|confirmed|definitely|don't ask|no need to ask)[ ,.!]*+)+"
)
"""Words that confirm a request in the same message."""

_IT = r"(?:it|them|that|this|those)"
_AGREEING = (
    r"(?:yes|y|ye|yep|yup|yeah|ya|sure|sure thing|of course|ok|okay|k|fine|alright|all right|right|correct|confirm"
    r"|confirmed|certainly|no need to (?:ask|confirm)"
    r"|definitely|absolutely|affirmative|go ahead|go for it|do it|do that|please do|please|proceed|that's right"
    r"|that's fine|i'm sure|i am sure|sounds good|thanks|thank you{own})"
)
_DOING = {
    "delete": "delete|remove|clear",
    "update": "rename|change",
    "complete": "complete|finish",
    "start": "start",
    "reopen": "reopen",
    "approve": "approve",
    "assign": "assign",
}
"""Intent of a question → verbs that agree to the question. Any other verb is a different request."""
_REFUSING = (
    r"(?:no|n|nope|nah|no way|never mind|nevermind|cancel|cancel (?:it|that)|stop|abort|don't|do not|dont"
    rf"|don't (?:do|{'|'.join(_DOING.values())}) {_IT}|leave (?:it|them)|keep (?:it|them)|not now|not yet"
    r"|(?:rather|better|absolutely|definitely|certainly|probably|maybe|of course) not|not really|hell no"
    r"|nothing|(?:neither|none)(?: of (?:them|those|these))?|i (?:don't|do not) think so"
    rf"|(?:scrap|drop|skip|forget(?: about)?) {_IT}|no need(?: to (?:do|{'|'.join(_DOING.values())}) {_IT})?"
    r"|wait|hold on|thanks|thank you|please|sorry|i changed my mind)"
)
NO = rf"{_REFUSING}(?:[ ,.!]+{_REFUSING})*[.! ]*"
NEITHER = (
    r"(?:(?:thanks|thank you|please|wait|hold on|sorry)(?:[ ,.!]+(?:thanks|thank you|please|wait|sorry))*[.! ]*"
    r"|(?:oh[ ,]+)?(?:yeah|ya|sure)[ ,.]+right\b.*)"
)
"""Replies that don't answer a question: polite words alone, and "yeah right", which may mean no."""


def all_of(count: int) -> str:
    both = "both|" if count == 2 else ""  # noqa: PLR2004 - the meaning of the word
    return (
        rf"(?:{both}all(?: {count})?|every(?:thing| one)|the (?:whole )?lot)(?: tasks)?(?: of (?:it|them|those|these))?"
    )


def agreement(name: str = "") -> str:
    """Return the pattern of replies that agree to a question about this intent."""
    own = rf"|(?:{_DOING[name]}) {_IT}" if name in _DOING else ""
    one = _AGREEING.replace("{own}", own)
    return rf"{one}(?:[ ,.!]+{one})*[.! ]*"


CORRECTING = rf"(?:{_REFUSING}(?:\s*[,.;:!]+| [–-])\s*|i mean(?:t)? )"
"""Start of a correction, as in "no, the dentist"."""
CORRECTING_LOOSELY = (
    r"(?:(?:no(?! need\b)|nope|nah|wait|sorry|not (?:that|this|those)(?: one| task)?)[ ,]+|not [^,;.!?]+[,;.]\s*)"
)
"""Other starts of a correction, unless the question asks for a title, because "no milk" may be a title."""
DENYING = r"no\s+(?!(?:no|nope|nah|wait|sorry)\b)"
"""A "no" that may negate the words after it, as in "no memo is done"."""
ANSWERING = (
    rf"(?:(?P<ended>(?:{_REFUSING}|{_AGREEING.replace('{own}', '')})(?:\s*[,.;:!]+| [–-])\s*|i mean(?:t)? )"
    r"|(?:yes|yep|yup|yeah|sure|no|nope|nah|wait|sorry)\s+)(?=\S)"
)
"""A yes or no before a request. The group `ended` matches if punctuation follows the yes or no."""
INSTEAD = r"[ ,]+(?:instead|rather)[.! ]*"
"""End of a correction."""

IN_LIST = rf" in (?:the )?(?:list )?(?!progress\b|{PLACE})(?P<place>\S.*)"
"""The name of a list at the end of a question, as in "what failed in shop"."""

GREETING = r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day|night)|bye|goodbye)(?: there)?[.! ]*"
NAMING = r"(?:(?:call|name) (?:it|that|this)|(?:it|that|this)(?:'s| is| should be| shall be) (?:called|named)|to) "
"""Words before a requested title, which are stripped."""
NO_TITLE = r"(?:hm+|i (?:don't|do not) know|dunno|no idea|not sure|what|why|how|who|where|when)\b.*"
"""Replies that aren't the requested title."""
PLACEHOLDERS = frozenset(
    "it that this them those these another more some something else new any thing things task tasks".split()
)
"""Words that can't be a new task's title, with or without articles."""
ARTICLES = frozenset("a an the and one ones".split())
NOT_A_TASK = (
    r"(?:(?:talk|chat|go|leave|run|stop|wait|sleep)(?:,? (?:now|here|soon))*(?:[ ,.!]+(?:bye|goodbye|see you|sorry))?"
    r"|(?:admit|confess|know|not)\b.*|say(?:,| that\b| this\b| it\b| you\b| i\b).*"
    r"|(?:think about|sleep on) (?:it|that|this))"
)
"""Wishes that aren't tasks."""

STOP_WORDS = frozenset(
    "a an the my our your this that these those to for of on in at with and task tasks todo todos item one number"
    " entry please about from is".split()
)
"""Words ignored when task titles are matched."""

ORDINALS = {
    word: place
    for place, words in enumerate(
        (
            *("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th"),
            *("sixth 6th", "seventh 7th", "eighth 8th", "ninth 9th", "tenth 10th"),
        ),
        start=1,
    )
    for word in words.split()
}
PRONOUNS = frozenset("it that this them those these one same".split())
"""Words that refer to the tasks mentioned last."""

IRREGULAR = {
    past: verb
    for verb, pasts in {
        "buy": "bought", "pay": "paid", "write": "wrote written", "send": "sent", "make": "made", "do": "did done",
        "get": "got gotten", "go": "went gone", "take": "took taken", "read": "read", "meet": "met", "build": "built",
        "find": "found", "give": "gave given", "bring": "brought", "tell": "told", "sell": "sold",
        "speak": "spoke spoken",
        "see": "saw seen", "eat": "ate eaten", "feed": "fed", "run": "ran", "set": "set", "put": "put", "cut": "cut",
        "hang": "hung", "draw": "drew drawn", "drive": "drove driven", "choose": "chose chosen", "teach": "taught",
    }.items()
    for past in pasts.split()
}  # fmt: skip
"""Irregular past tense form → verb."""

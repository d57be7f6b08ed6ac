"""The words of English that the rules know, as data. Another language would be another module of the same names."""

LIST = r"(?:tasks?|to-?dos?|(?:to-?do |task )?lists?|items?|things)"
PLACE = r"(?:my|the|our|this) (?:to-?do |task )?list"
PRIORITY = r"(?:urgent|high|top|normal|medium|low)"
OPEN = r"(?:pending|open|unfinished|remaining|incomplete|outstanding|undone|uncompleted|active|left|still open|to do)"
DONE = r"(?:completed?|done|finished|closed|checked off|ticked off)"
RUNNING = r"(?:in progress|in_progress|started|running)"
STATUS = rf"(?:{OPEN}|{DONE}|{RUNNING})"
UNDONE = r"(?:not (?:yet )?(?:done|finished|completed?)|undone|incomplete|unfinished|open|pending)"

PRIORITIES = {"top": "high", "medium": "normal"}
"""A priority as people say it → ours, where they differ."""

POLITE = (
    r"(?:hey|hi|hello|ok|okay|so|well|now|please|pls|kindly|just|also)(?:[ ,.!]++| there[ ,.!]++)"
    r"|good (?:morning|afternoon|evening|day)[ ,.!]++"
    r"|(?:thanks|thank you|thx)(?: a lot| so much| very much)?[,.!]++ *+"
    r"|(?:can|could|would|will) (?:you|u) (?:please |kindly |just )?"
    r"|i(?:'d| would) like (?:you )?to |i want (?:you )?to |i wanna |let's |let us |go ahead and "
)
"""What may stand in front of a request."""

THANKS = r"(?<![ ,.!])[ ,.!]++(?:please|pls|thanks|thank you|thx)[.!?]*"
"""What may stand behind one."""

SURE = (
    r"(?<![ ,.;!-])[ ,.;!-]++(?:(?:and )?(?:yes|yep|i'm sure|i am sure|i'm certain|confirmed|definitely|don't ask"
    r"|no need to ask)[ ,.!]*+)+"
)
"""How somebody agrees in the same message."""

_AGREEING = (
    r"(?:yes|y|ye|yep|yup|yeah|ya|sure|of course|ok|okay|k|fine|alright|all right|right|correct|confirm|confirmed"
    r"|certainly"
    r"|definitely|absolutely|affirmative|go ahead|go for it|do it|do that|please do|please|proceed|that's right"
    r"|that's fine|i'm sure|i am sure|sounds good|(?:delete|remove|rename|change|clear) (?:it|them|that|this|those|all)"
    r"|thanks|thank you)"
)
_REFUSING = (
    r"(?:no|n|nope|nah|no way|never mind|nevermind|cancel|cancel (?:it|that)|stop|abort|don't|do not|dont"
    r"|don't do (?:it|that)|leave (?:it|them)|keep (?:it|them)|forget it|not now|not yet|rather not|better not|wait"
    r"|hold on|thanks|thank you|please|sorry|i changed my mind)"
)
YES = rf"{_AGREEING}(?:[ ,.!]+{_AGREEING})*[.! ]*"
NO = rf"{_REFUSING}(?:[ ,.!]+{_REFUSING})*[.! ]*"
NEITHER = r"(?:thanks|thank you|please|wait|hold on|sorry)(?:[ ,.!]+(?:thanks|thank you|please|wait|sorry))*[.! ]*"
"""Politeness alone answers nothing."""

SMALL = frozenset(
    "a an the my our your this that these those to for of on in at with and task tasks todo todos item one number"
    " entry please about from is".split()
)
"""Words that tell no task from another."""

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
SAID_BEFORE = frozenset("it that this them those these one same".split())
"""What was spoken of last."""

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
"""Past forms → the verb."""

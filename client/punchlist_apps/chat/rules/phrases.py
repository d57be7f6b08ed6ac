"""Phrase patterns for requests. The first match wins.

`{ref}` stands for a reference to tasks, and `{title}` for a new title.
"""

from typing import NamedTuple

from punchlist_apps.chat.rules.words import BLOCKED, DONE, FAILED, LIST, OPEN, PLACE, PRIORITY, RUNNING, STATUS, UNDONE


class Phrase(NamedTuple):
    """A row of the table.

    Attributes:
        slots: Values that the phrase implies, in addition to the pattern's groups.
        strict: Whether the reference must be a task number.
        doubtful: Whether a reference by words may mean something else, in which case the person must confirm it.
    """

    intent: str
    pattern: str
    slots: tuple[tuple[str, str], ...] = ()
    strict: bool = False
    doubtful: bool = False


_REF = r"(?P<ref>.+?)"
_TITLE = r"(?P<title>.+)"
_THING = r"(?:tasks?|to-?dos?|items?|reminders?|entry|entries)"
_SHOW = r"(?:show|list|display|view|see|get|print|read|give)(?: me)?"
_NOW = r"(?: now| already| yet| today| so far)?"
_IS = r"(?:'s| is| are| was| has been| have been)(?: now| all| already)?"
_MARK = rf"(?:mark|set|flag|put) {_REF} (?:as |to |down as )?"
_DELETE = r"(?:delete|remove|erase|drop|scrap|cancel|trash|discard|get rid of|throw (?:away|out)|clear|purge)"
_COMPLETE = r"(?:(?:complete|finish|tick)(?: off| out)?|(?:check|cross) off)"
_ME = r"(?:me|my (?:yes|approval|ok|okay|answer))"
_WE = r"(?:i|we)(?: (?:also|still|really))?"


def _rows(intent: str, *patterns: str, strict: bool = False, doubtful: bool = False, **slots: str) -> list[Phrase]:
    return [
        Phrase(
            intent, pattern.replace("{ref}", _REF).replace("{title}", _TITLE), tuple(slots.items()), strict, doubtful
        )
        for pattern in patterns
    ]


PHRASES: list[Phrase] = [
    *_rows(
        "list",
        r"who(?:'s| is| are)(?: all)? (?:working|at work|busy)(?: on (?:it|this|what|anything|something|which tasks?))?"
        r"(?: (?:right )?now)?",
        "who works(?: on what)?",
        status="in_progress",
    ),
    # talk that looks like a request
    *_rows("help", r"help(?: me)?", "commands", "what can (?:you|i) do(?: here)?", r"how (?:do|can|could|should) i .+"),
    *_rows("help", "how does (?:this|it) work", "what do you (?:do|understand)", r"\?+"),
    *_rows("undo", r"(?:undo|revert)(?: (?:that|it|this|the last (?:change|one|thing|action)|my last change))?"),
    *_rows("undo", "take (?:that|it|this) back"),
    *_rows("redo", r"redo(?: (?:that|it|this|the last (?:change|one|thing|action)))?", "undo (?:that|the|my) undo"),
    *_rows("create", r"(?:don't|do not|i must(?:n't| not))(?: let me)? forget (?:to |about )?{title}"),
    *_rows("talk", r"(?:why|should|shall|don't|do not|never|did you|are you|would you|if|when|who|where)\b.*"),
    *_rows(
        "talk", r"(?:i|we) (?:don't|do not|didn't|did not|haven't|have not|won't|can't|cannot|couldn't|wouldn't)\b.*"
    ),
    *_rows("talk", "cancel", r"start (?:over|again|anew|afresh|from scratch)"),
    # listings
    *_rows(
        "list", rf"(?:{_SHOW}|tell me|what) (?:do i (?:have|need) to|must i|should i|can i) approve", status="waiting"
    ),
    *_rows(
        "list",
        rf"(?:(?:{_SHOW}|tell me) )?what(?:'s| is| are)?(?: still| there)? wait(?:s|ing)(?: (?:for|on) {_ME})?",
        rf"{_SHOW}(?: (?:the|all|my))? {LIST} (?:that (?:wait|are waiting)|waiting)(?: (?:for|on) {_ME})?",
        rf"(?:which|what) {LIST} (?:are waiting|wait)(?: (?:for|on) {_ME})?",
        status="waiting",
    ),
    *_rows(
        "list",
        rf"(?:{_SHOW}|tell me)(?: (?:all|everything|only|just))?(?: of)?(?: (?:the|my|our))?(?: (?P<status>{STATUS}))?"
        rf"(?: of)?(?: (?:the|my|our))? {LIST}",
    ),
    *_rows("list", rf"{_SHOW} (?:all|everything)(?: (?:on|in|of) {PLACE})?", rf"{_SHOW} what(?:'s| is) on {PLACE}"),
    *_rows(
        "list", r"(?:ls|list|tasks|to-?dos|all|overview)", rf"(?:all )?(?:my|the|our)(?: (?P<status>{STATUS}))? {LIST}"
    ),
    *_rows("list", rf"(?:all )?(?P<status>{STATUS}) {LIST}", rf"all {LIST}", rf"{LIST} (?P<status>{STATUS})"),
    *_rows("list", rf"what(?:'?s| is| are| do i have)(?: (?:there|all|currently))? (?:on|in) (?:{PLACE}|my plate)"),
    *_rows("list", rf"remind me (?:of|about) (?:my|the|our) {LIST}"),
    *_rows("list", rf"what(?:'s| is| are)(?: (?:my|the))(?: (?P<status>{STATUS}))? {LIST}"),
    *_rows("list", rf"what(?:'s| is| are)? (?:still )?{OPEN}(?: to (?:do|be done))?", status="pending"),
    *_rows(
        "list",
        r"what (?:do|should|must|can|shall) (?:i|we)(?: still)? (?:have to do|have left|need to do|have to finish"
        r"|do next|do now|do|work on(?: next)?)(?: today)?",
        status="pending",
    ),
    *_rows("list", r"what(?:'s| is) next", status="pending"),
    *_rows("list", rf"what(?:'s| is| are| has| have)?(?: already| still)? {FAILED}{_NOW}", status="failed"),
    *_rows("list", rf"what(?:'s| is| are)?(?: still)? {BLOCKED}{_NOW}", status="blocked"),
    *_rows(
        "list",
        rf"what (?:have|did) (?:i|we) (?:already )?(?:done|do|finish(?:ed)?|complete[d]?){_NOW}",
        status="completed",
    ),
    *_rows("list", rf"what(?:'s| is| are)(?: already)? {DONE}", status="completed"),
    *_rows(
        "list",
        r"what am i (?:working on|doing)(?: (?:right )?now)?",
        rf"what(?:'s| is) {RUNNING}",
        status="in_progress",
    ),
    *_rows(
        "list",
        rf"(?:which|what) {LIST} (?:are|is|were|have been|do i have)(?: still| already)?(?: (?P<status>{STATUS}))?",
    ),
    *_rows(
        "list",
        rf"how many(?: (?P<status>{STATUS}))? {LIST}(?: (?:do|have) i (?:have|got)| are there| are| have i)?"
        rf"(?: (?:still )?(?P<later>{STATUS}))?(?: on {PLACE})?",
    ),
    *_rows("list", rf"how many are (?:still )?(?P<status>{STATUS})"),
    *_rows("list", rf"anything (?:still )?{OPEN}(?: for today)?", status="pending"),
    *_rows("list", rf"do (?:i|we) have (?:any|some)(?:thing)?(?: (?P<status>{STATUS}))?(?: {LIST})?(?: to do| left)?"),
    # priority
    *_rows(
        "priority",
        rf"(?:set|change|raise|lower)(?: the)? priority (?:of|for) {{ref}} (?:to|as) (?P<priority>{PRIORITY})",
    ),
    *_rows("priority", rf"(?:make|mark|set|change|bump) {{ref}} (?:as |to )?(?P<priority>{PRIORITY})[ -]priority"),
    *_rows("priority", r"(?:make|mark|set|change|bump) {ref} (?:as |to )?(?P<priority>urgent)"),
    *_rows("priority", rf"(?:make|mark|set|change|bump) {{ref}} (?:as |to )?(?P<priority>{PRIORITY})", doubtful=True),
    *_rows(
        "priority",
        rf"{{ref}} (?:is|are|has)(?: now)? (?P<priority>{PRIORITY})[ -]priority",
        r"{ref} is (?P<priority>urgent)",
    ),
    # new tasks
    *_rows(
        "create",
        rf"(?:add|create|make|insert|set up)(?: me)?(?: (?:a|an|another|the following|these|some))?(?: new)?"
        rf"(?: (?P<priority>{PRIORITY})(?:[ -]priority)?)?(?: new)? {_THING}"
        rf"(?:\s*[:–-]\s*|\s+(?:called|named|titled|saying|that says|to|for|about)\s+|\s+)?(?P<title>.+)?",
    ),
    *_rows("create", rf"(?:add|create)(?: (?:a|an))? (?P<priority>{PRIORITY})(?:[ -]priority)?\s*:\s*{{title}}"),
    *_rows("create", rf"(?:a )?(?:new )?(?:{_THING}|note)\s*[:–-]\s*{{title}}", rf"new {_THING}(?: to)? {{title}}"),
    *_rows(
        "create",
        r"(?:add|create|insert|jot down|write down|note down|put down)(?: (?:these|the following))?"
        r"(?:\s*:\s*|\s+)(?!#?\d+$)(?P<title>.+)",
    ),
    *_rows("create", r"(?:add|create|new)", rf"new {_THING}"),
    *_rows("create", rf"(?:put|place|stick|get) {{title}} (?:on|onto|in|into|to) {PLACE}"),
    *_rows(
        "create", r"(?:please )?remind me (?:to|about|of|that) {title}", r"remember to {title}", r"schedule {title}"
    ),
    *_rows(
        "wish", rf"(?:{_WE} )?(?:need to|have to|have got to|got to|gotta) {{title}}", rf"{_WE}'ve got to {{title}}"
    ),
    *_rows("wish", rf"{_WE} (?:must|should|ought to) (?!have\b){{title}}"),
    # changes to a task
    *_rows("approve", r"(?:approve|sign off(?: on)?) {ref}", r"{ref} is approved"),
    *_rows("assign", r"(?:assign|reassign) {ref} to {title}"),
    *_rows("assign", r"(?:give|hand) {ref} to {title}", strict=True),
    *_rows("reopen", rf"{_MARK}{UNDONE}"),
    *_rows("start", rf"{_MARK}{RUNNING}"),
    *_rows("complete", rf"{_MARK}{DONE}{_NOW}"),
    *_rows("update", r"(?:rename|retitle) {ref} (?:too?|as|into) {title}", r"call {ref} {title} instead"),
    *_rows("update", r"(?:call|name) (?P<ref>it|that|this|(?:task )?#?\d+) {title}"),
    *_rows("update", r"(?:change|edit|update|set)(?: the)? (?:title|name|text) of {ref} (?:to|as) {title}"),
    *_rows("update", r"(?:change|update|edit|set) {ref}(?:'s)? (?:title|name|text) (?:to|as) {title}"),
    *_rows(
        "update", r"(?:change|update|edit|set) {ref} (?:to|into) {title}", r"(?:change|update|edit) {ref}\s*:\s*{title}"
    ),
    *_rows("update", r"{ref} should(?: rather)? be (?:called|named) {title}"),
    *_rows(
        "update",
        r"(?:rename|retitle) (?P<ref>(?:task )?#?\d+)(?:\s*:)? (?!(?:and|too?|as|into)\b|[&,-])(?P<title>.*[a-z].*)",
    ),
    *_rows("update", r"(?:rename|retitle) {ref}"),
    *_rows("reopen", r"(?:reopen|re-open|uncheck|untick|unmark) {ref}"),
    *_rows("reopen", r"restore {ref}", doubtful=True),
    *_rows("reopen", r"{ref} (?:is|are)(?:n't| not)(?: yet)? (?:done|finished|completed?)(?: yet)?"),
    *_rows("start", r"(?:start|begin|resume|continue)(?: with| on| working on)? {ref}", r"work on {ref}"),
    *_rows("start", rf"i(?:'m| am)(?: now)? (?:working on|starting|doing) {{ref}}{_NOW}"),
    *_rows("delete", rf"(?:clear|empty|wipe|reset|delete|remove|erase)(?: out)? (?:{PLACE}|everything|all)", ref="all"),
    *_rows("delete", rf"{_DELETE} {{ref}}(?: (?:from|off|on) {PLACE})?", rf"take {{ref}} off {PLACE}"),
    *_rows("delete", rf"{_DELETE}"),
    *_rows("complete", rf"{_COMPLETE} {{ref}}(?: {PLACE})?", rf"(?:check|cross|tick) {{ref}} off(?: {PLACE})?"),
    *_rows("complete", r"(?:check|cross) {ref}", strict=True),
    *_rows("complete", r"close(?: out)? {ref}", rf"{{ref}}{_IS} closed", doubtful=True),
    *_rows("complete", r"(?:all )?(?:done|finished|through) with {ref}", r"(?:done|completed|finished) {ref}"),
    *_rows("complete", r"i(?:'m| am) (?:done|finished|through) with {ref}"),
    *_rows("complete", r"(?:i|we)(?:'ve| have)?(?: just| already| now)? (?:finished|completed|done)(?: with)? {ref}"),
    *_rows("get", rf"(?:is|are|was) {{ref}} (?:{DONE}|{OPEN}|{RUNNING}|ready){_NOW}"),
    *_rows("complete", rf"{{ref}}{_IS} {DONE}{_NOW}"),
    *_rows("complete", rf"{{ref}}\s?:?\s?{DONE}", strict=True),
    *_rows("complete", r"(?:done|finished|complete|completed|finish)"),
    # one task
    *_rows(
        "get",
        r"(?:details?|info(?:rmation)?|more)(?: (?:for|of|on|about))? {ref}",
        r"(?:tell me(?: more)?|more) about {ref}",
    ),
    *_rows("get", r"(?:what(?:'s| is)|how(?:'s| is)) the (?:status|state|progress) (?:of|on|with) {ref}"),
    *_rows("get", rf"{_SHOW}(?: the)?(?: details? (?:of|for|on))? {{ref}}", r"(?:open|describe|look at) {ref}"),
    *_rows("get", r"(?:what(?:'s| is| was)|which is) {ref}", r"{ref}", strict=True),
]

"""Reads the marks of spec files: Kiro's, Spec-Kit's and OpenSpec's `tasks.md`.

These files number their tasks (`T012`, `2.1`) and state dependencies with the numbers, in a task's text or, in
Spec-Kit, in sentences elsewhere. Each phase of Spec-Kit waits for the previous one.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from punchlist_apps.files.importers.outline import Entry, Outline, list_above

_ID = r"(?:T-?\d{1,4}[a-z]?|[A-Z][A-Z0-9]*-\d{1,6}|\d{1,6}(?:\.\d{1,6})*)(?!\d)"
_LEAD = re.compile(rf"(?P<lead>(?:\*\*)?(?:Task[ ])?(?P<id>{_ID})(?:[.:)]|\*\*)*\s+)")
_MARKS = re.compile(r"(?:(?:\[(?:P|US\d+\w?|Story ?\d+)\]|\(P\))\s*)+")
_MARK = re.compile(r"[\[(]([^\])]+)")
_REFERENCE = rf"(?<![^\W_])(?:(?:tasks?\s+)?(?P<first>{_ID})(?:\s*(?:-|–|—|to|through)\s*(?P<last>{_ID}))?)"
_ONE = re.compile(_REFERENCE, re.IGNORECASE)
_PLAIN = re.sub(r"\?P<\w+>", "?:", _REFERENCE)
_BETWEEN = r"(?:\s*(?:[,&+/]|\b(?:and|or)\b))+\s*"
_SEQUENCE = rf"{_PLAIN}(?:{_BETWEEN}{_PLAIN})*"
_NUMBERS = r"T\d{3,4}[a-z]?(?:\s*[-–—]\s*T?\d{3,4}[a-z]?)?"
_T_SEQUENCE = rf"{_NUMBERS}(?:{_BETWEEN}{_NUMBERS})*"
_NOT = r"(?:\b(?:not|never|no\s+longer)|n['’]t)\s+"
_NEEDS = re.compile(
    rf"(?P<denied>{_NOT})?"
    rf"(?:(?<![^\W_])(?:depends?\s+(?:up)?on|dependent\s+on|blocked\s+by|depends|dependenc(?:y|ies))\b"
    rf"(?P<colon>[*_]*\s*:[*_]*)?\s*(?P<ids>{_SEQUENCE})(?P<word>\s*[^\W\d_])?"
    rf"|\b(?:after|requires?|needs)\s+(?P<numbers>{_T_SEQUENCE}))",
    re.IGNORECASE,
)
_PRECEDES = re.compile(rf"(?P<denied>{_NOT})?\b(?:before|blocks)\s+(?P<ids>{_T_SEQUENCE})")
_WAITS = r"(?:depends?\s+on|after|requires?|needs?|blocked\s+by|waits?\s+for)\b"
_STATEMENT = re.compile(
    rf"(?P<ids>{_T_SEQUENCE})|(?P<before>\b(?:before|blocks?)\b|→|[-=]>)|(?P<after>\b{_WAITS})"
    rf"|(?P<end>[.;](?=\s|$)|{_NOT}(?:{_WAITS}|(?:before|blocks?)\b))",
    re.IGNORECASE,
)
_REQUIREMENTS = re.compile(r"^[^\S\n]*(?:[-*] )?_Requirements?:(.*)$", re.MULTILINE)
_LAST_NUMBER = re.compile(r"(?<!\d)\d+(?=[a-z]?$)")
_PHASE = re.compile(r"\b(?:phase|fase|фаза|этап)\b|フェーズ|阶段|階段|단계", re.IGNORECASE)
"""Matches the heading of a phase in English, and in other languages of public plans."""

_MAX_EDGES = 400
"""Maximum number of dependencies in one statement, such as `T001-T020 before T021-T040`."""


def read_kiro(outline: Outline, lines: Sequence[str]) -> None:
    _Reader(outline, lines).read(has_nested_numbers=True)


def read_openspec(outline: Outline, lines: Sequence[str]) -> None:
    _Reader(outline, lines).read(has_nested_numbers=True)


def read_spec_kit(outline: Outline, lines: Sequence[str]) -> None:
    _Reader(outline, lines).read(has_phases=True)


class _Reader:
    def __init__(self, outline: Outline, lines: Sequence[str]) -> None:
        self._outline = outline
        self._entries = outline.entries
        self._lines = lines
        self._ids: defaultdict[str, list[int]] = defaultdict(list)

    def read(self, *, has_nested_numbers: bool = False, has_phases: bool = False) -> None:
        for index, entry in enumerate(self._entries):
            if entry.kind != "heading":
                self._read_lead(index, entry)
        if has_nested_numbers:
            self._nest_numbers()
        for index, entry in enumerate(self._entries):
            if entry.kind != "heading":
                self._read_text(index, entry)
        if has_phases:
            for line, text in self._list_sentences():
                self._read_statement(text, line)
            self._order_phases()

    def _read_lead(self, index: int, entry: Entry) -> None:
        match = _LEAD.match(entry.title)
        if match is None:
            return
        entry.key = match["id"]
        self._ids[entry.key.upper()].append(index)
        if marks := _MARKS.match(entry.title, match.end()):
            names = _MARK.findall(marks[0])
            entry.members.setdefault("labels", []).extend("parallel" if name == "P" else name for name in names)
            entry.lead, entry.words = match["lead"], entry.title[marks.end() :]
            entry.title = entry.lead + entry.words

    def _nest_numbers(self) -> None:
        """Make task 2.1 a part of task 2, if both stand at the same level below the same heading."""
        written = [entry.above for entry in self._entries]
        for index, entry in enumerate(self._entries):
            above = entry.key.rpartition(".")[0]
            if above and (parent := self._find(above, index)) is not None and parent < index:
                entry.above = parent if written[parent] == entry.above else entry.above

    def _find(self, name: str, index: int) -> int | None:
        """Return the entry with an id. If several have it, return the last one above `index`."""
        found = self._ids.get(name.upper(), ())
        return found[max(bisect_right(found, index) - 1, 0)] if found else None

    def _read_text(self, index: int, entry: Entry) -> None:
        text = f"{entry.title}\n{entry.description}"
        if requirements := _REQUIREMENTS.search(entry.description):
            entry.members["metadata"] = {"requirements": requirements[1].strip().removesuffix("_")}
        for match in _NEEDS.finditer(text):
            ids = match["ids"] or match["numbers"]
            # “Depends on 3 services” names no task.
            is_count = ids.isdecimal() and (match["word"] or not match["colon"])
            if not is_count and not match["denied"]:
                self._link([index], self._expand(ids, index, entry.line), entry.line)
        for match in _PRECEDES.finditer(text):
            if not match["denied"]:
                self._link(self._expand(match["ids"], index, entry.line), [index], entry.line)

    def _list_sentences(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that belong to no task, except code."""
        own = {line for entry in self._entries if entry.kind != "heading" for line in range(entry.line, entry.end)}
        is_code = False
        for number, line in enumerate(self._lines):
            is_fence = line.lstrip().startswith(("```", "~~~"))
            if not is_code and not is_fence and number not in own and "T" in line:
                yield number, line
            is_code ^= is_fence

    def _read_statement(self, text: str, line: int) -> None:
        """Read `T001-T003 before T004`, `T008 blocks T009`, `T005 depends on T004` and `T001 → T002 → T003`."""
        left: list[int] = []
        link = ""
        for match in _STATEMENT.finditer(text):
            if match.lastgroup == "ids":
                right = self._expand(match["ids"], len(self._entries), line)
                if left and link:
                    self._link(*((right, left) if link == "before" else (left, right)), line)
                left, link = right, ""
            elif match.lastgroup == "end":
                left, link = [], ""
            else:
                link = link or str(match.lastgroup)

    def _expand(self, text: str, index: int, line: int) -> list[int]:
        """Return the entries that a sequence of ids and ranges names."""
        found: list[int] = []
        for match in _ONE.finditer(text):
            first, last = match["first"], match["last"]
            names = _expand_range(first, last) if last else [first]
            entries = [other for name in names if (other := self._find(name, index)) is not None]
            if not entries and not first.isdecimal():
                self._outline.left_out.append(("dependencies on tasks that are not in the file", line + 1))
            found += entries
        return found

    def _link(self, waiting: Sequence[int], blockers: Sequence[int], line: int) -> None:
        if len(waiting) * len(blockers) > _MAX_EDGES:
            self._outline.left_out.append((f"sentences with more than {_MAX_EDGES} dependencies", line + 1))
            return
        # Ranges may overlap: in “T020-T027 before T023-T029”, the common tasks only wait.
        earlier = [other for other in blockers if other not in waiting]
        for index in waiting:
            self._entries[index].blockers += earlier

    def _order_phases(self) -> None:
        """Make each phase wait for the previous one, unless a task of an earlier phase needs one of its tasks."""
        phases = [
            index
            for index in range(len(self._entries))
            if self._is_phase(index) and not any(map(self._is_phase, list_above(self._entries, index)))
        ]
        parts: dict[int, list[int]] = {phase: [phase] for phase in phases}
        for index in range(len(self._entries)):
            for above in list_above(self._entries, index):
                if above in parts:
                    parts[above].append(index)
        below: defaultdict[int, list[int]] = defaultdict(list)
        for index, entry in enumerate(self._entries):
            below[entry.above].append(index)
        reached: set[int] = set()
        for number, phase in enumerate(phases):
            waiting = parts[phase]
            if number and not any(index in reached for index in waiting):
                self._entries[phase].blockers.append(phases[number - 1])
            elif number:
                self._outline.left_out.append(
                    ("order of a phase that an earlier task needs", self._entries[phase].line + 1)
                )
            while waiting:
                index = waiting.pop()
                if index not in reached:
                    reached.add(index)
                    others = [other for other in self._entries[index].blockers if other not in parts]
                    waiting += [*others, *below[index]]

    def _is_phase(self, index: int) -> bool:
        return self._entries[index].kind == "heading" and bool(_PHASE.search(self._entries[index].title))


def _expand_range(first: str, last: str) -> list[str]:
    """Return the ids from `T013` to `T015`, or from `1.1` to `1.3`; both ends alone if they have different prefixes."""
    start, end = _LAST_NUMBER.search(first), _LAST_NUMBER.search(last)
    prefix = first[: start.start()] if start else ""
    if not start or not end or last[: end.start()] not in (prefix, "") or int(end[0]) - int(start[0]) > _MAX_EDGES:
        return [first, last]
    numbers = range(int(start[0]), int(end[0]) + 1)
    return list(dict.fromkeys((first, *(f"{prefix}{number:0{len(start[0])}}" for number in numbers), last)))

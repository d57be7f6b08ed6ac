"""Whether the time of every regular expression grows with the length of its text, and no faster.

`re` has no counter of steps, so processor time is measured: of a text and of one four times as long, in one process.
Texts are made from each pattern itself: runs of what it repeats, behind what it wants before them, with an end that it
doesn't take. Run as a program, it prints a line for each pattern whose time grows faster.
"""

import ast
import gc
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("client/punchlist", "client/punchlist_apps", "daemon/punchlistd", "schemas/punchlist_schemas")
SHORT = 8_000
LINEAR_S = 0.008
"""Seconds below which the time of a text of `SHORT` characters is linear: quadratic time takes several times that."""
GROWTH = 8
"""Linear time grows by 4, quadratic by 16."""
ROUNDS = 3
"""Times that a growth has to be measured, one after the other, until it counts."""
MEASURED_S = 0.05
"""Processor time over which a call is measured, in seconds: some kernels count it in steps of 10 ms."""
BOUNDED_S = 0.1
"""Processor time that the longest text of a pattern takes at most, if its texts are short."""
LIMIT_S = 2.0
"""Processor time after which a single text counts as endless, in seconds."""

# They have no types, and are what the module `re` itself is made of.
codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")
compiler: Any = import_module("re._compiler")

_USES = ("match", "fullmatch", "search")
_OTHERS = ("findall", "finditer", "split", "sub", "subn")
_SAMPLES = " \t\na1_-.:\x00\u00e9"


class Pattern(NamedTuple):
    """A pattern, where it stands, and how it is used."""

    place: str
    compiled: re.Pattern[Any]
    uses: frozenset[str]


class Given(NamedTuple):
    """The patterns that a call gets as a local variable, and how it uses them if it compiles them."""

    sources: Sequence[str]
    use: str = "search"


class _Endless(Exception):
    """A text takes more than `LIMIT_S`."""


# Finding them


def patterns(given: Mapping[tuple[str, str], Given]) -> Iterator[Pattern]:
    """Yield the pattern of every call of `re` in our sources.

    Args:
        given: What a call's pattern is, if it is a local variable: `(module, expression) → patterns`.

    Raises:
        KeyError: A call's pattern is a local variable, and `given` does not have it.
    """
    trees = {path: ast.parse(path.read_text("utf-8")) for path in _files()}
    everywhere = _uses(trees.values())
    for path, tree in trees.items():
        calls = [node for node in ast.walk(tree) if (name := _function(node)) and name != "escape"]
        names = {
            node.value: target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        module = _module(path) if calls else None
        for call in calls:
            assert isinstance(call, ast.Call)
            name = _function(call)
            space = vars(module)
            flags = next(
                (
                    value
                    for each in (*call.args[1:], *(k.value for k in call.keywords))
                    if (value := _flags(each, space))
                ),
                0,
            )
            named_as = names.get(call, "")
            uses = _uses([tree]) if named_as.startswith("_") else everywhere
            used = uses.get(named_as, set()) if name == "compile" else {name}
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            source = _value(call.args[0], space)
            own = Given((source,)) if source is not None else given[_module(path).__name__, ast.unparse(call.args[0])]
            for one in own.sources:
                yield Pattern(place, re.compile(one, flags), frozenset(used or (own.use,)))


def _files() -> list[Path]:
    return sorted(
        path
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        if "__pycache__" not in path.parts and path.name != "__main__.py"
    )


def _module(path: Path) -> Any:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def _function(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
            return name
        case _:
            return ""


def _uses(trees: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Return the methods that are called on each name, in whichever module."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method):
                    if method in (*_USES, *_OTHERS):
                        found.setdefault(name, set()).add(method)
                case _:
                    pass
    return found


def _flags(node: ast.expr, space: dict[str, Any]) -> int:
    value = _value(node, space)
    return int(value) if isinstance(value, re.RegexFlag) else 0


def _value(node: ast.expr, space: dict[str, Any]) -> Any:
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), space)  # noqa: S307 - our own sources
    except NameError:
        return None


# Texts


class Texts:
    """Texts for one pattern: each a function of the length that is wanted."""

    def __init__(self, compiled: re.Pattern[Any]) -> None:
        self._tree = parser.parse(compiled.pattern, compiled.flags)
        self._is_bytes = isinstance(compiled.pattern, bytes)
        self._runs: dict[tuple[str, str], None] = {}
        self._characters: dict[str, None] = dict.fromkeys(_SAMPLES)
        self._walk(self._tree, "")

    def __iter__(self) -> Iterator[Callable[[int], Any]]:
        heads = {(head, body): None for head, body in self._runs} | {("", one): None for one in self._characters}
        for head, body in heads:
            for tail in ("", "\x00", "\n\n!", " ", "a"):
                yield lambda length, head=head, body=body, tail=tail: self._text(head, body, tail, length)
            if head:
                for each in (head, f"{head} ", head + body, f"{head}{body} "):
                    yield lambda length, each=each: self._text("", each, "", length)

    def _text(self, head: str, body: str, tail: str, length: int) -> Any:
        return self._encoded(head + body * max(1, length // len(body)) + tail)

    def _walk(self, items: Any, before: str) -> str:
        """Note the runs of a sequence that stands after `before`; return an example of it."""
        made = ""
        for code, value in items:
            made += self._example(code, value, before + made)
        return made

    def _example(self, code: Any, value: Any, before: str) -> str:  # noqa: C901, PLR0911 - a table of kinds
        match code:
            case codes.LITERAL:
                return self._note(chr(value))
            case codes.ANY:
                return "a"
            case codes.NOT_LITERAL | codes.IN:
                return self._taken(code, value)[0]
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                low, high, inner = value
                body = self._walk(inner, before)
                if body and high > 16:
                    self._runs[before, body] = None
                    for one in self._members(inner):
                        self._runs[before, one] = None
                return body * min(max(low, 1), 8)
            case codes.SUBPATTERN:
                return self._walk(value[3], before)
            case codes.ATOMIC_GROUP:
                return self._walk(value, before)
            case codes.BRANCH:
                return [self._walk(each, before) for each in value[1]][0]
            case codes.ASSERT:
                self._walk(value[1], before)
                return ""
            case _:
                return ""

    def _members(self, items: Any) -> list[str]:
        """Return characters that a repeated sequence begins with, each of which may be a run of its own."""
        if not len(items):
            return []
        code, value = items[0]
        return self._taken(code, value) if code is codes.IN else []

    def _taken(self, code: Any, value: Any) -> list[str]:
        """Return a few characters that a set takes, usual ones first."""
        one = compiler.compile(parser.SubPattern(self._tree.state, [(code, value)]))
        named = (item[1] for item in value if item[0] in (codes.LITERAL, codes.RANGE)) if code is codes.IN else ()
        own = (chr(each if isinstance(each, int) else each[0]) for each in named)
        tried = dict.fromkeys((*"a1 \t-.", *self._characters, "\u00e9", *own))
        found = [each for each in tried if one.fullmatch(self._encoded(each))][:4] or ["a"]
        for each in found:
            self._note(each)
        return found

    def _encoded(self, text: str) -> Any:
        return text.encode("latin-1", "replace") if self._is_bytes else text

    def _note(self, one: str) -> str:
        self._characters[one] = None
        return one


# Measuring


def slow_text(pattern: Pattern, longest: int = 0) -> str:
    """Return a text for which the time of a pattern grows faster than its length, shortened; "" if none was found.

    Args:
        pattern: The pattern.
        longest: How many characters its texts have at most, so that the time may grow; 0: there is no limit.
    """
    for use in sorted(pattern.uses):
        function = _call(pattern.compiled, use)
        for text in Texts(pattern.compiled):
            if is_slow(function, text(longest)) if longest else grows_fast(function, text):
                return f"{use} of {text(8)!r}"
    return ""


def _call(compiled: re.Pattern[Any], use: str) -> Callable[[Any], object]:
    if use in _USES:
        return getattr(compiled, use)
    substitute: Callable[..., object] = compiled.sub
    return partial(substitute, b"" if isinstance(compiled.pattern, bytes) else "")


def is_slow(function: Callable[[Any], object], text: Any) -> bool:
    try:
        return _elapsed(function, text) > BOUNDED_S and _processor_time(function, text) > BOUNDED_S
    except _Endless:
        return True


def grows_fast(function: Callable[[Any], object], text: Callable[[int], Any]) -> bool:
    """Return whether the time of a function grows faster than the length of its text, each time that it is measured."""
    short, long = text(SHORT), text(4 * SHORT)
    try:
        return all(_elapsed(function, short) >= LINEAR_S for _ in range(ROUNDS)) and all(
            _processor_time(function, long) / _processor_time(function, short) >= GROWTH for _ in range(ROUNDS)
        )
    except _Endless:
        return True


def _elapsed(function: Callable[[Any], object], text: Any) -> float:
    """Return the time of one call by the clock, which is never less than its processor time."""
    with _limited():
        started = time.perf_counter()
        function(text)
        return time.perf_counter() - started


def _processor_time(function: Callable[[Any], object], text: Any) -> float:
    """Return the processor time of one call, from as many as a coarse clock needs."""
    calls, taken = 0, 0.0
    with _limited():
        started = time.process_time()
        while taken < MEASURED_S:
            function(text)
            calls += 1
            taken = time.process_time() - started
    return taken / calls


@contextmanager
def _limited() -> Generator[None]:
    """End the body after `LIMIT_S`, and collect no garbage in it: that takes longer the more objects there are."""
    signal.signal(signal.SIGVTALRM, _end)
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _Endless


def main(sources: Sequence[str]) -> None:
    """Print the patterns whose time grows faster: among these, or among all of our sources."""
    from punchlist_testing.given_patterns import BOUNDED, GIVEN  # noqa: PLC0415 - it imports half of the client

    chosen = (Pattern("given", re.compile(source), frozenset(("search",))) for source in sources)
    for pattern in chosen if sources else patterns(GIVEN):
        longest = next((most for place, most in BOUNDED.items() if pattern.place.startswith(place)), 0)
        if text := slow_text(pattern, longest):
            print(f"{pattern.place}: {text}: {pattern.compiled.pattern!r:.120}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

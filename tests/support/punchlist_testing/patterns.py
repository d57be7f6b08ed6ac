"""Checks that every regular expression of the sources runs in linear time.

`re` has no step counter, so this module measures processor time for a text and for one four times as long, in the same
process. The texts are derived from each pattern: a matching prefix, many repetitions of a repeated part, and an end
that doesn't match. Run as a program, it prints a line for each pattern that takes more than linear time.
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
"""A pattern that takes less than this, in seconds, for a text of `SHORT` characters counts as linear. Quadratic time is
several times longer."""
GROWTH = 8
"""Smallest ratio of times that counts as more than linear: 4 is linear, 16 quadratic."""
ROUNDS = 3
"""Consecutive measurements that must all exceed `GROWTH`."""
MEASURED_S = 0.05
"""Minimum processor time of a measurement, in seconds: some kernels count it in steps of 10 ms."""
BOUNDED_S = 0.1
"""Maximum processor time, in seconds, for the longest text of a pattern whose texts are bounded."""
LIMIT_S = 2.0
"""Maximum processor time for a single text, in seconds."""

# Untyped private modules of the standard library that parse and compile patterns.
codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")
compiler: Any = import_module("re._compiler")

_USES = ("match", "fullmatch", "search")
_OTHERS = ("findall", "finditer", "split", "sub", "subn")
_SAMPLES = " \t\na1_-.:\x00\u00e9"


class Pattern(NamedTuple):
    """A pattern, its place in the sources, and the methods called on it."""

    place: str
    compiled: re.Pattern[Any]
    uses: frozenset[str]


class CallPatterns(NamedTuple):
    """The patterns that a call receives as a local variable, and the method called on them if it compiles them."""

    sources: Sequence[str]
    use: str = "search"


class _Endless(Exception):
    """A text took more than `LIMIT_S`."""


# Finding the patterns


def patterns(local: Mapping[tuple[str, str], CallPatterns]) -> Iterator[Pattern]:
    """Yield the pattern of every call of `re` in the sources.

    Args:
        local: Patterns of the calls that receive a local variable: `(module, expression) -> patterns`.

    Raises:
        KeyError: A call receives a local variable that is missing from `local`.
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
                    for argument in (*call.args[1:], *(k.value for k in call.keywords))
                    if (value := _flags(argument, space))
                ),
                0,
            )
            variable = names.get(call, "")
            uses = _uses([tree]) if variable.startswith("_") else everywhere
            methods = uses.get(variable, set()) if name == "compile" else {name}
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            source = _value(call.args[0], space)
            if source is not None:
                found = CallPatterns((source,))
            else:
                found = local[_module(path).__name__, ast.unparse(call.args[0])]
            for text in found.sources:
                yield Pattern(place, re.compile(text, flags), frozenset(methods or (found.use,)))


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
    """Return the methods of patterns that are used on each name, over all the trees."""
    methods: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=method):
                    if method in (*_USES, *_OTHERS):
                        methods.setdefault(name, set()).add(method)
                case _:
                    pass
    return methods


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
    """Test strings for one pattern, as functions from a length to a string."""

    def __init__(self, compiled: re.Pattern[Any]) -> None:
        self._tree = parser.parse(compiled.pattern, compiled.flags)
        self._is_bytes = isinstance(compiled.pattern, bytes)
        self._runs: dict[tuple[str, str], None] = {}
        self._characters: dict[str, None] = dict.fromkeys(_SAMPLES)
        self._walk(self._tree, "")

    def __iter__(self) -> Iterator[Callable[[int], Any]]:
        heads = {(head, body): None for head, body in self._runs} | {("", char): None for char in self._characters}
        for head, body in heads:
            for tail in ("", "\x00", "\n\n!", " ", "a"):
                yield lambda length, head=head, body=body, tail=tail: self._text(head, body, tail, length)
            if head:
                for repeated in (head, f"{head} ", head + body, f"{head}{body} "):
                    yield lambda length, repeated=repeated: self._text("", repeated, "", length)

    def _text(self, head: str, body: str, tail: str, length: int) -> Any:
        return self._encode(head + body * max(1, length // len(body)) + tail)

    def _walk(self, items: Any, before: str) -> str:
        """Record the repetitions in a sequence that follows `before`; return an example of the sequence."""
        example = ""
        for code, value in items:
            example += self._example(code, value, before + example)
        return example

    def _example(self, code: Any, value: Any, before: str) -> str:  # noqa: C901, PLR0911 - a table of kinds
        match code:
            case codes.LITERAL:
                return self._note(chr(value))
            case codes.ANY:
                return "a"
            case codes.NOT_LITERAL | codes.IN:
                return self._sample_set(code, value)[0]
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                low, high, inner = value
                body = self._walk(inner, before)
                if body and high > 16:
                    self._runs[before, body] = None
                    for char in self._first_characters(inner):
                        self._runs[before, char] = None
                return body * min(max(low, 1), 8)
            case codes.SUBPATTERN:
                return self._walk(value[3], before)
            case codes.ATOMIC_GROUP:
                return self._walk(value, before)
            case codes.BRANCH:
                return [self._walk(branch, before) for branch in value[1]][0]
            case codes.ASSERT:
                self._walk(value[1], before)
                return ""
            case _:
                return ""

    def _first_characters(self, items: Any) -> list[str]:
        """Return characters that a repeated sequence can begin with; each may be repeated alone."""
        if not len(items):
            return []
        code, value = items[0]
        return self._sample_set(code, value) if code is codes.IN else []

    def _sample_set(self, code: Any, value: Any) -> list[str]:
        """Return up to four characters that a set matches, common characters first."""
        pattern = compiler.compile(parser.SubPattern(self._tree.state, [(code, value)]))
        named = (item[1] for item in value if item[0] in (codes.LITERAL, codes.RANGE)) if code is codes.IN else ()
        literals = (chr(item if isinstance(item, int) else item[0]) for item in named)
        candidates = dict.fromkeys((*"a1 \t-.", *self._characters, "\u00e9", *literals))
        samples = [char for char in candidates if pattern.fullmatch(self._encode(char))][:4] or ["a"]
        for char in samples:
            self._note(char)
        return samples

    def _encode(self, text: str) -> Any:
        return text.encode("latin-1", "replace") if self._is_bytes else text

    def _note(self, char: str) -> str:
        self._characters[char] = None
        return char


# Measuring


def find_slow_text(pattern: Pattern, longest: int = 0) -> str:
    """Return the method and a shortened text for which a pattern takes more than linear time; "" if none was found.

    Args:
        pattern: The pattern.
        longest: Maximum length of the pattern's texts, which is then the only length measured; 0 if unbounded.
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
    """Return whether a function takes more than linear time in the length of its text, in every round."""
    short, long = text(SHORT), text(4 * SHORT)
    try:
        return all(_elapsed(function, short) >= LINEAR_S for _ in range(ROUNDS)) and all(
            _processor_time(function, long) / _processor_time(function, short) >= GROWTH for _ in range(ROUNDS)
        )
    except _Endless:
        return True


def _elapsed(function: Callable[[Any], object], text: Any) -> float:
    """Return the wall time of one call, an upper bound of its processor time."""
    with _limited():
        started = time.perf_counter()
        function(text)
        return time.perf_counter() - started


def _processor_time(function: Callable[[Any], object], text: Any) -> float:
    """Return the processor time of one call, averaged over enough calls for a coarse clock."""
    calls, spent = 0, 0.0
    with _limited():
        started = time.process_time()
        while spent < MEASURED_S:
            function(text)
            calls += 1
            spent = time.process_time() - started
    return spent / calls


@contextmanager
def _limited() -> Generator[None]:
    """Interrupt the body after `LIMIT_S`. Garbage collection is off, because its duration depends on unrelated
    objects."""
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
    """Print the patterns that take more than linear time, of `sources` or of the whole project."""
    from punchlist_testing.local_patterns import BOUNDED, LOCAL_PATTERNS  # noqa: PLC0415 - it imports half of the client

    arguments = (Pattern("argument", re.compile(source), frozenset(("search",))) for source in sources)
    for pattern in arguments if sources else patterns(LOCAL_PATTERNS):
        longest = next((limit for place, limit in BOUNDED.items() if pattern.place.startswith(place)), 0)
        if text := find_slow_text(pattern, longest):
            print(f"{pattern.place}: {text}: {pattern.compiled.pattern!r:.120}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

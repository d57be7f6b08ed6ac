import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from punchlist_apps.files.mirror.merge import (
    Add,
    Change,
    Changes,
    Conflict,
    Delete,
    Edit,
    FieldsById,
    Move,
    merge_values,
    reconcile,
)
from punchlist_testing.unmeasured import mostly_untraced


def sheet(text: str) -> dict[str, dict[str, Any]]:
    """Return tasks by id; the text has the id and the title of each, such as `1:a 2:b`."""
    return {part.partition(":")[0]: {"title": part.partition(":")[2]} for part in text.split()}


def apply(changes: Iterable[Change], ours: FieldsById) -> dict[str, Mapping[str, Any]]:
    """Apply changes to a list, as the daemon does."""
    sheet = dict(ours)
    for change in changes:
        match change:
            case Edit(task, fields):
                sheet[task] = {**sheet[task], **fields}
            case Delete(task):
                del sheet[task]
            case Move(task, after):
                sheet = placed(sheet, task, sheet[task], after)
            case Add(ref, fields, after, at_end):
                sheet = {**sheet, ref: fields} if at_end else placed(sheet, ref, fields, after)
    return sheet


def placed(sheet: FieldsById, task: str, fields: Mapping[str, Any], after: str | None) -> dict[str, Mapping[str, Any]]:
    others = [(one, value) for one, value in sheet.items() if one != task]
    index = next((i + 1 for i, (one, _) in enumerate(others) if one == after), 0)
    return dict([*others[:index], (task, fields), *others[index:]])


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "changes"),
    [
        ("1:a 2:b", "1:a 2:b", "1:a 2:B 3:c", ()),
        ("1:a 2:b", "1:A 2:b", "1:a 2:B", (Edit("1", {"title": "A"}),)),
        ("1:a", "1:A", "1:A", ()),
        ("1:a", "1:a x:n", "1:a 2:b", (Add("x", {"title": "n"}, "1", True),)),
        ("1:a 2:b", "x:n 1:a 2:b", "1:a 2:b", (Add("x", {"title": "n"}, None, False),)),
        (
            "1:a 2:b",
            "1:a x:n y:m 2:b",
            "1:a 2:b",
            (Add("x", {"title": "n"}, "1", False), Add("y", {"title": "m"}, "x", False)),
        ),
        ("1:a 2:b", "2:b", "1:a 2:b 3:c", (Delete("1"),)),
        ("1:a 2:b 3:c", "3:c 1:a 2:b", "1:a 2:b 3:c", (Move("3", None),)),
        ("1:a 2:b 3:c", "2:b 3:c 1:a", "1:a 2:b 3:c 4:d", (Move("1", "3"),)),
        ("1:a 2:b", "1:a 2:b", "2:b", ()),
        ("", "", "1:a", ()),
    ],
)
def test_changes_of_the_file_are_proposed(base: str, theirs: str, ours: str, changes: tuple[Any, ...]) -> None:
    assert reconcile(sheet(base), sheet(theirs), sheet(ours), may_delete=True) == Changes(changes)


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "conflict"),
    [
        ("1:a", "1:x", "1:y", Conflict("1", "title", "x", "y")),
        ("1:a 2:b", "1:a 2:x", "1:a", Conflict("2", "task", {"title": "x"}, None, "deleted in the list")),
        (
            "1:a 2:b",
            "2:b",
            "1:y 2:b",
            Conflict("1", "task", None, {"title": "y"}, "deleted in the file, changed in the list"),
        ),
        ("1:a 2:b 3:c", "3:c 1:a 2:b", "2:b 1:a 3:c", Conflict("", "order", ["3", "1", "2"], ["2", "1", "3"])),
    ],
)
def test_changes_on_both_sides_conflict(base: str, theirs: str, ours: str, conflict: Conflict) -> None:
    assert reconcile(sheet(base), sheet(theirs), sheet(ours), may_delete=True) == Changes((), (conflict,))


def test_file_without_current_base_deletes_nothing() -> None:
    assert reconcile(sheet("1:a 2:b"), sheet("2:b"), sheet("1:a 2:b")) == Changes((), (), ("1",))


def test_without_base_only_new_tasks_are_added() -> None:
    found = reconcile(None, sheet("1:x x:n"), sheet("1:a 2:b"))
    assert found == Changes((Add("x", {"title": "n"}, "1", True),), (Conflict("1", "title", "x", "a"),))


def test_sets_and_objects_merge_by_their_parts() -> None:
    assert merge_values(frozenset("ab"), frozenset("bc"), frozenset("abd")) == (frozenset("bcd"), False)
    assert merge_values({"a": 1, "b": 1}, {"a": 2}, {"a": 1, "b": 1, "c": 3}) == ({"a": 2, "c": 3}, False)
    assert merge_values({"a": 1}, {"a": 2, "x": 1}, {"a": 3}) == ({"a": 3, "x": 1}, True)


def test_a_new_order_of_many_is_reached() -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(100):
        ours = {str(n): {"title": str(n)} for n in range(chance.randint(1, 12))}
        names = list(ours)
        chance.shuffle(names)
        theirs = {name: ours[name] for name in names}
        assert list(apply(reconcile(ours, theirs, ours).changes, ours)) == names, f"seed {seed}"


class World:
    """A list with its history, a file, and random changes to both."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.history: list[dict[str, Mapping[str, Any]]] = [{}]
        self.file: dict[str, dict[str, Any]] = {}
        self.base = 0
        self.written = 0
        self.next = 0
        self.words = 0
        self.reported: list[Conflict] = []
        self.kept: set[str] = set()

    @property
    def now(self) -> dict[str, Mapping[str, Any]]:
        return self.history[-1]

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}"

    def change(self, tasks: FieldsById, new: str) -> dict[str, dict[str, Any]]:
        """Make a random change."""
        changed = {task: dict(fields) for task, fields in tasks.items()}
        kind = self.chance.randrange(6)
        if kind == 0 or not changed:
            return {**changed, new: {"title": self.word(), "done": False}}
        task = self.chance.choice(list(changed))
        if kind == 1:
            del changed[task]
        elif kind == 2:
            changed[task]["done"] = not changed[task]["done"]
        elif kind == 3:
            names = list(changed)
            self.chance.shuffle(names)
            return {name: changed[name] for name in names}
        else:
            changed[task]["title"] = self.word()
        return changed

    def daemon_changes(self) -> None:
        self.next += 1
        self.history.append(dict(self.change(self.now, str(self.next))))

    def file_changes(self) -> None:
        self.file = self.change(self.file, self.word())

    def sync(self) -> None:
        """Apply the file's proposals, then write the file, as the mirror does."""
        base, before = self.history[self.base], self.now
        may_delete = self.base >= self.written and bool(self.file)
        found = reconcile(base, self.file, before, may_delete=may_delete)
        names: dict[str, str] = {}
        changes: list[Any] = []
        for change in found.changes:
            if isinstance(change, Add):
                self.next += 1
                names[change.ref] = str(self.next)
                changes.append(
                    Add(str(self.next), change.fields, names.get(change.after or "", change.after), change.at_end)
                )
            else:
                changes.append(change)
        after = apply(changes, before)
        self.check(base, before, after, found, names)
        self.reported += found.conflicts
        self.history.append(after)
        self.base = self.written = len(self.history) - 1
        self.file = {task: dict(fields) for task, fields in self.now.items()}

    def check(
        self, base: FieldsById, before: FieldsById, after: FieldsById, found: Changes, names: dict[str, str]
    ) -> None:
        """Check that no edit is lost without a conflict, and that no task is duplicated."""
        clashes = {(conflict.task, conflict.member) for conflict in found.conflicts}
        for task, fields in self.file.items():
            if task not in base:
                assert after[names[task]] == fields
                continue
            for member, value in fields.items():
                if value != base[task][member]:
                    taken = task in after and after[task][member] == value
                    assert taken or (task, member) in clashes or (task, "task") in clashes
        for task, fields in before.items():
            if task in after:
                for member, value in fields.items():
                    touched = task in self.file and task in base and self.file[task][member] != base[task][member]
                    assert after[task][member] == value or touched
            else:
                assert task in base
                assert task not in self.file
        assert set(after) - set(before) == set(names.values())
        for task in base:
            if task not in self.file and task in before and task in after:
                assert task in found.kept or (task, "task") in clashes


def test_interleaved_edits_are_neither_lost_nor_doubled() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in mostly_untraced(1_000):
        world = World(chance)
        for _ in range(chance.randint(5, 60)):
            chance.choice([world.daemon_changes, world.file_changes, world.file_changes, world.sync])()
        world.sync()
        world.sync()
        assert list(world.file.items()) == [(task, dict(fields)) for task, fields in world.now.items()]
        titles = [fields["title"] for fields in world.now.values()]
        assert len(set(titles)) == len(titles)

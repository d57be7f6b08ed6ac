"""What is known to be wrong with an open log: events that can't be read as they were written."""

from punchlistd.store.port import Damaged


class Damage:
    """The spoiled events that were met since a log was opened.

    Attributes:
        events: What is wrong with each, by its position.
        spoiled: Of each conversation the first of them.
        ownerless: Of those whose conversation can't be told, the conversations that may have lost them ("": any may).
    """

    def __init__(self) -> None:
        self.events: dict[int, Damaged] = {}
        self.spoiled: dict[str, Damaged] = {}
        self.ownerless: dict[int, frozenset[str]] = {}

    def note(self, damage: Damaged) -> Damaged:
        """Remember a spoiled event, under its conversation if that is known."""
        self.events[damage.seq] = damage
        if damage.conversation:
            self.spoiled.setdefault(damage.conversation, damage)
        return damage

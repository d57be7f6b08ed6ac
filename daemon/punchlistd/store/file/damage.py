"""Damage found in an open log: events whose bytes differ from those written."""

from punchlistd.store.port import Damaged


class Damage:
    """The damaged events found since a log was opened.

    Attributes:
        events: The damage of each event, by position.
        damaged: The first damaged event found in each conversation.
        ownerless: For events whose conversation is unknown, the conversations that may have lost them ("" means any).
    """

    def __init__(self) -> None:
        self.events: dict[int, Damaged] = {}
        self.damaged: dict[str, Damaged] = {}
        self.ownerless: dict[int, frozenset[str]] = {}

    def record(self, damage: Damaged) -> Damaged:
        """Record a damaged event by position, and by conversation if that is known. Return the damage."""
        self.events[damage.seq] = damage
        if damage.conversation:
            self.damaged.setdefault(damage.conversation, damage)
        return damage

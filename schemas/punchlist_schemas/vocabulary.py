"""The words of the contract for states and urgency. Light: a command line that only offers them loads nothing else."""

from typing import Literal

Status = Literal["pending", "in_progress", "paused", "completed", "failed"]
Priority = Literal["low", "normal", "high", "urgent"]

STATUSES: tuple[Status, ...] = ("pending", "in_progress", "paused", "completed", "failed")
FINISHED: frozenset[Status] = frozenset({"completed", "failed"})
"""A task in one of these states is no longer work to be done."""

PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high", "urgent")

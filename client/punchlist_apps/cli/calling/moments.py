"""Points in a list's history, as they are named on the command line."""

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import events
from punchlist_apps.cli.printing.failure import StateError


def version_at(context: Context, point: tuple[int | None, int]) -> int:
    """The version that a list was at: a version, or the newest one at a time in milliseconds since 1970 UTC.

    Raises:
        UsageError: The list was not there yet.
    """
    version, at = point
    if version is not None:
        return version
    found = 0
    for event in events(context):
        if event["at"] > at:
            break
        found = event["version"]
    if not found:
        raise StateError(
            f"the list {context.conversation} was not there yet at that time; punch log shows when it began"
        )
    return found

"""What a daemon is asked about lists on several machines; see `punchlistd.replication.sharing`."""

from typing import Protocol

from punchlist_schemas.params import Nothing
from punchlist_schemas.spaces import ListJoin, ListLeave, ListShare, SpaceAdd, SpacePlace, SpaceRepair
from punchlistd.engine.replies import Outcome


class Sharing(Protocol):
    """Answers the methods about spaces."""

    async def add_space(self, params: SpaceAdd) -> Outcome:
        """space.add."""
        ...

    async def list_spaces(self, params: Nothing) -> Outcome:
        """space.list."""
        ...

    async def remove_space(self, params: SpacePlace) -> Outcome:
        """space.remove."""
        ...

    async def repair_space(self, params: SpaceRepair) -> Outcome:
        """space.repair."""
        ...

    async def share(self, params: ListShare) -> Outcome:
        """list.share."""
        ...

    async def join(self, params: ListJoin) -> Outcome:
        """list.join."""
        ...

    async def leave(self, params: ListLeave) -> Outcome:
        """list.leave."""
        ...

"""Port for the methods about spaces and shared lists; implemented by `punchlistd.replication.sharing`."""

from typing import Protocol

from punchlist_schemas.params import Nothing
from punchlist_schemas.spaces import ListJoin, ListLeave, ListShare, SpaceAdd, SpacePlace, SpaceRepair
from punchlistd.engine.replies import Outcome


class Sharing(Protocol):
    """Answers the methods about spaces."""

    async def add_space(self, params: SpaceAdd) -> Outcome: ...

    async def list_spaces(self, params: Nothing) -> Outcome: ...

    async def remove_space(self, params: SpacePlace) -> Outcome: ...

    async def repair_space(self, params: SpaceRepair) -> Outcome: ...

    async def share(self, params: ListShare) -> Outcome: ...

    async def join(self, params: ListJoin) -> Outcome: ...

    async def leave(self, params: ListLeave) -> Outcome: ...

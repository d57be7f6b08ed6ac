"""Port for the methods about spaces and shared lists. `punchlistd.replication.sharing` implements it."""

from typing import Protocol

from punchlist_schemas.params import NoParams
from punchlist_schemas.spaces import ListJoin, ListLeave, ListShare, SpaceAdd, SpaceParams, SpaceRepair
from punchlistd.engine.replies import Outcome


class Sharing(Protocol):
    """Answers the methods about spaces."""

    async def add_space(self, params: SpaceAdd) -> Outcome: ...

    async def list_spaces(self, params: NoParams) -> Outcome: ...

    async def remove_space(self, params: SpaceParams) -> Outcome: ...

    async def repair_space(self, params: SpaceRepair) -> Outcome: ...

    async def share(self, params: ListShare) -> Outcome: ...

    async def join(self, params: ListJoin) -> Outcome: ...

    async def leave(self, params: ListLeave) -> Outcome: ...

"""For controllers of NodeSets whose pods have no job log server."""

from __future__ import annotations

from slinky_operator.slurm.connection.volume_query import Looker
from slinky_operator.slurm.pods.volume_room import Volumes


async def unasked(looker: Looker) -> Volumes:
    """Fail: no pod may be asked."""
    raise AssertionError(f"{looker.url} has no job log server")

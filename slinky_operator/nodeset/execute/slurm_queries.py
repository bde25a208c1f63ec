"""Asking Slurm itself, past the cache: few calls for many nodes, and no answer where there is none.

An error is never an answer here: whoever asks gets all of it or an exception, and does not delete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model import member
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import drains
from slurm_client import errors
from slurm_client.models import Job, Node

MAX_SINGLE_GETS: Final = 16
"""Up to this many nodes are asked for one by one (3 to 5 ms each); for more, the whole list is the cheaper call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Slurm has just said."""

    nodes: Mapping[str, Node | None]
    """Each name asked for; None for one that Slurm does not know."""
    jobs: Mapping[str, tuple[Job, ...]]
    """All jobs that hold nodes, by node."""

    def join(self, pod: Pod, owner: str) -> Member:
        """A pod whose node was asked for, with what Slurm has said of it; `owner` is the tag of its NodeSet."""
        return member.join(pod, self.nodes, self.jobs, owner)


async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
    """Ask for nodes; raises `SlurmError` if any of them could not be asked for."""
    if len(names) <= MAX_SINGLE_GETS:
        return await slurm.refresh(names)
    listed = {node.name: node for node in await slurm.client.nodes()}
    return {name: listed.get(name) for name in names}


async def jobs(slurm: Slurm, *, since: float = -math.inf) -> Mapping[str, tuple[Job, ...]]:
    """The jobs that hold nodes, by node, as new as plans need them; raises `SlurmError`.

    Parameters
    ----------
    since
        Seconds that are never set back: an answer asked for before that is none.
    """
    return drains.jobs_by_node(await slurm.shared_jobs(since))


async def jobs_now(slurm: Slurm) -> Mapping[str, tuple[Job, ...]]:
    """The jobs that hold nodes, by node, asked for now; raises `SlurmError`."""
    return drains.jobs_by_node(await slurm.fresh_jobs())


async def everything(slurm: Slurm, names: Collection[str]) -> Answer:
    """Ask for nodes, and then for jobs: what was drained when it was asked for can only have lost jobs since."""
    fresh = await nodes(slurm, names)
    return Answer(fresh, await jobs_now(slurm))


async def clock(slurm: Slurm) -> datetime:
    """Ask for Slurm's own time, by which it tells when drains began.

    Asked before anything else, it is never ahead of what the other answers show; raises `SlurmError`.
    """
    now = (await slurm.client.diag()).now
    if now is None:
        raise errors.DecodeError("Slurm's answer about itself says no time")
    return now


async def about_records(slurm: Slurm, names: Collection[str]) -> Answer:
    """Ask for jobs, and then for nodes: whoever drained a node without a pod by then is heard.

    A job that has started since is no matter: Slurm itself refuses to delete a record under it.
    """
    held = await jobs_now(slurm)
    return Answer(await nodes(slurm, names), held)


def reason_of(error: errors.SlurmError) -> Reason:
    """The condition's reason for a Slurm that did not answer."""
    match error:
        case errors.Unauthorized() | errors.PermissionDenied():
            return Reason.UNAUTHORIZED
        case errors.ControllerDown():
            return Reason.CONTROLLER_DOWN
        case _:
            return Reason.SLURM_UNREACHABLE

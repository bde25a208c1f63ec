"""Carries out a plan, and says what has become of it: what waits, and what was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.virtual_nodes.nodes import writes
from slinky_operator.virtual_nodes.nodes.model.outcome import Outcome
from slinky_operator.virtual_nodes.nodes.model.plan import Create, Patch, Plan, Remove
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Snapshot
from slinky_operator.virtual_nodes.nodes.observation import Memory

SETTLED_S: Final = 10.0
"""Seconds for which a Node has taken no more pods before it is removed: kube-scheduler sees that a little later."""


TOO_LARGE: Final = "request is too large"
"""What etcd says of an object that it does not take: the API server passes that on as a failure of its own (500)."""


class Leases(Protocol):
    """What is used of `leases.NodeLeases`."""

    def hurry(self) -> None:
        """Renew now."""
        ...


class Execution:
    """Carries out plans.

    Parameters
    ----------
    kube, recorder
        Write Nodes and Events.
    leases
        Renewed at once after a Node was made.
    clock
        Monotonic seconds.
    """

    def __init__(self, kube: writes.Kube, recorder: Recorder, leases: Leases, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._recorder = recorder
        self._leases = leases
        self._clock = clock

    async def carry_out(self, cluster: Object | None, snapshot: Snapshot, made: Plan, memory: Memory) -> Outcome:
        """Carry out a plan."""
        outcome = Outcome()
        for uid in memory.closed_at.keys() - {obj["metadata"]["uid"] for obj in snapshot.nodes}:
            del memory.closed_at[uid]
        for action in made.actions:
            try:
                match action:
                    case Create():
                        await self._create(cluster, action, outcome)
                    case Patch():
                        await writes.patch(self._kube, action)
                    case Remove():
                        await self._remove(cluster, action, memory, outcome)
            except (errors.Conflict, errors.NotFound):
                # The Node has changed meanwhile.
                outcome.overtaken = True
            except (errors.BadRequest, errors.Forbidden, errors.Invalid, errors.Unavailable) as error:
                if isinstance(error, errors.Unavailable) and TOO_LARGE not in error.message:
                    raise
                outcome.failures.append(_failed(error))
        return outcome

    async def _create(self, cluster: Object | None, action: Create, outcome: Outcome) -> None:
        name = str(action.body["metadata"]["name"])
        made = await writes.create(self._kube, action)
        if isinstance(made, writes.Foreign):
            told = f"Node {name} is there and {made.whose}, so the operator does not touch it"
            outcome.failures.append((Reason.NODE_NAME_TAKEN, f"{told}: choose another host, or remove that Node"))
        elif made:
            outcome.created += 1
            self._leases.hurry()
            if cluster is not None:
                self._recorder.normal(cluster, EventReason.VIRTUAL_NODE_CREATED, f"Node {name} was made")

    async def _remove(self, cluster: Object | None, action: Remove, memory: Memory, outcome: Outcome) -> None:
        metadata = action.obj["metadata"]
        since = memory.closed_at.setdefault(str(metadata["uid"]), self._clock())
        if self._clock() - since < SETTLED_S:
            outcome.waiting.append(f"Node {metadata['name']} takes no new pods and is to go ({action.why})")
            return
        waits = await writes.remove(self._kube, action)
        if waits:
            outcome.waiting.append(waits)
        elif cluster is not None:
            told = f"Node {metadata['name']} was removed: {action.why}"
            self._recorder.normal(cluster, EventReason.VIRTUAL_NODE_REMOVED, told)


def _failed(error: errors.KubeError) -> Problem:
    if isinstance(error, errors.Forbidden):
        told = f"{error.target}: {error.message}. The chart slurm-virtual-nodes gives the operator its rights on Nodes"
        return Reason.FORBIDDEN, told
    return Reason.REQUEST_REFUSED, f"{error.target}: {error.message}"

"""Carries out a plan in Slurm, and says what has become of it.

Before a node is changed Slurm is asked for it, and the rule of the plan is applied to the answer: the list may be old,
and another program may have put its own node in that place. Such an answer does not go into the cache, and is not asked
for jobs: slurmctld counts allocations again for lists alone, and shows a node by itself as it was (measured with
26.05). So nodes are deleted after Slurm was asked for all jobs that hold any. An order of which the answer is lost is
given again by a later pass: each may be given twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.bridge.features import is_ours
from slinky_operator.bridge.nodes.model.node_line import node_line
from slinky_operator.bridge.nodes.model.plan import (
    DRAINED,
    Action,
    Create,
    Delete,
    Drain,
    Plan,
    SetFeatures,
    Undrain,
    is_removable,
)
from slinky_operator.bridge.nodes.model.report import Outcome
from slinky_operator.bridge.nodes.model.snapshot import Snapshot
from slinky_operator.bridge.nodes.observation import Memory, Slurm
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.reconcile.text import cut, joined, named
from slinky_operator.slurm.nodes.reference_query import references
from slurm_client import errors
from slurm_client.models import Job, Node

logger = logging.getLogger(__name__)

REFUSED_S: Final = 30.0
"""Seconds until Slurm is asked again for what it has refused."""

LONGEST: Final = 300
"""Characters of what Slurm says."""


class Execution:
    """Carries out plans.

    Parameters
    ----------
    recorder
        Writes Events.
    clock
        Monotonic seconds.
    """

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._clock = clock

    async def carry_out(self, cluster: Object, snapshot: Snapshot, made: Plan, slurm: Slurm, memory: Memory) -> Outcome:
        """Carry out a plan.

        Raises
        ------
        SlurmError
            Slurm does not answer any more; nothing further was asked of it.
        """
        outcome = Outcome()
        is_early = self._clock() < memory.refused_until
        if is_early:
            outcome.failures += memory.refused.failures
            outcome.waiting += memory.refused.waiting
        for action in made.actions:
            if is_early and isinstance(action, Create | Delete):
                # Slurm has just refused one of these; drains do not wait for that.
                continue
            try:
                await self._act(cluster, action, snapshot.port, slurm, memory, outcome)
            except errors.Unreachable:
                raise
            except errors.SlurmError as error:
                logger.info("Slurm of %s refuses %s: %s", memory.uid, type(action).__name__, error)
                outcome.failures.append(_refused(error))
        if not is_early and (outcome.failures or outcome.waiting):
            memory.refused = outcome
            memory.refused_until = self._clock() + REFUSED_S
        if outcome.changed:
            slurm.hurry()
        return outcome

    async def _act(
        self, cluster: Object, action: Action, port: int, slurm: Slurm, memory: Memory, outcome: Outcome
    ) -> None:
        match action:
            case Undrain():
                await self._undrain(action, slurm, memory.mark, outcome)
            case SetFeatures():
                await self._set_features(action, slurm, memory.mark, outcome)
            case Drain():
                await self._drain(action, slurm, memory.mark, outcome)
            case Delete():
                await self._delete(cluster, action, slurm, memory, outcome)
            case Create():
                await self._create(cluster, action, port, slurm, memory, outcome)

    async def _undrain(self, action: Undrain, slurm: Slurm, mark: str, outcome: Outcome) -> None:
        def is_meant(node: Node) -> bool:
            return is_ours(node, mark) and node.is_drain and node.reason.startswith(DRAINED)

        names = await _still(slurm, action.names, is_meant)
        if names:
            await slurm.client.undrain_nodes(names)
            outcome.changed = True

    async def _drain(self, action: Drain, slurm: Slurm, mark: str, outcome: Outcome) -> None:
        names = await _still(slurm, action.names, lambda node: is_ours(node, mark) and not node.is_drain)
        if names:
            await slurm.client.drain_nodes(names, f"{DRAINED}{action.why}")
            outcome.changed = True

    async def _set_features(self, action: SetFeatures, slurm: Slurm, mark: str, outcome: Outcome) -> None:
        names = await _still(slurm, action.names, lambda node: is_ours(node, mark))
        if names:
            await slurm.client.update_nodes(names, features=action.features, active_features=action.features)
            outcome.changed = True

    async def _delete(self, cluster: Object, action: Delete, slurm: Slurm, memory: Memory, outcome: Outcome) -> None:
        names = await _still(slurm, action.names, lambda node: is_removable(node, memory.mark))
        if not names:
            return
        jobs = tuple(await slurm.fresh_jobs())
        held = held_nodes(jobs)
        names = tuple(name for name in names if name not in held)
        # slurmctld deletes a node that a waiting job requires, or a later reservation has, and both lose it (measured).
        named_by = await references(slurm, jobs, names) if names else {}
        for name, who in named_by.items():
            outcome.waiting.append(f"{name} stays in Slurm, as it is {joined(who)}")
        names = tuple(name for name in names if name not in named_by)
        if not names:
            return
        try:
            await slurm.client.delete_nodes(names, are_nodes=True)
        except errors.NotFound:
            # Somebody else has deleted one: which are left is read below.
            pass
        except errors.Conflict as error:
            outcome.waiting.append(
                f"Slurm does not delete all of {named(names)}, as a job or a reservation has one: "
                f"{cut(str(error), LONGEST)}"
            )
        left = await _shown(slurm, names)
        gone = [name for name in names if name not in left]
        for name in gone:
            _ = memory.tried.pop(name, None)
        outcome.changed = outcome.changed or bool(gone)
        if gone:
            text = f"deleted nodes of Slurm whose Kubernetes Nodes are gone or have another size: {named(gone)}"
            self._recorder.normal(cluster, EventReason.BRIDGE_NODES_DELETED, text)

    async def _create(
        self, cluster: Object, action: Create, port: int, slurm: Slurm, memory: Memory, outcome: Outcome
    ) -> None:
        """Make nodes one by one, some 5 ms each: slurmctld takes no two in a line with addresses."""
        made = []
        try:
            for name in action.names:
                line = node_line(name, action.size, action.features, port)
                # One that Slurm has already is left to a later pass, which says whose it is.
                with suppress(errors.Conflict):
                    await slurm.client.create_node(line)
                    made.append(name)
                    memory.tried[name] = action.size
                memory.made_at[name] = self._clock()
        finally:
            outcome.changed = True
            if made:
                text = f"Kubernetes Nodes are nodes of Slurm now, each with {action.size.shown}: {named(made)}"
                self._recorder.normal(cluster, EventReason.BRIDGE_NODES_CREATED, text)


def held_nodes(jobs: Iterable[Job]) -> frozenset[str]:
    """Nodes that a job holds: a suspended one leaves its node idle."""
    return frozenset(name for job in jobs if job.holds_nodes for name in job.nodes)


async def _still(slurm: Slurm, names: Iterable[str], is_meant: Callable[[Node], bool]) -> tuple[str, ...]:
    """Those of some nodes that Slurm, asked now, shows as the plan has seen them."""
    return tuple(name for name, node in (await _shown(slurm, names)).items() if is_meant(node))


async def _shown(slurm: Slurm, names: Iterable[str]) -> dict[str, Node]:
    """Those of some nodes that Slurm has now, by name; the picture that passes plan with has them then too.

    No list may ever tell of the deletion of a partition's last node (see `Watch.poke`).
    """
    return {name: node for name, node in (await slurm.refresh(names)).items() if node is not None}


def _refused(error: errors.SlurmError) -> tuple[Reason, str]:
    hint = ""
    if "node table is full" in str(error):
        hint = ": raise MaxNodeCount in slurm.conf (spec.maxNodeCount)"
    return Reason.REQUEST_REFUSED, f"Slurm refuses: {cut(str(error), LONGEST)}{hint}"

"""One pass over a Node: what the ConfigMap and Slurm want, a plan, one patch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Protocol

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.events import LONGEST_MESSAGE
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher, Warner
from slinky_operator.kube.resources import NODES, Resource
from slinky_operator.node_labels import slurm_nodes
from slinky_operator.node_labels.config_format import MOST_LABELS
from slinky_operator.node_labels.model import LONGEST_NAME, WantedLabels, found_on
from slinky_operator.node_labels.plan import plan
from slinky_operator.node_labels.slurm_labels import slurm_labels
from slinky_operator.reconcile.reconciler import Postponed, Reconciler
from slinky_operator.reconcile.text import cut, named
from slinky_operator.runtime.controller import Result

OVERTAKEN_S: Final = 0.5
"""Seconds until the pass after one whose Node has changed meanwhile."""

MOST_REPORTED: Final = 1_000
"""Names of Slurm that are remembered as reported, since they make no label."""

LONGEST_REPORTED: Final = 100
"""Characters of such a name, which has its kind before it."""

MOST_SHOWN: Final = 20
"""Such names in one Event."""

LEFT_OUT: Final = (
    f"names of labels have at most {LONGEST_NAME} letters, digits, '-', '_' and '.', and a Node gets at most "
    f"{MOST_LABELS} of Slurm"
)


class Kube(StatusPatcher, Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        """Patch an object that has not changed since."""
        ...


class Config(Protocol):
    """What is used of `config_map.LabelConfig`."""

    async def read(self) -> Mapping[str, WantedLabels] | None:
        """What is wanted, by the name of the Node; None if that is not known."""
        ...

    def warn(self, reason: str, message: str) -> None:
        """Emit a Warning Event on the ConfigMap."""
        ...

    def mention(self, reason: str, message: str) -> None:
        """Emit a Normal Event on the ConfigMap."""
        ...


class SlurmRecords(Protocol):
    """What is used of `slurm_nodes.SlurmNodes`."""

    def on(self, host: str) -> slurm_nodes.Records:
        """What Slurm shows of the nodes on a Kubernetes Node."""
        ...


class NodeLabelsReconciler(Reconciler):
    """Writes labels and extended resources of Nodes.

    Parameters
    ----------
    kube, recorder
        Write Nodes and Events.
    nodes
        The cache of Nodes, pruned by `reconcile.cached.indexes.prune_node`.
    config
        The ConfigMap.
    records
        What Slurm shows; None if no labels are made from it.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Warner,
        nodes: Store,
        config: Config,
        records: SlurmRecords | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(NODES, nodes, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._config = config
        self._records = records
        self._left_out: set[str] = set()
        self._told: dict[str, tuple[str, ...]] = {}
        """What was reported as somebody else's, by the name of the Node."""

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report on the ConfigMap that a Node cannot be written: conditions of a Node are the kubelet's."""
        if isinstance(error, errors.Forbidden | errors.Invalid):
            self._config.warn(Reason.REQUEST_REFUSED, f"cannot write labels of Node {key[1]}: {error}")

    @override
    async def gone(self, key: Key) -> Result:
        self._told.pop(key[1], None)
        return Result()

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        name, metadata = key[1], obj["metadata"]
        # A change of the ConfigMap brings a pass over every Node, most of which write nothing and so would not wait.
        await asyncio.sleep(0)
        configured = await self._config.read()
        live, complete = self._live(name)
        own = (configured or {}).get(name, WantedLabels())
        wanted = replace(own, labels={**live, **own.labels})
        planned = plan(wanted, found_on(obj), keeps=configured is None or not complete)
        self._report(obj, planned.foreign)
        patch = planned.patch()
        if patch is None:
            return Result()
        try:
            # Through the status, since capacity is there: the API server takes labels and annotations with it, and
            # the operator needs no right to taint or cordon.
            _ = await self._kube.merge_patch(
                NODES,
                name,
                patch,
                subresource="status",
                resource_version=metadata["resourceVersion"],
                uid=metadata["uid"],
            )
        except errors.Conflict:
            return Postponed(OVERTAKEN_S)
        except errors.NotFound:
            return await self.gone(key)
        return Result()

    def _live(self, name: str) -> tuple[Mapping[str, str], bool]:
        """Labels by what Slurm shows, and whether that is all."""
        if self._records is None:
            return {}, True
        records = self._records.on(name)
        found = slurm_labels(records.nodes)
        new = self._not_reported(found.left_out)
        if new:
            before, after = "no label is made for ", f": {LEFT_OUT}"
            shown = cut(named(new, MOST_SHOWN), LONGEST_MESSAGE - len(before) - len(after))
            self._config.mention(EventReason.NODE_LABELS_LEFT_OUT, f"{before}{shown}{after}")
        return found.labels, records.complete

    def _not_reported(self, left_out: Sequence[str]) -> list[str]:
        """The names that are to be reported now, as long as there is room to remember that."""
        new = []
        for one in left_out:
            if len(self._left_out) >= MOST_REPORTED:
                break
            name = cut(one[: LONGEST_REPORTED + 1], LONGEST_REPORTED)
            if name not in self._left_out:
                self._left_out.add(name)
                new.append(name)
        return new

    def _report(self, obj: Object, foreign: tuple[str, ...]) -> None:
        name = obj["metadata"]["name"]
        if foreign and self._told.get(name) != foreign:
            told = "set by someone else to a value other than the operator's, and not changed"
            self._recorder.warning(obj, EventReason.NODE_LABELS_KEPT, f"{named(foreign)}: {told}")
        self._told[name] = foreign

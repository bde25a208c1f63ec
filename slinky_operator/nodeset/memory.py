"""What is remembered of a NodeSet between passes; all of it may be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason, is_true
from slinky_operator.nodeset.health import check_trial
from slinky_operator.nodeset.model import ssh_keys
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.model.ssh_keys import MissingKeys, Wanted
from slinky_operator.nodeset.observation.observe import OLDEST_PICTURE
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import kubernetes_features
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.slurm.connection.contact import ContactState

SETTLING: Final = 30.0
"""Seconds to wait for Slurm's first answer before a NodeSet reports that there is none."""

STATE_WRITES_A_SECOND: Final = 20
"""Pods of one NodeSet on which states of nodes are written in a second, in the long run."""

STATE_WRITES_AT_ONCE: Final = 100
"""The same in one pass."""

NODES_AGAIN: Final = 10.0
"""Seconds between two questions for nodes whose slurmds are late to register."""

_UNSETTLED: Final = frozenset({Reason.CONNECTING, Reason.CLUSTER_NOT_READY})


@dataclass(slots=True)
class Memory:
    """What is remembered of one NodeSet."""

    ended: dict[str, datetime | None] = field(default_factory=dict)
    """Nodes whose pods are gone, all of whose containers had ended, and when slurmd did by its kubelet."""
    told_slurm_at: float | None = None
    """Clock of the last write to Slurm that its cache may not show; until it does, nothing is counted."""
    hurried_for: float | None = None
    """The write for which a refresh was requested already: another request would only cause a second refresh."""

    announced: dict[str, frozenset[str]] | None = None
    """Troubles reported in an Event, by reason, with their pods and nodes; None after a start."""
    blind_since: float | None = None
    """Clock of the first pass in a row in which Slurm had not answered yet."""

    registered: frozenset[str] = frozenset()
    """Uids of the pods that the status names as registered, as last written: the cache may not show it yet."""

    orphans: dict[str, float] = field(default_factory=dict)
    """Nodes without a pod whose names may be used again, and since when that is known, in monotonic seconds."""

    gone: dict[str, float] = field(default_factory=dict)
    """Nodes whose pods are gone, and since when that is known, in monotonic seconds; until Slurm's nodes are listed."""

    recorded: RecordedEnds = RecordedEnds()  # noqa: RUF009 - frozen
    """What slurmdbd has said of jobs that delay drains."""

    steps: Mapping[str, StepsSeen] = field(default_factory=dict)
    """What slurmds have shown of the steps on their nodes, by uid of the pod."""

    rooms: Mapping[str, RoomSeen] = field(default_factory=dict)
    """What job log servers have said of their volumes, by volume."""

    checks: StoredChecks | None = None
    """Which nodes run which health checks, as last read or written."""
    checks_at: float = -math.inf
    """When that was, in monotonic seconds."""

    named_keys: Wanted = ()
    """Secrets that `spec.ssh` named when they were last looked for."""
    missing_keys: tuple[MissingKeys, ...] = ()
    """What was missing of them."""
    keys_at: float = -math.inf
    """When that was, in monotonic seconds."""

    refused: dict[str, tuple[float, RefusedTraits]] = field(default_factory=dict)
    """Traits of nodes that Slurm has not taken, and when that was, in monotonic seconds."""

    states_shown: int = 0
    """Writes of states of nodes that are not made up for by time yet, at `states_shown_at`."""
    states_shown_at: float = -math.inf

    asked_for_nodes_at: float = -math.inf
    """When nodes were last asked for singly, in monotonic seconds."""

    hurried_for_gone: float = -math.inf
    """The latest of these times for which a list was requested already."""

    def note(self, told_slurm_at: float | None, recorded: RecordedEnds | None) -> None:
        """Remember what a pass has written to Slurm and learnt from slurmdbd; None for nothing."""
        if told_slurm_at is not None:
            self.told_slurm_at = told_slurm_at
        if recorded is not None:
            self.recorded = recorded

    def note_checks(self, stored: StoredChecks | None, now: float) -> None:
        """Remember the ConfigMap with health checks, if it was read or written, by a monotonic clock."""
        if stored is not None:
            self.checks, self.checks_at = stored, now

    def note_traits(self, found: Mapping[str, RefusedTraits | None], now: float) -> None:
        """Remember what Slurm has not taken of nodes, by a monotonic clock; None for what it has taken."""
        kept = {name: one for name, one in self.refused.items() if name not in found}
        self.refused = kept | {name: (now, one) for name, one in found.items() if one is not None}

    def refused_traits(self, now: float) -> Mapping[str, RefusedTraits]:
        """What Slurm would not take now, by a monotonic clock."""
        self.refused = {name: one for name, one in self.refused.items() if now - one[0] < kubernetes_features.AGAIN}
        return {name: one for name, (_, one) in self.refused.items()}

    def are_checks_old(self, now: float) -> bool:
        """Whether it was read so long ago that it is to be read again."""
        return now - self.checks_at >= check_trial.AGAIN

    def needs_keys(self, named: Wanted, now: float) -> bool:
        """Whether to look for the Secrets that `spec.ssh` names now, by a monotonic clock."""
        return named != self.named_keys or (bool(named) and now - self.keys_at >= ssh_keys.AGAIN)

    def note_keys(self, named: Wanted, missing: tuple[MissingKeys, ...] | None, now: float) -> None:
        """Remember what is missing of these Secrets, by a monotonic clock; None if nobody says so now."""
        if missing is None:
            missing = self.missing_keys if named == self.named_keys else ()
        self.named_keys, self.missing_keys, self.keys_at = named, missing, now

    def state_writes(self, now: float) -> int:
        """How many pods may get other conditions about states of their nodes now, by a monotonic clock."""
        if now > self.states_shown_at:
            made_up = int(min(STATE_WRITES_AT_ONCE, (now - self.states_shown_at) * STATE_WRITES_A_SECOND))
            if made_up:
                self.states_shown, self.states_shown_at = max(0, self.states_shown - made_up), now
        left = STATE_WRITES_AT_ONCE - self.states_shown
        # Otherwise a few would be written in each of many passes.
        return left if left >= STATE_WRITES_A_SECOND else 0

    def note_state_writes(self, count: int) -> None:
        """Remember how many were written."""
        self.states_shown += count

    def note_steps(self, seen: Mapping[str, StepsSeen], pods: Iterable[Pod]) -> None:
        """Remember what slurmds have shown in a pass; that of pods that are gone is dropped."""
        known = {**self.steps, **seen}
        self.steps = {pod.uid: known[pod.uid] for pod in pods if pod.uid in known}

    def note_rooms(self, seen: Mapping[str, RoomSeen], pods: Iterable[Pod]) -> None:
        """Remember what job log servers have said in a pass; that of volumes that no pod mounts is dropped."""
        known = {**self.rooms, **seen}
        mounted = {output_room.volume_of(pod) for pod in pods}
        self.rooms = {volume: one for volume, one in known.items() if volume in mounted}

    def may_ask_for_nodes(self, now: float) -> bool:
        """Whether nodes may be asked for singly now, by a monotonic clock; notes that they are."""
        if now - self.asked_for_nodes_at < NODES_AGAIN:
            return False
        self.asked_for_nodes_at = now
        return True

    def needs_list(self, awaited: Collection[str]) -> bool:
        """Whether to request a list of nodes for these names now: once for each pod that has gone."""
        latest = max((self.gone[name] for name in awaited), default=-math.inf)
        if latest <= self.hurried_for_gone:
            return False
        self.hurried_for_gone = latest
        return True

    def unlisted(self, slurm: Slurm | None) -> frozenset[str]:
        """Nodes whose pods have gone since Slurm was asked for the nodes that are cached: these may lack their records.

        Parameters
        ----------
        slurm
            The Slurm of the Cluster; None if it is not reachable.
        """
        if slurm is not None and slurm.nodes_at is not None:
            asked = slurm.nodes_at
            self.gone = {name: since for name, since in self.gone.items() if since >= asked}
        return frozenset(self.gone)

    def orphaned_since(self, names: Collection[str], now: float) -> float:
        """Since when all of these nodes are known to have no pod; minus infinity if there are none.

        No job starts on a node without a slurmd: Slurm's answers about jobs since then hold.
        """
        self.orphans = {name: self.orphans.get(name, now) for name in names}
        return max(self.orphans.values(), default=-math.inf)

    def settles_in(self, snapshot: Snapshot, clock: Callable[[], float]) -> float | None:
        """Seconds for which the stored status is kept although Slurm has not answered yet; None if it is not kept.

        After a start of the operator each Slurm is queried for the first time. A NodeSet whose status shows Slurm as
        reachable would otherwise become unreachable, and reachable again, with new times for its conditions.
        """
        if snapshot.slurm.readable or snapshot.slurm.reason not in _UNSETTLED:
            self.blind_since = None
            return None
        if not is_true(snapshot.nodeset.status.conditions, NodeSetCondition.SLURM_REACHABLE):
            return None
        if self.blind_since is None:
            self.blind_since = clock()
        left = self.blind_since + SETTLING - clock()
        return left if left > 0 else None

    def follow_write(self, slurm: Slurm | None) -> float | None:
        """Check whether the cached nodes show the last write; request a refresh, once, if they do not.

        Parameters
        ----------
        slurm
            The Slurm of the Cluster; None if it is not reachable.

        Returns
        -------
        float | None
            Clock of the write that a reachable Slurm's cache does not show yet; None if there is none.
        """
        if self.told_slurm_at is None or slurm is None or slurm.contact.state is not ContactState.READY:
            return None
        if slurm.nodes_at is not None and slurm.nodes_at > self.told_slurm_at:
            self.told_slurm_at = None
        elif self.hurried_for != self.told_slurm_at:
            self.hurried_for = self.told_slurm_at
            slurm.hurry()
        return self.told_slurm_at

    @staticmethod
    def is_awaited(write: float | None, now: float) -> bool:
        """Whether no pass runs before a write shows: a count made too early would drain one node more than wanted.

        Parameters
        ----------
        write
            The result of `follow_write`.
        now
            The same clock.
        """
        return write is not None and now - write < OLDEST_PICTURE

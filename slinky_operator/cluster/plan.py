"""The plan for a Cluster: snapshot and time in; actions, status and requeue time out. No I/O.

A plan is a list of steps, carried out in order, which is the order of the actions: finalizers before children, keys
before daemons, Services before what refers to them. A pass that has nothing to change returns no action.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.conditions import ClusterCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_operator.cluster.actions import Action, Disconnect
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part
from slinky_operator.cluster.parts.accounting.part import ACCOUNTING, ask_accounting, keep_accounting
from slinky_operator.cluster.parts.accounts.part import ACCOUNTS, keep_accounts
from slinky_operator.cluster.parts.bridge.part import BRIDGE_PART, BridgeSwitch
from slinky_operator.cluster.parts.claims.part import CLAIMS
from slinky_operator.cluster.parts.claims.step import feasible, grow_claims
from slinky_operator.cluster.parts.configuration.part import CONFIGURATION, LEFT_OUT, Configuration
from slinky_operator.cluster.parts.configuration.step import roll_out, tell_of_configuration
from slinky_operator.cluster.parts.connection.part import CONNECTION, connect, count_jobs, jobs_due, tell_of_jobs
from slinky_operator.cluster.parts.connection.slurm_connection import Pace
from slinky_operator.cluster.parts.deletion.jobs_left import ask_jobs_left, jobs_left
from slinky_operator.cluster.parts.deletion.part import (
    DELETION,
    LOOK_AGAIN_FOR_PODS,
    set_finalizer,
    slurmd_pods_left,
    tear_down,
)
from slinky_operator.cluster.parts.exporter.part import EXPORTER_PART, keep_exporter
from slinky_operator.cluster.parts.external_nodes.step import tell_outside
from slinky_operator.cluster.parts.identity.part import IDENTITY, ask_directory, keep_users
from slinky_operator.cluster.parts.job_counts.part import JOB_COUNTS
from slinky_operator.cluster.parts.job_logs_key.part import JOB_LOGS_KEY, keep_job_logs_key
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.key_guard import guarded
from slinky_operator.cluster.parts.keys.part import KEYS, trouble
from slinky_operator.cluster.parts.keys.sets import key_form
from slinky_operator.cluster.parts.keys.step import adopt_keys, keep_keys, load_changed_key, load_key_set, read_keys
from slinky_operator.cluster.parts.maintenance.part import MAINTENANCE, keep_reservations
from slinky_operator.cluster.parts.monitoring.step import keep_monitors
from slinky_operator.cluster.parts.nodes.part import NODES
from slinky_operator.cluster.parts.slurmctld.part import SLURMCTLD_PART
from slinky_operator.cluster.parts.upgrade.part import UPGRADE
from slinky_operator.cluster.parts.virtual_nodes.part import VIRTUAL_NODES, VirtualNodesSwitch
from slinky_operator.cluster.parts.volumes.part import VOLUMES, ask_volumes
from slinky_operator.cluster.parts.workloads.part import WORKLOADS
from slinky_operator.cluster.parts.workloads.step import (
    ask_claim,
    keep_images,
    remove_unwanted,
    try_replacement,
    write_daemons,
    write_shared,
)
from slinky_operator.cluster.pass_state import PassState, Step
from slinky_operator.cluster.status import events
from slinky_operator.cluster.status.status import COUNTS, status_of
from slinky_operator.kube.objects import Object

MANAGED: Final[tuple[Step, ...]] = (
    set_finalizer,
    adopt_keys,
    keep_keys,
    keep_job_logs_key,
    keep_images,
    keep_accounting,
    try_replacement,
    roll_out,
    keep_users,
    write_daemons,
    grow_claims,
    remove_unwanted,
    keep_exporter,
    keep_monitors,
    tell_outside,
    connect,
    load_changed_key,
    load_key_set,
    count_jobs,
    tell_of_jobs,
    ask_accounting,
    ask_directory,
    ask_volumes,
    keep_accounts,
    keep_reservations,
    ask_claim,
    tell_of_configuration,
    ask_jobs_left,
)
"""Steps for a Cluster whose daemons the operator runs."""

ELSEWHERE: Final[tuple[Step, ...]] = (
    read_keys,
    keep_job_logs_key,
    write_shared,
    keep_exporter,
    keep_monitors,
    connect,
    load_changed_key,
    count_jobs,
    tell_of_jobs,
)
"""Steps for a Cluster whose daemons are external."""

PARTS: Final[tuple[Part, ...]] = (
    KEYS,
    WORKLOADS,
    *CONNECTION,
    CONFIGURATION,
    IDENTITY,
    UPGRADE,
    SLURMCTLD_PART,
    CLAIMS,
    LEFT_OUT,
    VOLUMES,
    ACCOUNTING,
    ACCOUNTS,
    EXPORTER_PART,
    NODES,
    *MAINTENANCE,
    JOB_COUNTS,
    JOB_LOGS_KEY,
    *VIRTUAL_NODES,
    BRIDGE_PART,
    DELETION,
)
"""All parts that read Secrets or show something; problems are reported in this order."""

COUNTS_EVERY: Final = 1.0
"""Minimum seconds between two writes of the status that change only counts."""

LOOK_AGAIN: Final = 60.0
"""Seconds until the next pass if nothing happens: Secrets are read again by then."""

LOOK_AGAIN_IN_TROUBLE: Final = 3.0
"""The same in trouble: of a Slurm elsewhere that is not ready, less and less often."""

TROUBLED_SHARE: Final = 0.1
"""Part of the time for which a Slurm elsewhere has not been ready that may pass until the next look."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a pass."""

    actions: tuple[Action, ...]
    status: ClusterStatus | None
    """The new status; `None` if it is not to be written."""

    wake_up: float | None
    """Seconds until the next pass at the latest."""

    counts_only: bool = False
    """Whether the status differs in counts only and was written a moment ago: it can wait."""

    keys: Keys = Keys()  # noqa: RUF009 - frozen
    """What is known of the keys, to be remembered."""

    runs: Object | None = None
    """The ConfigMap with what slurmctld runs, to be remembered."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The operator's settings."""

    images: Images
    pace: Pace = Pace()  # noqa: RUF009 - frozen
    off: tuple[str, ...] = ()
    """Fields of Clusters that have no effect with these settings."""


def plan(snapshot: Snapshot, environment: Environment, now: float, wall: datetime) -> Plan:
    """Plan one pass.

    Parameters
    ----------
    now
        Monotonic seconds.
    wall
        The time of day, for conditions.
    """
    cluster = snapshot.cluster
    if cluster.deleting and cluster.spec.external:
        return Plan((Disconnect(),), None, None)
    if cluster.deleting and not slurmd_pods_left(snapshot, now) and not jobs_left(snapshot, now):
        return Plan((tear_down(snapshot),), None, None)
    snapshot = key_form.settled(snapshot)
    snapshot, claims = feasible(snapshot)
    state = PassState(snapshot, environment.images, now, wall)
    switches = (
        VirtualNodesSwitch("jobs.virtualNodes" not in environment.off),
        BridgeSwitch("jobs.bridge" not in environment.off),
    )
    for known in (environment.pace, claims, *switches):
        state.note(known)
    if cluster.spec.external:
        actions = [action for step in ELSEWHERE for action in step(state)]
        return _finish(state, actions, environment.off)
    actions = [action for step in MANAGED for action in step(state)]
    return _finish(state, guarded(actions, snapshot, state.found(Keys), now), environment.off)


def secrets(cluster: Cluster, node_sets: Iterable[Object]) -> tuple[str, ...]:
    """Names of the Secrets that the parts of a Cluster read.

    Parameters
    ----------
    node_sets
        Those of the Cluster, as the API server has them.
    """
    known = tuple(node_sets)
    return tuple(dict.fromkeys(name for part in PARTS for name in part.secrets(cluster, known)))


def _finish(state: PassState, actions: list[Action], off: tuple[str, ...]) -> Plan:
    """The plan, with the resulting status and requeue time."""
    snapshot, now = state.snapshot, state.now
    wanted = status_of(state, PARTS, off)
    stored = snapshot.cluster.status.to_dict()
    new = wanted.to_dict()
    differing = {key for key in {*stored, *new} if stored.get(key) != new.get(key)}
    since = now - snapshot.memory.counts_written_at
    waiting = bool(differing) and differing <= set(COUNTS) and since < COUNTS_EVERY
    if "conditions" in differing:
        actions = [*actions, *events.of_conditions(snapshot, wanted)]
    due = list(state.due)
    if waiting:
        due.append(COUNTS_EVERY - since)
    if snapshot.cluster.deleting:
        due.append(LOOK_AGAIN_FOR_PODS)
    up = snapshot.slurm_answers
    well = up and not state.found(Keys).troubled and trouble(state) is None
    due.append(LOOK_AGAIN if well else _look_again(state))
    if up:
        due.append(jobs_due(snapshot, now))
    rollout = state.found(Configuration).rollout
    runs = None if rollout is None else rollout.runs
    return Plan(tuple(actions), wanted, min(due), waiting, state.found(Keys), runs)


def _look_again(state: PassState) -> float:
    """Seconds until the next look at a Cluster in trouble; events come sooner."""
    cluster = state.snapshot.cluster
    ready = find(cluster.status.conditions, ClusterCondition.READY)
    if not cluster.spec.external or ready is None or ready.status == "True" or ready.last_transition_time is None:
        return LOOK_AGAIN_IN_TROUBLE
    troubled = (state.wall - ready.last_transition_time).total_seconds()
    return min(LOOK_AGAIN, max(LOOK_AGAIN_IN_TROUBLE, TROUBLED_SHARE * troubled))

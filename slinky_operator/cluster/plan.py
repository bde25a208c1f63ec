"""What is to be done about a Cluster: snapshot and time in; actions, status and wake-up time out. No I/O.

Order matters and is the order of the list: finalizers before children, keys before daemons, Services before what they
name. A pass that finds everything as it should be returns no action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster_status import ClusterStatus
from slinky_operator.cluster import slurm_connection, succession
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    AskClaim,
    Connect,
    CountJobs,
    Disconnect,
    Hurry,
    Reload,
    SetFinalizer,
    TearDown,
    Write,
)
from slinky_operator.cluster.components import Images, default_images, shared_objects, slurmctld, slurmrestd
from slinky_operator.cluster.components.exit_messages import stuck
from slinky_operator.cluster.config import rollout
from slinky_operator.cluster.keys import key_guard, key_loading
from slinky_operator.cluster.keys import lifecycle as key_rules
from slinky_operator.cluster.keys.lifecycle import Keys
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.preflight.replacement import Replacement, Stage, as_it_runs, replacement, same_pod
from slinky_operator.cluster.report import daemon_pods, events
from slinky_operator.cluster.report.conditions import Findings
from slinky_operator.cluster.report.status import COUNTS, status_of
from slinky_operator.cluster.slurm_connection import Missing, Pace
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from slinky_operator.reconcile.children import Child, has_settled, is_current
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ContactState, Trouble
from slinky_operator.slurm.conf import restart_keys
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.templates import RefusedFragment

COUNT_JOBS_EVERY: Final = 5.0
"""Seconds between two counts of jobs, when they are cheap."""

COUNT_JOBS_SHARE: Final = 0.02
"""Part of the time that counting jobs may take."""

COUNTS_EVERY: Final = 1.0
"""Seconds between two writes of the status for the sake of counts alone."""

TRY_AGAIN: Final = 60.0
"""Seconds until an object that the API server refused is tried again though nothing has changed here."""

LOOK_AGAIN: Final = 60.0
"""Seconds until the next pass if nothing happens: Secrets are read again by then."""

LOOK_AGAIN_IN_TROUBLE: Final = 3.0

LOOK_AGAIN_FOR_PODS: Final = 10.0
"""Seconds until the API server is asked again for slurmd pods of a Cluster that is being deleted."""

ASK_CLAIM_EVERY: Final = 5.0
"""Seconds between two looks at the claim of a slurmctld without a pod."""

_RESOURCES: Final[dict[str, Resource]] = {
    resource.kind: resource for resource in (DEPLOYMENTS, STATEFULSETS, SERVICES, CONFIGMAPS, PODDISRUPTIONBUDGETS)
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass is to do."""

    actions: tuple[Action, ...]
    status: ClusterStatus | None
    """As it is to be; `None` where it shall not be written."""

    wake_up: float | None
    """Seconds until the next pass at the latest."""

    counts_only: bool = False
    """Whether the status differs in counts alone and was written a moment ago: it can wait."""

    keys: Keys = Keys()  # noqa: RUF009 - frozen
    """What is known of the keys, to be remembered."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What comes from the operator's settings."""

    images: Images
    pace: Pace = Pace()  # noqa: RUF009 - frozen


def plan(snapshot: Snapshot, environment: Environment, now: float, wall: datetime) -> Plan:
    """Plan one pass.

    Parameters
    ----------
    now
        Monotonic seconds.
    wall
        The time of day, for conditions.
    """
    if snapshot.cluster.spec.external:
        return _external(snapshot, environment, now, wall)
    if snapshot.cluster.deleting and not _left(snapshot, now):
        return _teardown(snapshot)
    return _managed(snapshot, environment, now, wall)


def _external(snapshot: Snapshot, environment: Environment, now: float, wall: datetime) -> Plan:
    cluster = snapshot.cluster
    if cluster.deleting:
        return Plan((Disconnect(),), None, None)
    keys = key_rules.look_elsewhere(snapshot)
    wanted = slurm_connection.connect(snapshot, keys.candidates, environment.pace)
    step = key_loading.load(snapshot, keys, now, settled=False)
    actions = [
        *_writes(snapshot, _for_node_sets(snapshot), now),
        *_connect(snapshot, wanted),
        *step.actions,
        *_count(snapshot, now),
    ]
    missing = wanted if isinstance(wanted, Missing) else None
    key = slurm_connection.foreign_key_trouble(snapshot) or keys.trouble
    findings = Findings(None, missing, key, _refused(snapshot, _for_node_sets(snapshot)))
    return replace(_finish(snapshot, actions, findings, step.wake_up, now, wall), keys=keys)


def _managed(snapshot: Snapshot, environment: Environment, now: float, wall: datetime) -> Plan:
    cluster = snapshot.cluster
    actions: list[Action] = []
    if labels.FINALIZER_CLUSTER not in cluster.metadata.finalizers and not cluster.deleting:
        actions.append(SetFinalizer(CLUSTERS, snapshot.raw, labels.FINALIZER_CLUSTER, present=True))
    keys = key_rules.look(snapshot, now, wall)
    actions += _left_keys(snapshot)
    actions += keys.actions
    wanted = slurm_connection.connect(snapshot, keys.candidates, environment.pace)
    stored = (snapshot.children.get(("ConfigMap", naming.config(cluster.name))) or {}).get("data")
    images = default_images.kept(snapshot, environment.images)
    swap = _swap(snapshot, images, keys, (stored or {}).get(SLURM_CONF), now, wall)
    actions += swap.actions
    first = swap.message if swap.stage is Stage.TRYING else ""
    config = rollout.plan_rollout(snapshot, images, now, wall, first)
    config = _withheld(config, snapshot, keys, now)
    actions += [one for one in config.actions if not _denied(snapshot, one, now)]
    daemons, templates = _daemons(snapshot, images, keys, (stored or config.rendered.files).get(SLURM_CONF, ""))
    if swap.stage is not Stage.FREE:
        daemons = [_kept(snapshot, one) for one in daemons]
    missing = wanted if isinstance(wanted, Missing) else None
    has_config = ("ConfigMap", naming.config(cluster.name)) in snapshot.children
    if not config.rendered.problems or has_config:
        # Pods whose Secrets are missing would wait for them in ever longer pauses; and what daemons run with is
        # written down before the first of them is.
        held = set() if keys.mountable else {naming.controller(cluster.name)}
        known = snapshot.children
        actions += [
            one
            for one in _writes(snapshot, daemons, now)
            if one.child.resource is not STATEFULSETS or one.child.name not in held or one.child.key in known
        ]
    actions += _connect(snapshot, wanted)
    step = key_loading.load(snapshot, keys, now, settled=rollout.is_live(snapshot) and keys.slurm is None)
    actions += step.actions
    actions += [*_count(snapshot, now), *_ask_claim(snapshot, now)]
    actions += events.of_configuration(snapshot, config)
    actions = key_guard.guarded(actions, snapshot, keys, now)
    waits = f"slurmd pods are left: {named(_left(snapshot, now))}" if cluster.deleting else ""
    slurm = snapshot.slurm
    answers = slurm is not None and slurm.contact.state is ContactState.READY
    starting = not config.status.applied_hash and not answers
    findings = Findings(config, missing, keys.trouble, (*templates, *_refused(snapshot, daemons)), waits, starting)
    findings = replace(findings, replacement=swap, stuck=daemon_pods.troubles(snapshot, wall))
    due = [one for one in (config.wake_up, swap.wake_up, step.wake_up) if one is not None]
    findings = replace(findings, slurmd_image=images.slurmd)
    return replace(_finish(snapshot, actions, findings, min(due, default=None), now, wall), keys=keys)


def _withheld(config: rollout.Rollout, snapshot: Snapshot, keys: Keys, now: float) -> rollout.Rollout:
    """The configuration with what keeps its next step from being taken."""
    for one in config.actions:
        if isinstance(one, Write) and _denied(snapshot, one, now):
            kind, name = one.child.key
            words = f"{kind} {name} cannot be written: {snapshot.memory.denied[one.child.key].why}"
            return replace(config, applied=False, reason=Reason.CHILD_REFUSED, message=words)
    if keys.slurm is not None and any(isinstance(one, Reload) for one in config.actions):
        return replace(config, applied=False, reason=keys.slurm.reason, message=keys.slurm.message)
    return config


def _left(snapshot: Snapshot, now: float) -> tuple[str, ...]:
    """Pods of NodeSets: those that the cache shows, or the API server has shown where labels are lost."""
    names, at = snapshot.memory.left
    return snapshot.slurmd_pods or (names if now - at < LOOK_AGAIN_FOR_PODS else ())


def _teardown(snapshot: Snapshot) -> Plan:
    """Take everything away: no slurmd pod is left."""
    order = [DEPLOYMENTS, STATEFULSETS, SERVICES, PODDISRUPTIONBUDGETS, CONFIGMAPS]
    children = [
        (_RESOURCES[kind], name, obj["metadata"]["uid"]) for (kind, name), obj in sorted(snapshot.children.items())
    ]
    children.sort(key=lambda child: order.index(child[0]))
    # Generated keys go; the state on the claim, and keys of the user's, stay.
    generated = {
        make(snapshot.cluster.name) for make in (naming.slurm_key_secret, naming.jwt_key_secret, naming.key_copy)
    }
    secrets = [
        (SECRETS, source.name, source.object_uid)
        for source in snapshot.sources.values()
        # The label alone is not enough: a key of the user's, which the spec names, may have been given it.
        if source.exists
        and source.cluster_uid
        and source.cluster_name == snapshot.cluster.name
        and source.name in generated
    ]
    pods = [(PODS, name, pod["metadata"]["uid"]) for name, pod in sorted(snapshot.preflights.items())]
    return Plan((TearDown((*pods, *children, *secrets)),), None, None)


def _finish(
    snapshot: Snapshot, actions: list[Action], findings: Findings, wake_up: float | None, now: float, wall: datetime
) -> Plan:
    wanted = status_of(snapshot, findings, wall)
    stored = snapshot.cluster.status.to_dict()
    new = wanted.to_dict()
    differing = {key for key in {*stored, *new} if stored.get(key) != new.get(key)}
    since = now - snapshot.memory.counts_written_at
    waiting = bool(differing) and differing <= set(COUNTS) and since < COUNTS_EVERY
    if "conditions" in differing:
        actions = [*actions, *events.of_conditions(snapshot, wanted)]
    due = [wake_up] if wake_up is not None else []
    if waiting:
        due.append(COUNTS_EVERY - since)
    if snapshot.cluster.deleting:
        due.append(LOOK_AGAIN_FOR_PODS)
    slurm = snapshot.slurm
    up = slurm is not None and slurm.contact.state is ContactState.READY
    due.append(LOOK_AGAIN if up and findings.key is None else LOOK_AGAIN_IN_TROUBLE)
    if up:
        due.append(_jobs_due(snapshot, now))
    return Plan(tuple(actions), wanted, min(due), waiting)


# Children


def _for_node_sets(snapshot: Snapshot) -> list[Child]:
    cluster = snapshot.cluster
    return [
        Child(SERVICES, shared_objects.node_service(cluster)),
        Child(PODDISRUPTIONBUDGETS, shared_objects.disruption_budget(cluster)),
    ]


def _daemons(snapshot: Snapshot, images: Images, keys: Keys, slurm_conf: str) -> tuple[list[Child], list[str]]:
    """The daemons, and the fields of templates that keep one from being made: it then stays as it is."""
    cluster, name = snapshot.cluster, naming.restapi(snapshot.cluster.name)
    restapi = (snapshot.children.get((one.kind, name)) for one in (SERVICES, DEPLOYMENTS))
    found = [
        *_for_node_sets(snapshot),
        Child(SERVICES, slurmctld.service(cluster)),
        Child(SERVICES, slurmrestd.service(cluster, *restapi)),
    ]
    refused: list[str] = []
    try:
        notes = {**key_rules.notes(snapshot, keys), **default_images.note(cluster, naming.CONTROLLER_CONTAINER)}
        notes |= slurmctld.note(cluster)
        found.append(_slurmctld(snapshot, images, restart_keys(slurm_conf), notes))
    except RefusedFragment as error:
        refused.append(f"spec.controller.template.{error}")
    try:
        notes = default_images.note(cluster, naming.RESTAPI_CONTAINER)
        found.append(Child(DEPLOYMENTS, slurmrestd.deployment(cluster, images, notes)))
    except RefusedFragment as error:
        refused.append(f"spec.restapi.template.{error}")
    return found, refused


def _slurmctld(snapshot: Snapshot, images: Images, restart: Mapping[str, str], notes: Mapping[str, str]) -> Child:
    """slurmctld's StatefulSet; an operator of another version is no reason to replace the pod for agent or probe."""
    cluster = snapshot.cluster
    made = Child(STATEFULSETS, slurmctld.stateful_set(cluster, images, restart, notes))
    live, pod = snapshot.children.get(made.key), snapshot.controller_pod
    if live is None or (pod is not None and stuck(pod)):
        return made
    as_before = default_images.with_running_agent(snapshot, images)
    for start in (slurmctld.START, slurmctld.START_BEFORE):
        other = Child(STATEFULSETS, slurmctld.stateful_set(cluster, as_before, restart, notes, start))
        if same_pod(other.body, live):
            return other
    return made


def _kept(snapshot: Snapshot, child: Child) -> Child:
    """slurmctld's StatefulSet with the pod that runs; any other child as it is."""
    live = snapshot.children.get(child.key)
    return child if child.resource is not STATEFULSETS or live is None else as_it_runs(child, live)


def _swap(
    snapshot: Snapshot, images: Images, keys: Keys, slurm_conf: str | None, now: float, wall: datetime
) -> Replacement:
    """Whether slurmctld's pod may be replaced."""
    if slurm_conf is None or snapshot.cluster.deleting:
        return Replacement(Stage.FREE)
    daemons, _ = _daemons(snapshot, images, keys, slurm_conf)
    wanted = next((one for one in daemons if one.resource is STATEFULSETS), None)
    return replacement(snapshot, images, wanted, now, wall)


def _writes(snapshot: Snapshot, wanted: list[Child], now: float) -> list[Write]:
    writes = []
    for child in wanted:
        live = snapshot.children.get(child.key)
        if live is not None and (
            is_current(child.body, live) or has_settled(child, live, snapshot.memory.settled.get(child.key))
        ):
            continue
        write = Write(child, live)
        if not _denied(snapshot, write, now):
            writes.append(write)
    return writes


def _denied(snapshot: Snapshot, action: Action, now: float) -> bool:
    """Whether a write has been refused already, and nothing speaks for another answer yet."""
    if not isinstance(action, Write):
        return False
    denied = snapshot.memory.denied.get(action.child.key)
    if _is_handed_over(snapshot, action.child.key):
        return False
    return denied is not None and denied.digest in {"", action.child.digest} and now - denied.at < TRY_AGAIN


def _refused(snapshot: Snapshot, wanted: list[Child]) -> tuple[str, ...]:
    cluster = snapshot.cluster
    keys = {child.key for child in wanted} | {
        ("ConfigMap", name(cluster.name)) for name in (naming.config, naming.good_config)
    }
    keys |= {("Secret", name) for name in snapshot.sources}
    return tuple(
        f"{kind} {name}: {denied.why}"
        for (kind, name), denied in sorted(snapshot.memory.denied.items())
        if (kind, name) in keys and not _is_handed_over(snapshot, (kind, name))
    )


def _is_handed_over(snapshot: Snapshot, key: tuple[str, str]) -> bool:
    """Whether an object that was somebody else's is this Cluster's by now."""
    denied, live = snapshot.memory.denied.get(key), snapshot.children.get(key)
    return denied is not None and not denied.digest and live is not None and succession.is_ours(live, snapshot.cluster)


def _left_keys(snapshot: Snapshot) -> list[AdoptKey]:
    """Secrets of ours that a former Cluster of this name has left: whose they are is proven before they are used."""
    cluster = snapshot.cluster
    names = (make(cluster.name) for make in (naming.slurm_key_secret, naming.jwt_key_secret, naming.key_copy))
    found = (snapshot.sources.get(name) for name in names)
    return [
        AdoptKey(one.name, one.object_uid)
        for one in found
        if one is not None
        and one.exists
        and one.cluster_name == cluster.name
        and one.cluster_uid not in {"", cluster.uid}
    ]


# Slurm


def _connect(snapshot: Snapshot, wanted: Connect | Missing) -> list[Action]:
    if isinstance(wanted, Missing) or not wanted.endpoint.url:
        return [Disconnect()] if snapshot.slurm is not None else []
    slurm = snapshot.slurm
    if slurm is None or slurm.fingerprint != wanted.fingerprint:
        return [wanted]
    waiting = slurm.contact.state is not ContactState.READY and slurm.contact.trouble is not Trouble.UNAUTHORIZED
    # Its own pauses grow; once our daemons are up there is nothing to wait for.
    return [Hurry()] if waiting and _daemons_ready(snapshot) else []


def _daemons_ready(snapshot: Snapshot) -> bool:
    name = snapshot.cluster.name
    found = (
        snapshot.children.get(("Deployment", naming.restapi(name))),
        snapshot.children.get(("StatefulSet", naming.controller(name))),
    )
    return all(((one or {}).get("status") or {}).get("readyReplicas") for one in found)


def _ask_claim(snapshot: Snapshot, now: float) -> list[Action]:
    """Look at slurmctld's claim where slurmctld has no pod, though its StatefulSet is there to make one."""
    name, known = daemon_pods.claim_name(snapshot), snapshot.memory.claim
    there = snapshot.controller_pod is not None or snapshot.controller_ending is not None
    if there or not name or ("StatefulSet", naming.controller(snapshot.cluster.name)) not in snapshot.children:
        return []
    return [] if known is not None and now - known.at < ASK_CLAIM_EVERY else [AskClaim(name)]


def _jobs_due(snapshot: Snapshot, now: float) -> float:
    """Seconds until jobs are counted again."""
    jobs = snapshot.memory.jobs
    if jobs is None:
        return 0.0
    return max(0.0, max(COUNT_JOBS_EVERY, jobs.cost / COUNT_JOBS_SHARE) - (now - jobs.at))


def _count(snapshot: Snapshot, now: float) -> list[Action]:
    slurm = snapshot.slurm
    if slurm is None or slurm.contact.state is not ContactState.READY:
        return []
    return [CountJobs()] if _jobs_due(snapshot, now) <= 0 else []

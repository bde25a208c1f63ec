"""What prevents a NodeSet from matching its spec: for the condition `Degraded`, the status text, and Events.

What concerns the whole NodeSet (an invalid spec, a missing Cluster) is reported alone: the rest follows from it. What
concerns single pods and nodes is reported together, each kind with the names of those affected. A new NodeSet whose
Cluster has not started yet has no trouble: it waits, and the Cluster reports its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.conditions import NodeSetCondition, Reason, find
from slinky_api.v1alpha1.common import GROUP, VERSION
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Drain
from slinky_operator.nodeset.disruption import repairs
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.pod_state import Doubt
from slinky_operator.nodeset.model.pods.pod_facts import SLURMD, Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import is_fixed_otherwise
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import checks, forgotten, health, out_of_service, ssh, topology, volumes
from slinky_operator.nodeset.report.out_of_service import OutOfService
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slinky_operator.reconcile.text import joined, named, stamp
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits
from slinky_operator.slurm.slurmd import launch

EVENTFUL: Final = frozenset(
    {
        Reason.APPLIED_WHILE_DELETING,
        Reason.CLUSTER_GONE,
        Reason.CONTAINER_NOT_CREATED,
        Reason.CRASH_LOOP_BACK_OFF,
        Reason.DRAIN_TIMED_OUT,
        Reason.HEALTH_BUDGET_REACHED,
        Reason.IMAGE_PULL_BACK_OFF,
        Reason.INVALID_REGISTRATION,
        Reason.INVALID_SPEC,
        Reason.JOB_END_FORGOTTEN,
        Reason.LABELS_LOST,
        Reason.NODES_NOT_WATCHED,
        Reason.NODE_DOWN,
        Reason.NODE_UNKNOWN,
        Reason.NOT_REGISTERED,
        Reason.REPLACEMENT_FAILED,
        Reason.REPLACEMENT_REFUSED,
        Reason.SCALING_MODE_FIXED,
        Reason.UNSCHEDULABLE,
        *checks.REASONS,
        *ssh.REASONS,
        Reason.TOPOLOGY_LABELS_MISSING,
        *volumes.REASONS,
    }
)
"""Also reported in a Warning Event when it begins, and when it affects further pods."""

_HINDRANCES: Final = (
    Reason.IMAGE_PULL_BACK_OFF,
    Reason.CONTAINER_NOT_CREATED,
    Reason.CRASH_LOOP_BACK_OFF,
    Reason.UNSCHEDULABLE,
)
"""Why pods do not run, in the order of reporting."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that prevents a NodeSet from matching its spec."""

    reason: Reason
    text: str
    """For the condition."""
    brief: str = ""
    """For the status text; if empty, the beginning of the text is used."""
    names: frozenset[str] = frozenset()
    """Pods and nodes affected; none if it is the whole NodeSet."""


def find_all(
    snapshot: Snapshot, found: Decisions, out: Sequence[OutOfService], refusals: Sequence[str], now: datetime
) -> list[Trouble]:
    """All troubles of a NodeSet, in the order of reporting.

    Parameters
    ----------
    snapshot, found
        The snapshot, and the decisions of the plan.
    out
        Nodes that get no jobs, as of `out_of_service.nodes`.
    refusals
        What was rejected, or kept a pod from being deleted, in this pass.
    now
        The time.
    """
    whole = _of_the_whole(snapshot, found)
    if whole is not None:
        return [whole]
    troubles = _applied_while_deleting(snapshot)
    troubles += [] if snapshot.slurm.readable or is_waiting(snapshot) else [_blind(snapshot)]
    if snapshot.slurm.readable:
        troubles += [*_unknown(snapshot, found, now), *_stripped(snapshot)]
    troubles += _hindered(snapshot, now)
    if snapshot.slurm.readable:
        troubles += _out_of_service(snapshot, found, out)
    if refusals and snapshot.slurm.readable:
        troubles.append(Trouble(Reason.POD_REFUSED, joined(sorted(refusals))))
    if snapshot.slurm.readable:
        troubles += [Trouble(*one) for one in forgotten.jobs(snapshot, found, now)]
        troubles += [*_overdue(snapshot, found), *_unregistered(snapshot, found, now)]
    troubles += [Trouble(*one) for one in health.told(snapshot, found)]
    troubles += [Trouble(*one) for one in checks.told(found)]
    troubles += [Trouble(*one) for one in topology.told(snapshot)]
    troubles += [Trouble(*one) for one in ssh.told(snapshot)]
    troubles += [Trouble(*one) for one in volumes.told(snapshot)]
    return troubles


def is_waiting(snapshot: Snapshot) -> bool:
    """Whether a NodeSet without pods waits for a Cluster that is starting."""
    cluster = snapshot.cluster
    return cluster.exists and not cluster.listed and not snapshot.pods


def is_applied_while_deleting(nodeset: NodeSet) -> bool:
    """Whether a NodeSet that is being deleted was changed after that: the change goes with it.

    The deletion itself is a generation: what counts is one after a status that has shown the deletion.
    """
    before, seen = find(nodeset.status.conditions, NodeSetCondition.PROGRESSING), nodeset.status.observed_generation
    if not nodeset.deleting or before is None:
        return False
    is_later = seen is not None and 0 < seen < nodeset.metadata.generation
    return before.reason == Reason.APPLIED_WHILE_DELETING or (before.reason == Reason.DELETING and is_later)


def cluster_gone(snapshot: Snapshot) -> tuple[Reason, str] | None:
    """What to do about pods whose Cluster is gone for good; None if there are none."""
    nodeset = snapshot.nodeset
    if snapshot.cluster.exists or not snapshot.cluster.gone or not snapshot.pods:
        return None
    return Reason.CLUSTER_GONE, (
        f"there is no Cluster {nodeset.spec.cluster_name} in this namespace, so it is unknown whether jobs run "
        "on its nodes, and no pod is deleted. To give up these jobs: "
        f"kubectl delete nodeset {nodeset.name} --wait=false; "
        f"kubectl annotate nodeset {nodeset.name} {labels.ANNOTATION_SKIP_DRAIN}=true"
    )


def overdue(late: Overdue, spec: Drain) -> str:
    """The result of a drain that has taken longer than the spec allows."""
    ended = spec.timeout is not None and stamp(late.since + spec.timeout)
    told = f"longer than spec.drain.timeout, which ended {ended} (onTimeout {spec.on_timeout})"
    if late.stuck:
        numbers = named([str(job.id) for job in late.stuck])
        told += f": interactive or submitted with --no-requeue, so they are waited for: {numbers}"
    return told


def _applied_while_deleting(snapshot: Snapshot) -> list[Trouble]:
    """What somebody has applied goes with the NodeSet; they may think that it is back."""
    nodeset = snapshot.nodeset
    if not is_applied_while_deleting(nodeset):
        return []
    wait = f"kubectl wait --for=delete nodesets.slinky.slurm.net/{nodeset.name} --namespace {nodeset.namespace}"
    told = (
        "the NodeSet was changed after its deletion, and goes with that change. Wait until it has gone "
        f"({wait}), then apply it again"
    )
    return [Trouble(Reason.APPLIED_WHILE_DELETING, told, "apply it again afterwards")]


def _of_the_whole(snapshot: Snapshot, found: Decisions) -> Trouble | None:
    nodeset, cluster = snapshot.nodeset, snapshot.cluster
    if snapshot.revision.problems:
        return Trouble(
            Reason.INVALID_SPEC, "; ".join(snapshot.revision.problems), f"invalid {snapshot.revision.problems[0]}"
        )
    if is_fixed_otherwise(nodeset):
        return Trouble(
            Reason.SCALING_MODE_FIXED,
            f"spec.scalingMode: {nodeset.spec.scaling_mode} is requested, but the NodeSet was created in mode "
            f"{nodeset.mode}, which determines the names of its nodes; nothing is done until the spec agrees. "
            "For another mode, create another NodeSet",
        )
    if found.layout.desired is None:
        return Trouble(
            Reason.NODES_NOT_WATCHED,
            f"spec.scalingMode: {nodeset.mode} needs the operator to see Nodes, and it runs with --no-watch-nodes",
        )
    if not cluster.exists:
        told = f"there is no Cluster {nodeset.spec.cluster_name} in this namespace"
        missing = Reason.CLUSTER_NOT_FOUND, missing_cluster(nodeset)
        return Trouble(*(cluster_gone(snapshot) or missing), brief=told)
    if cluster.refused:
        how = "keeps it as it was" if cluster.listed else "does not contain it"
        return Trouble(Reason.CONFIG_REFUSED, f"the Cluster's configuration {how}: {cluster.refused}", cluster.refused)
    return None


def _blind(snapshot: Snapshot) -> Trouble:
    slurm = snapshot.slurm
    return Trouble(slurm.reason, slurm.why, f"Slurm is unreachable: {slurm.why}")


def _unknown(snapshot: Snapshot, found: Decisions, now: datetime) -> list[Trouble]:
    """Pods whose nodes Slurm does not know, or shows in a state that does not fit."""
    unknown = {name: state for name, state in found.states.items() if isinstance(state, pod_state.Unknown)}
    if not unknown:
        return []
    lost = sorted(name for name, state in unknown.items() if state.doubt is Doubt.FORGOTTEN)
    others = sorted(state.why for state in unknown.values() if state.doubt is not Doubt.FORGOTTEN)
    texts = [*forgotten.nodes(snapshot, lost, now), *others]
    brief = f"Slurm does not know nodes {named(lost)}" if lost else others[0]
    return [Trouble(Reason.NODE_UNKNOWN, joined(texts), brief, frozenset(unknown))]


def _stripped(snapshot: Snapshot) -> list[Trouble]:
    """Pods that have lost the operator's labels."""
    if not snapshot.stripped:
        return []
    texts = [text for _, text in sorted(snapshot.stripped.items())]
    names = frozenset(snapshot.stripped)
    brief = f"labels lost on {named(sorted(names))}"
    return [Trouble(Reason.LABELS_LOST, joined(texts), brief, names)]


def _hindered(snapshot: Snapshot, now: datetime) -> list[Trouble]:
    """Pods that do not run, with the message of the scheduler or the kubelet; grouped by cause."""
    if snapshot.nodeset.deleting:
        return []
    pods = [
        pod
        for pod in snapshot.pods
        if pod.hindrance is not None
        and pod.hindrance.is_told(now)
        and not pod.deleting
        and pod.slurmd is not Slurmd.ENDED
    ]
    troubles = []
    for reason in _HINDRANCES:
        alike: dict[str, list[Pod]] = {}
        for pod in pods:
            if pod.hindrance is not None and pod.hindrance.reason is reason:
                alike.setdefault(pod.hindrance.text, []).append(pod)
        if alike:
            count = sum(map(len, alike.values()))
            first = next(pod.hindrance for of in alike.values() for pod in of)
            few = (first.brief or first.text) if first is not None else ""
            brief = f"{count} {'pod' if count == 1 else 'pods'} {few}"
            texts = [_hindered_alike(text, of) for text, of in alike.items()]
            names = frozenset(pod.name for of in alike.values() for pod in of)
            troubles.append(Trouble(reason, joined(texts), brief, names))
    return troubles


def _hindered_alike(text: str, pods: Sequence[Pod]) -> str:
    since = min((pod.hindrance.since for pod in pods if pod.hindrance and pod.hindrance.since), default=None)
    when = f" (since {stamp(since)})" if since is not None else ""
    return f"{'pod' if len(pods) == 1 else 'pods'} {named([pod.name for pod in pods])}{when}: {text}"


def _out_of_service(snapshot: Snapshot, found: Decisions, out: Sequence[OutOfService]) -> list[Trouble]:
    """Nodes that are down in Slurm, or whose registration it rejects. Drains by others are not reported."""
    troubles = []
    rejected = out_of_service.rejected(snapshot, found)
    if rejected:
        names = _rejected(snapshot)
        brief = f"invalid registration of {named(sorted(names))}"
        told = out_of_service.advised(joined(rejected))
        troubles.append(Trouble(Reason.INVALID_REGISTRATION, told, brief, names))
    down = [one for one in out if one.reason is Reason.NODE_DOWN]
    if down and not snapshot.nodeset.deleting:
        listed = out_of_service.names(down)
        what = "node is down" if len(down) == 1 else "nodes are down"
        brief = f"{len(down)} {what}: {named(listed)}"
        reasons = {one.node.reason for one in down}
        if len(reasons) == 1 and down[0].node.reason:
            brief += f" ({down[0].node.reason})"
        told = f"{len(down)} {what} in Slurm: {joined([one.text for one in down])}"
        troubles.append(Trouble(Reason.NODE_DOWN, told, brief, frozenset(listed)))
    return troubles


def _rejected(snapshot: Snapshot) -> frozenset[str]:
    nodes = ((member.pod, member.record) for member in snapshot.aside)
    return frozenset(pod.node_name for pod, node in nodes if node is not None and registration.is_rejected(node))


def _overdue(snapshot: Snapshot, found: Decisions) -> Iterable[Trouble]:
    """Drains that have exceeded their timeout, and for which the operator does nothing more."""
    late = {name: one for name, one in sorted(found.overdue.items()) if not one.acts and not one.ending}
    if late:
        spec = snapshot.nodeset.spec.drain
        texts = [f"the drain of {name} takes {overdue(one, spec)}" for name, one in late.items()]
        yield Trouble(Reason.DRAIN_TIMED_OUT, joined(texts), f"drain timed out on {named(list(late))}", frozenset(late))


def _unregistered(snapshot: Snapshot, found: Decisions, now: datetime) -> Iterable[Trouble]:
    """Pods that have not registered in time; and those recreated for that, until they have."""
    waits = sorted(
        (one for one in found.waits.values() if not one.pod.registered), key=lambda one: (one.until, one.pod.name)
    )
    told_before = _was_told(snapshot)
    on_the_way = any(isinstance(state, pod_state.Starting | pod_state.Deleting) for state in found.states.values())
    if any(wait.until <= now for wait in waits) or (told_before and (waits or on_the_way or found.creation.blocked)):
        again = {name for name, causes in found.causes.items() if drains.Cause.REPAIR in causes}
        told = [repairs.told(wait, again, now) for wait in waits] or ["recreated pods have yet to register"]
        late = [wait.pod.name for wait in waits if wait.until <= now]
        brief = f"{named(late)} not registered with Slurm" if late else "recreated pods have yet to register"
        text = f"{joined(told)}. Probably {repairs.LIKELY}"
        yield Trouble(Reason.NOT_REGISTERED, text, brief, frozenset(late))


def _was_told(snapshot: Snapshot) -> bool:
    """Whether the stored condition reports that pods do not register; its reason is that of its first trouble."""
    stored = find(snapshot.nodeset.status.conditions, NodeSetCondition.DEGRADED)
    if stored is None or stored.status != "True":
        return False
    return stored.reason == Reason.NOT_REGISTERED or repairs.LIKELY in stored.message


_RELEASE: Final = re.compile(r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)-controller(?:\.[-a-z0-9.]+)?(?::[0-9]+)?")


def missing_cluster(nodeset: NodeSet) -> str:
    """Say which Cluster is missing, and show one to apply.

    If Slurm runs already, the Cluster says where; without `spec` the operator runs Slurm.
    """
    name, namespace = nodeset.spec.cluster_name, nodeset.namespace
    started = _launch(nodeset)
    release = _release(started)
    server = f"http://{release}-restapi.{namespace}:6820" if release else "http://SLURMRESTD:6820"
    secret = f"{release}-token-slurm" if release else "SECRET"
    manifest = [
        f"apiVersion: {GROUP}/{VERSION}",
        "kind: Cluster",
        "metadata:",
        f"  name: {name}",
        f"  namespace: {namespace}",
        "spec:",
        f"  server: {server}",
        "  token:",
        f"    secretRef: {secret}",
    ]
    fill = "" if release else ", with the address of slurmrestd and the Secret that has a token of Slurm's"
    if not started.names_conf_server:
        # Without it slurmd would not know where slurmctld is: the template does not name it either.
        manifest += ["  controller:", "    external:", "      host: SLURMCTLD"]
    told = f"there is no Cluster {name} in namespace {namespace}. If Slurm runs already, apply this Cluster{fill};"
    return "\n".join([f"{told} for a Slurm that the operator is to run, leave out spec:", *manifest])


def _launch(nodeset: NodeSet) -> launch.Launch:
    template = nodeset.spec.template or {}
    if next(misfits(template, POD_TEMPLATE), None) is not None:
        return launch.Launch(())
    containers = (template.get("spec") or {}).get("containers") or ()
    return launch.read(next((item for item in containers if item.get("name") == SLURMD), {}))


def _release(started: launch.Launch) -> str:
    """Name of the release of Slinky's chart, from the slurmctld in slurmd's arguments; empty if there is none."""
    words = iter(started.arguments)
    for word in words:
        option, _, value = word.partition("=")
        if option == launch.CONF_SERVER:
            found = _RELEASE.fullmatch(value or next(words, ""))
            return found[1] if found is not None else ""
    return ""

"""The part of the plan about slurm.conf: which NodeSets are in it, and how far it has come.

A change goes through these steps. Each is told from what can be seen, so that the operator may die between any two:

1. the ConfigMap holds the new files;
2. slurmctld's pod is touched, and its kubelet refreshes the volume;
3. the agent shows that the files are mounted;
4. slurmctld is told to reconfigure, and shows the new partitions;
5. the status says so: `appliedHash`, and `nodeSets` with those that are new.

A NodeSet comes into `status.config.nodeSets` last and leaves it first: it gets pods only while the running
configuration knows it. Its finalizer of ours stands before it is rendered, and goes when a configuration without it
is live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster import ConfigStatus
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.agent.files import expected
from slinky_operator.cluster.actions import Action, AskAgent, Reload, ReplacePod, SetFinalizer, TouchPod, Write
from slinky_operator.cluster.children import Child, is_current
from slinky_operator.cluster.daemons import shared
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.client import Object
from slinky_operator.kube.resources import CONFIGMAPS, NODESETS
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ContactState
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Rendered, render
from slinky_operator.slurm.conf.admit import lines_of
from slinky_operator.slurm.conf.render import SLURM_CONF

ASK_EVERY: Final = 0.25
"""Seconds between two questions to the agent while a change is on its way."""

ASK_EVERY_IN_VAIN: Final = 1.0
"""The same while it does not answer."""

WORDS: Final = 4
"""Lines of what slurmctld has said before it gave up that are shown."""

RETRY_LOST: Final = 1.0
"""The same where nobody could be asked."""

RETRY_RELOAD: Final = 5.0
"""Seconds until a configuration that slurmctld did not take is tried again."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the configuration needs."""

    actions: tuple[Action, ...]
    status: ConfigStatus
    applied: bool
    """Whether the wanted configuration is live."""

    reason: Reason
    message: str
    rendered: Rendered
    wake_up: float | None = None
    """Seconds until something is due that no event will tell."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """What all answers have in common."""

    rendered: Rendered
    stored: ConfigStatus
    joining: tuple[Action, ...]
    """Comes before everything else: finalizers stand before anything is rendered for their owners."""

    remarks: str

    def waiting(self, message: str, *actions: Action, wake_up: float | None = None) -> Rollout:
        """The wanted configuration is on its way."""
        return self._rollout(Reason.CONFIG_PENDING, message, actions, wake_up)

    def refused(self, message: str, *actions: Action, wake_up: float | None = None) -> Rollout:
        """The wanted configuration cannot be used; what runs stays, and so do the NodeSets in it."""
        status = ConfigStatus(
            hash=self.rendered.hash, applied_hash=self.stored.applied_hash, node_sets=self.stored.node_sets
        )
        return self._rollout(Reason.CONFIG_REFUSED, message, actions, wake_up, status)

    def applied(self, *actions: Action) -> Rollout:
        """The wanted configuration is live."""
        status = ConfigStatus(
            hash=self.rendered.hash, applied_hash=self.rendered.hash, node_sets=tuple(sorted(self.rendered.node_sets))
        )
        return self._rollout(Reason.AS_EXPECTED, self.remarks, actions, None, status)

    def _rollout(
        self,
        reason: Reason,
        message: str,
        actions: tuple[Action, ...],
        wake_up: float | None,
        status: ConfigStatus | None = None,
    ) -> Rollout:
        if status is None:
            live = tuple(sorted(set(self.stored.node_sets) & set(self.rendered.node_sets)))
            status = ConfigStatus(hash=self.rendered.hash, applied_hash=self.stored.applied_hash, node_sets=live)
        return Rollout(
            (*self.joining, *actions),
            status,
            reason is Reason.AS_EXPECTED,
            reason,
            message,
            self.rendered,
            wake_up,
        )


def plan_rollout(snapshot: Snapshot, now: float) -> Rollout:
    """Decide the next steps.

    Parameters
    ----------
    now
        Monotonic seconds.
    """
    cluster = snapshot.cluster
    stored = cluster.status.config or ConfigStatus()
    config_map = snapshot.children.get(("ConfigMap", naming.config(cluster.name)))
    running = ((config_map or {}).get("data") or {}).get(SLURM_CONF, "")
    members, joining = _members(snapshot, running)
    rendered = render(ConfInputs.of(cluster, [NodeSetConf.of(one) for one in members], snapshot.texts), running)
    draft = _Draft(rendered, stored, tuple(joining), _remarks(rendered, snapshot))
    if rendered.problems:
        strangers = [
            one for one in _leaving(snapshot, rendered) if lines_of(one.obj["metadata"]["name"], running) is None
        ]
        return draft.refused("; ".join(map(str, rendered.problems)), *strangers)
    if set(stored.node_sets) - set(rendered.node_sets):
        # The status comes first: from then on nobody makes pods that the next configuration would not know.
        return draft.waiting("a NodeSet is being taken out")
    child = Child(CONFIGMAPS, shared.config_map(cluster, rendered.files, rendered.hash))
    if config_map is None or not is_current(child.body, config_map):
        return draft.waiting("the configuration is being written", Write(child, config_map))
    if stored.applied_hash == rendered.hash:
        return draft.applied(*_leaving(snapshot, rendered))
    return _make_live(snapshot, draft, now)


def _make_live(snapshot: Snapshot, draft: _Draft, now: float) -> Rollout:
    """Steps 2 to 5, for files that are in the ConfigMap."""
    pod, rendered = snapshot.controller_pod, draft.rendered
    if pod is None:
        return draft.waiting("slurmctld has no pod yet")
    mounting = _mount(snapshot, pod, draft, now)
    if mounting is not None:
        return mounting
    if snapshot.slurm is None or snapshot.slurm.contact.state is not ContactState.READY:
        words = f"the files are mounted; waiting for Slurm to answer{_last_words(pod)}"
        return draft.waiting(words, *_replacements(snapshot, pod, rendered.hash))
    return _load(snapshot, pod, draft, now)


def _load(snapshot: Snapshot, pod: Object, draft: _Draft, now: float) -> Rollout:
    """Steps 4 and 5, for files that are mounted."""
    rendered = draft.rendered
    uid, loaded = pod["metadata"]["uid"], snapshot.memory.loaded
    if loaded is not None and loaded.pod_uid == uid and loaded.hash == rendered.hash:
        if loaded.proven:
            return draft.applied()
        if loaded.lost and now - loaded.at < RETRY_LOST:
            return draft.waiting(f"reconfiguring: {loaded.why}", wake_up=RETRY_LOST)
        if not loaded.lost and now - loaded.at < RETRY_RELOAD:
            return draft.refused(loaded.why, wake_up=RETRY_RELOAD)
    return draft.waiting("reconfiguring", Reload(uid, rendered.hash, rendered.partitions))


def _replacements(snapshot: Snapshot, controller: Object, digest: str) -> list[ReplacePod]:
    """Pods whose next attempt may be minutes away, though what they failed on has been mended.

    Once for each configuration: what fails with this one too is left to the kubelet's pauses.
    """
    return [
        ReplacePod(pod, component, digest)
        for component, pods in (
            (naming.COMPONENT_CONTROLLER, (controller,)),
            (naming.COMPONENT_RESTAPI, snapshot.restapi_pods),
        )
        for pod in pods
        if _waits_to_restart(pod) and (component, digest) not in snapshot.memory.replaced
    ]


def _waits_to_restart(pod: Object) -> bool:
    return any(
        ((one.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
    )


def _last_words(pod: Object) -> str:
    """What slurmctld has said before it gave up, if it keeps doing so."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if one.get("name") == naming.CONTROLLER_CONTAINER and not one.get("ready"):
            states = ((one.get("state") or {}).get("terminated"), (one.get("lastState") or {}).get("terminated"))
            said = next((state.get("message") for state in states if state and state.get("message")), "")
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            fatal = [line for line in lines if "fatal" in line or "error" in line]
            return f"; slurmctld has ended: {' / '.join((fatal or lines)[-WORDS:])}" if lines else ""
    return ""


def _mount(snapshot: Snapshot, pod: Object, draft: _Draft, now: float) -> Rollout | None:
    """Steps 2 and 3; `None` once the agent has shown the files."""
    metadata, rendered = pod["metadata"], draft.rendered
    if (metadata.get("annotations") or {}).get(labels.ANNOTATION_CONFIG_TOUCH) != rendered.hash:
        return draft.waiting("waiting for the files to be mounted", TouchPod(pod, rendered.hash), wake_up=1.0)
    if not (pod.get("status") or {}).get("podIP"):
        return draft.waiting("slurmctld's pod has no address yet")
    mounted = snapshot.memory.mounted
    if mounted is None or mounted.pod_uid != metadata["uid"]:
        return draft.waiting("waiting for the files to be mounted", AskAgent(pod), wake_up=ASK_EVERY)
    if mounted.files == expected(rendered.files):
        return None
    every = ASK_EVERY_IN_VAIN if mounted.why else ASK_EVERY
    asking = (AskAgent(pod),) if now - mounted.asked_at >= every else ()
    why = f": {mounted.why}" if mounted.why else ""
    return draft.waiting(f"waiting for the files to be mounted{why}", *asking, wake_up=every)


def _members(snapshot: Snapshot, running: str) -> tuple[list[NodeSet], list[SetFinalizer]]:
    """NodeSets that are to be in the configuration, and the finalizers they need first."""
    members: list[NodeSet] = []
    finalizers: list[SetFinalizer] = []
    for node_set, raw in snapshot.node_sets:
        held = labels.FINALIZER_NODESET_CONFIG in node_set.metadata.finalizers
        if node_set.deleting:
            # It stays as long as it may have pods; one that was never in the configuration has none.
            draining = labels.FINALIZER_NODESET_DRAIN in node_set.metadata.finalizers
            if draining and lines_of(node_set.name, running) is not None:
                members.append(node_set)
            continue
        members.append(node_set)
        if not held:
            finalizers.append(SetFinalizer(NODESETS, raw, labels.FINALIZER_NODESET_CONFIG, present=True))
    return members, finalizers


def _leaving(snapshot: Snapshot, rendered: Rendered) -> list[SetFinalizer]:
    """Finalizers to take off: their NodeSets are being deleted, and what is live knows nothing of them."""
    return [
        SetFinalizer(NODESETS, raw, labels.FINALIZER_NODESET_CONFIG, present=False)
        for node_set, raw in snapshot.node_sets
        if node_set.deleting
        and labels.FINALIZER_NODESET_CONFIG in node_set.metadata.finalizers
        and node_set.name not in rendered.node_sets
    ]


def _remarks(rendered: Rendered, snapshot: Snapshot) -> str:
    words = [f"NodeSet {one.node_set}: {one.problem}" for one in rendered.refused]
    words += [f"NodeSet {error.name}: {error.problems[0]}" for _, error in snapshot.invalid_node_sets]
    if rendered.undefined:
        words.append(f"partitions name NodeSets that do not exist: {', '.join(rendered.undefined)}")
    return "; ".join(words)

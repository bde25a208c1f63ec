"""slurmctld: a StatefulSet with one pod and its state on a claim, and a headless Service for its DNS name.

Its pod is in `pod`. Whether a running one may be replaced is decided elsewhere (`preflight.replacement`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_api.v1alpha1.common import Persistence
from slinky_operator.cluster.daemons import Images, default_images, metadata
from slinky_operator.cluster.daemons.claim_templates import claim_of, is_generated
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.daemons.service_fragment import exposed, with_fragment
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.parts.monitoring.manifests import monitored_services
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.parts.slurmctld.claim_question import ClaimQuestion
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SERVICES, STATEFULSETS
from slinky_operator.reconcile.pod_trouble import NO_POD, TERMINATING, DaemonTrouble, is_settled
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import restart_keys
from slinky_operator.slurm.naming import KeySource
from slinky_operator.slurm.pods.exit_messages import stuck


def service(cluster: Cluster) -> Object:
    """The headless Service. It resolves before the pod is ready: slurmd must find slurmctld while that starts."""
    body = {
        "metadata": metadata(cluster, naming.controller(cluster.name), naming.COMPONENT_CONTROLLER),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": naming.controller_selector(cluster),
            "ports": [{"name": "slurmctld", "port": naming.SLURMCTLD_PORT, "protocol": "TCP"}],
        },
    }
    return with_fragment(body, cluster.spec.controller.service)


def outside_service(cluster: Cluster) -> Object | None:
    """The Service by which slurmctld is reached from outside, as its spec describes; `None` if there is no spec."""
    fragment = cluster.spec.controller.service
    if fragment is None or not fragment.spec:
        return None
    about = metadata(cluster, naming.controller_outside(cluster.name), naming.COMPONENT_CONTROLLER)
    spec = exposed(fragment, naming.controller_selector(cluster), "slurmctld", naming.SLURMCTLD_PORT)
    return with_fragment({"metadata": about, "spec": spec}, fragment)


def stateful_set(
    cluster: Cluster,
    images: Images,
    restart: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    start: int = slurmctld_pod.START,
    key: KeySource | None = None,
) -> Object:
    """The StatefulSet.

    Parameters
    ----------
    restart
        Values of keys that slurmctld reads only at start, in the configuration to run.
    annotations
        Of the StatefulSet itself: a change does not replace its pods.
    start
        Attempts of the startup probe.
    key
        Where the key of auth/slurm is mounted from, if not from where new pods do.
    """
    persistence = cluster.spec.controller.persistence
    spec: dict[str, Any] = {
        "replicas": 1,
        "serviceName": naming.controller(cluster.name),
        # One pod needs no order, and a pod that never becomes ready must not block its own correction.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": naming.selector_labels(cluster, naming.COMPONENT_CONTROLLER)},
        "template": slurmctld_pod.template(cluster, images, restart, start, key or naming.mounted_key(cluster)),
    }
    if is_generated(persistence):
        # Jobs and their history belong to the user: only the user deletes them.
        spec |= claim_of(slurmctld_pod.STATE, persistence)
    return {
        "metadata": metadata(
            cluster, naming.controller(cluster.name), naming.COMPONENT_CONTROLLER, dict(annotations or {})
        ),
        "spec": spec,
    }


def note(cluster: Cluster) -> dict[str, str]:
    """The annotation with the digest of the pod settings in the spec."""
    controller, keys = cluster.spec.controller, (naming.slurm_key(cluster), naming.jwt_key(cluster))
    says = {
        "image": controller.image,
        "resources": None if controller.resources is None else controller.resources.to_dict(),
        "template": controller.template,
        "persistence": [controller.persistence.enabled, controller.persistence.existing_claim],
        "keys": [[one.secret, one.key, one.file] for one in keys if one is not None],
    }
    source = identity.of_nodes(cluster)
    if source:
        says["identity"] = {name: part for name, part in source.items() if name != "homes"}
    text = json.dumps(says, sort_keys=True, default=str)
    return {slurmctld_pod.ANNOTATION_POD_SPEC: hashlib.sha256(text.encode()).hexdigest()[:16]}


class Slurmctld(Component):
    """slurmctld among the daemons of a Cluster."""

    daemon = naming.CONTROLLER_CONTAINER
    component = naming.COMPONENT_CONTROLLER
    resource = STATEFULSETS
    template_field = "spec.controller.template"
    condition = ClusterCondition.CONTROLLER_UP
    mounts_keys = True
    keeps_state = True
    state_volume = slurmctld_pod.STATE

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return cluster.spec.controller

    @override
    def persistence(self, cluster: Cluster) -> Persistence:
        return cluster.spec.controller.persistence

    @override
    def with_persistence(self, cluster: Cluster, persistence: Persistence) -> Cluster:
        controller = cluster.spec.controller.model_copy(update={"persistence": persistence})
        return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"controller": controller})})

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        cluster = materials.snapshot.cluster
        yield Child(SERVICES, service(cluster))
        outside = outside_service(cluster)
        if outside is not None:
            yield Child(SERVICES, outside)
        yield from monitored_services(cluster, self.component)

    @override
    def workload(self, materials: Materials) -> Child:
        """The StatefulSet; an operator of another version does not replace the pod for agent or probe."""
        snapshot, images = materials.snapshot, materials.images
        cluster, conf = snapshot.cluster, materials.conf
        restart = {**restart_keys(conf), **in_conf.restart(cluster, conf)}
        notes = {**materials.key_notes, **default_images.note(self.spec(cluster), self.daemon), **note(cluster)}
        made = Child(STATEFULSETS, stateful_set(cluster, images, restart, notes))
        live, pod = snapshot.children.get(made.key), snapshot.pods.controller
        if live is None or (pod is not None and stuck(pod)):
            return made
        as_before = default_images.with_running_agent(snapshot, images)
        # A pod that mounts the user's own Secret keeps it: earlier operators made it so.
        keys = dict.fromkeys((naming.mounted_key(cluster), naming.slurm_key(cluster)))
        for key, start in itertools.product(keys, (slurmctld_pod.START, slurmctld_pod.START_BEFORE)):
            other = Child(STATEFULSETS, stateful_set(cluster, as_before, restart, notes, start, key))
            if slurmctld_pod.same_pod(other.body, live):
                return other
        return made

    @override
    def secrets(self, cluster: Cluster) -> Iterable[str]:
        return (one.secret for one in (naming.mounted_key(cluster), naming.jwt_key(cluster)) if one is not None)

    @override
    def takes_patches(self, cluster: Cluster) -> bool:
        # Another image replaces the pod, and state in an `emptyDir` ends with the pod.
        return cluster.spec.controller.persistence.enabled

    @override
    def pods(self, snapshot: Snapshot) -> Sequence[Object]:
        return () if snapshot.pods.controller is None else (snapshot.pods.controller,)

    @override
    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        if snapshot.pods.controller is not None:
            yield from map(_with_advice, super().troubles(snapshot, wall))
            return
        namespace, name = snapshot.cluster.namespace, naming.controller_pod(snapshot.cluster.name)
        ending = snapshot.pods.controller_ending
        owner = snapshot.children.get(self.key(snapshot.cluster))
        if ending is not None:
            since = ending["metadata"]["deletionTimestamp"]
            node = (ending.get("spec") or {}).get("nodeName") or "no Node"
            message = (
                f"slurmctld's pod {name} on {node} is being deleted, to have ended by {since}; the next one is created "
                f"when it has gone. Only if that Node is off for good: kubectl -n {namespace} delete pod {name} --force"
            )
            yield DaemonTrouble(self.daemon, TERMINATING, message, passing=True)
        elif owner is not None and is_settled(owner, wall):
            yield _without_pod(snapshot, self.daemon, name)


SLURMCTLD: Final = Slurmctld()

_UNREADABLE: Final = "start with '-i' to ignore this"
"""In the last words of a slurmctld that cannot read its state, of both releases."""


def _with_advice(trouble: DaemonTrouble) -> DaemonTrouble:
    """Say what to do instead of what such a slurmctld proposes, which loses jobs."""
    if _UNREADABLE not in trouble.message:
        return trouble
    advice = (
        "It has changed nothing of its state. After a change of spec.controller.image, name the image that ran before; "
        "never start slurmctld with -i, which loses jobs"
    )
    return replace(trouble, message=f"{trouble.message}. {advice}")


def claim_name(snapshot: Snapshot) -> str:
    """The claim with slurmctld's state; empty if there is none."""
    persistence = snapshot.cluster.spec.controller.persistence
    if not persistence.enabled:
        return ""
    return persistence.existing_claim or f"state-{naming.controller_pod(snapshot.cluster.name)}"


def _without_pod(snapshot: Snapshot, daemon: str, name: str) -> DaemonTrouble:
    """Why a StatefulSet has no pod: a claim that is being deleted, or a cause that only its Events show."""
    claim, namespace = snapshot.memory.answers.of(ClaimQuestion), snapshot.cluster.namespace
    if claim is not None and claim.deleted and claim.name == claim_name(snapshot):
        theirs = snapshot.cluster.spec.controller.persistence.existing_claim is not None
        then = "create it again" if theirs else "an empty one follows, without the jobs that Slurm knew"
        message = (
            f"slurmctld has no pod: its claim {claim.name} has been marked for deletion at {claim.deleted}, and no new "
            f"pod may use it. kubectl -n {namespace} describe pvc {claim.name} shows which pod or finalizer keeps it; "
            f"when it has gone, {then}"
        )
        return DaemonTrouble(daemon, "ClaimTerminating", message)
    owner = naming.controller(snapshot.cluster.name)
    message = f"slurmctld has no pod {name}: kubectl -n {namespace} describe statefulset {owner} says why"
    return DaemonTrouble(daemon, NO_POD, message, passing=True)

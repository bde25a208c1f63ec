"""Whether a Kubernetes Node holds no job, by the proof that permits deletions: of slurmd pods, and of the bridge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.execute.queries.registrations import with_registrations
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client import errors as slurm_errors

logger = logging.getLogger(__name__)

PROOF_HOLDS: Final = 20.0
"""Seconds for which an answer from Slurm justifies what ends a pod. A slow API server is retried; by then somebody may
have undrained the node."""

BRIDGED: Final = (
    "Slurm may have a job for the Node as a node of a bridge, or a Cluster with a bridge has no room in the operator's "
    "memory"
)
"""Why a Node waits that is a node of Slurm itself."""

SlurmOf = Callable[[Key], Slurm | None]
"""The Slurm of a Cluster, by the namespace and the name of the Cluster; None if there is none."""

WhyNot = Callable[[Member, datetime], str | None]
"""Why a slurmd pod keeps what is about to be done, by a fresh answer about its node; None if it does not."""

Bridged = Callable[[Iterable[str]], Mapping[str, Iterable[Slurm | None]]]
"""The Slurms of which Kubernetes Nodes are nodes themselves, by their names; None for one without a client."""


def by_cluster(pods: Iterable[Object]) -> dict[Key, list[Object]]:
    """Slurmd pods by namespace and name of their Cluster."""
    found: dict[Key, list[Object]] = {}
    for obj in pods:
        metadata = obj["metadata"]
        cluster = metadata.get("namespace") or "", metadata["labels"].get(labels.LABEL_CLUSTER_NAME) or ""
        found.setdefault(cluster, []).append(obj)
    return found


async def reasons(
    kube: Getter,
    slurm_of: SlurmOf,
    cluster: Key,
    pods: Sequence[Object],
    clock: Callable[[], float],
    now: datetime,
    why_not: WhyNot = pod_state.why_kept,
) -> dict[str, str]:
    """Why slurmd pods of one Cluster keep their Nodes, by uid; the others do not, by a fresh answer of its Slurm.

    A pod that has registered and that Slurm does not know may hold a job that slurmctld has lost.

    Raises
    ------
    SlurmError, KubeError
        It does not answer, or the API server does not: nothing is proven.
    """
    slurm = slurm_of(cluster)
    if slurm is None or slurm.contact.state is not ContactState.READY:
        # Not asked: all others would wait until it does not answer.
        raise slurm_errors.Unreachable("it does not answer")
    by_nodeset: dict[tuple[Key, str], list[Pod]] = {}
    for obj in pods:
        key, uid = nodeset_of(obj), obj["metadata"]["labels"].get(labels.LABEL_NODESET_UID) or ""
        by_nodeset.setdefault((key, uid), []).append(pod_facts.read(obj, key[1]))
    names = [pod.node_name for some in by_nodeset.values() for pod in some]
    answer = await slurm_queries.everything(slurm, names, clock)
    calls = (with_registrations(kube, key, uid, some) for (key, uid), some in by_nodeset.items())
    found: dict[str, str] = {}
    for (key, _), known in zip(by_nodeset, await gather_limited(calls), strict=True):
        if isinstance(known, BaseException):
            raise known
        for pod in known:
            member = answer.join(pod, identity.tag(*key))
            words = why_not(member, now) or pod_state.why_machine_waits(member, slurm.contact.since, now)
            if words:
                found[pod.uid] = words
    return found


async def why_held(
    kube: Getter,
    host: str,
    pods: Iterable[Object],
    slurm_of: SlurmOf,
    bridged: Bridged,
    clock: Callable[[], float],
    now: datetime,
    why_not: WhyNot = pod_state.why_kept,
) -> list[str]:
    """Why a Kubernetes Node may hold a job, in words; empty if it is proven to hold none.

    Parameters
    ----------
    host
        The Node.
    pods
        All slurmd pods there.
    why_not
        What counts for each of them.
    """
    some = by_cluster(pods)
    answers = await gather_limited(
        reasons(kube, slurm_of, cluster, one, clock, now, why_not) for cluster, one in some.items()
    )
    found: list[str] = []
    for (namespace, name), answer in zip(some, answers, strict=True):
        if isinstance(answer, slurm_errors.SlurmError):
            found.append(f"Slurm of Cluster {namespace}/{name}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer.values()
    if not found and await held([host], bridged, clock):
        found.append(BRIDGED)
    return found


async def held(hosts: Iterable[str], bridged: Bridged, clock: Callable[[], float]) -> frozenset[str]:
    """Kubernetes Nodes that are nodes of Slurm themselves, and that may hold a job: its pods end with the machine.

    What keeps new jobs away from them is the cordon of the Node.
    """
    found: set[str] = set()
    asked: dict[str, tuple[Slurm, list[str]]] = {}
    for host, slurms in bridged(hosts).items():
        for slurm in slurms:
            if slurm is None or slurm.contact.state is not ContactState.READY:
                found.add(host)
            else:
                asked.setdefault(f"{slurm.namespace}/{slurm.name}", (slurm, []))[1].append(host)
    calls = (slurm_queries.everything(slurm, names, clock) for slurm, names in asked.values())
    for (cluster, (_, names)), answer in zip(asked.items(), await gather_limited(calls), strict=True):
        if isinstance(answer, BaseException):
            # Nothing is proven, by a bug neither; but that is not said to be Slurm's.
            if isinstance(answer, slurm_errors.SlurmError):
                logger.info("Kubernetes Nodes wait for the Slurm of Cluster %s: %s", cluster, answer)
            else:
                logger.error("Nodes of Cluster %s were not proven empty", cluster, exc_info=answer)
            found.update(names)
            continue
        for name in names:
            # slurmctld shows such a node as it was once, also after its last job: the jobs count.
            node, jobs = answer.nodes.get(name), answer.jobs.get(name)
            if jobs or (node is not None and not node.is_drain):
                found.add(name)
    return frozenset(found)


def nodeset_of(obj: Object) -> Key:
    """Namespace and name of the NodeSet of a slurmd pod."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["labels"].get(labels.LABEL_NODESET_NAME) or ""

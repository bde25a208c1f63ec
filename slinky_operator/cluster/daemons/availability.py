"""What keeps a daemon available while Kubernetes moves pods: places, budgets for evictions, and priority.

A daemon with one pod gets no PodDisruptionBudget: it could only forbid to drain a Node. Such a pod starts elsewhere
within seconds, and Slurm loses nothing meanwhile: jobs go on without slurmctld, slurmctld keeps what it has to tell
slurmdbd, and slurmdbd waits for its database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import Images, metadata
from slinky_operator.cluster.daemons.component import Materials
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODDISRUPTIONBUDGETS, STATEFULSETS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.shapes import spec_of


def apart(labels: Mapping[str, str]) -> dict[str, Any]:
    """Affinity of pods with these labels: on different Nodes, in different zones, as far as there are any."""
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": weight,
                    "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}},
                }
                for weight, key in ((100, "kubernetes.io/hostname"), (50, "topology.kubernetes.io/zone"))
            ]
        }
    }


def one_at_a_time(cluster: Cluster, component: str, replicas: int) -> Iterator[Child]:
    """The PodDisruptionBudget of a daemon with several pods; those that do not answer anyway may always be evicted."""
    if replicas > 1:
        spec = {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": naming.selector_labels(cluster, component)},
        }
        about = metadata(cluster, naming.daemon(cluster.name, component), component)
        yield Child(PODDISRUPTIONBUDGETS, {"metadata": about, "spec": spec})


def priority(images: Images) -> dict[str, Any]:
    """The PriorityClass in the spec of a pod, if the operator's settings name one."""
    return _class(images.priority_class)


def priority_after_slurmctld(materials: Materials, name: str) -> dict[str, Any]:
    """The same for a StatefulSet of one pod that is not tried before it is replaced.

    With a class that does not exist its pod would be deleted, and no other could be created. slurmctld's pod is tried
    (`cluster.rollout.preflight.replacement`): what its StatefulSet has got exists.

    Parameters
    ----------
    name
        Of the StatefulSet.
    """
    snapshot, wanted = materials.snapshot, materials.images.priority_class
    cluster, children = snapshot.cluster, snapshot.children
    own = children.get((STATEFULSETS.kind, name))
    slurmctld = children.get((STATEFULSETS.kind, naming.controller(cluster.name)))
    has_another = spec_of(cluster.spec.controller.template).get("priorityClassName")
    if own is None or slurmctld is None or has_another or _class_of(slurmctld) == wanted:
        return _class(wanted)
    return _class(_class_of(own))


def _class(name: str) -> dict[str, Any]:
    return {"priorityClassName": name} if name else {}


def _class_of(workload: Object) -> str:
    return str(workload["spec"]["template"]["spec"].get("priorityClassName") or "")

"""What users and administrators do meanwhile, as data; each is one command, which may be refused or get no answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from hack.installing.operator import NAMESPACE, RELEASE
from slinky_api import labels
from tests.campaign.lanes import edits
from tests.campaign.lanes.jobs import NODES
from tests.campaign.lanes.keys import MADE_SECRETS
from tests.support.slurm_in_kubernetes import SlurmInKubernetes

BY_HAND: Final = "campaign"
"""Reason of drains that an administrator makes."""

DELETE_SLURMCTLD: Final = "delete slurmctld's pod"

EDIT_CLUSTER: Final = "edit a field of the Cluster"

OWNER_LABELS: Final = (labels.LABEL_CLUSTER_UID, labels.LABEL_TOKEN_UID)
"""Labels with the uid of an owner: what jobs need of a Cluster has no owner references, but the first of these."""

STATEFUL: Final = ("controller", "accounting", "database")
"""Ends of the names of the StatefulSets of a Cluster."""

SOON: Final = 30.0
"""Seconds that a command may take: without an API server it would wait for minutes."""


@dataclass(frozen=True, slots=True)
class Action:
    """One kind of action.

    Attributes
    ----------
    do
        Does it, with the values that were drawn; returns what was said.
    choices
        Values to draw from, by name.
    weight
        How often, compared with others.
    """

    do: Callable[[SlurmInKubernetes, Mapping[str, Any]], str]
    choices: Mapping[str, tuple[Any, ...]]
    weight: int = 2
    edits: str = ""
    """Plural name of the kind whose fields are edited."""

    def draw(self, random: Random) -> dict[str, Any]:
        drawn = {name: random.choice(choices) for name, choices in self.choices.items()}
        return {**drawn, **edits.draw(random, self.edits)} if self.edits else drawn


def _scale(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return slurm.kube("scale", f"nodeset/{values['nodeset']}", f"--replicas={values['replicas']}", timeout=SOON)


def _update(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    about = {"template": {"metadata": {"annotations": {"campaign": str(values["revision"])}}}}
    return patch(slurm, "nodeset", values["nodeset"], about)


def _delete(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return slurm.kube("delete", "nodeset", values["nodeset"], "--wait=false", timeout=SOON)


def _cordon(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return slurm.kubectl("cordon", values["host"], timeout=SOON)


def _uncordon(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return slurm.kubectl("uncordon", "node-1", "node-2", timeout=SOON)


def _drain(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return in_slurm(slurm, "scontrol", "update", f"nodename={values['node']}", "state=drain", f"reason={BY_HAND}")


def _undrain(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return in_slurm(slurm, "scontrol", "update", f"nodename={values['node']}", "state=undrain")


def _evict(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    about = {"name": values["node"], "namespace": slurm.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
    path = f"/api/v1/namespaces/{slurm.namespace}/pods/{values['node']}/eviction"
    return slurm.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body), timeout=SOON)


def _edit_cluster(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return patch(slurm, "cluster", slurm.name, values["spec"])


def _edit_nodeset(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return patch(slurm, "nodeset", values["nodeset"], values["spec"])


def _take_labels(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    labels = ("app.kubernetes.io/component-", "app.kubernetes.io/instance-", "app.kubernetes.io/managed-by-")
    return slurm.kube("label", "pod", values["node"], *labels, timeout=SOON)


def _take_owners(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    body = '{"metadata":{"ownerReferences":null}}'
    return slurm.kube("patch", "pod", values["node"], "--type=merge", f"--patch={body}", timeout=SOON)


def _take_owner(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    """An object names its owner no more, neither in references nor in labels; returns what it had."""
    name = values["name"].format(cluster=slurm.name)
    about = slurm.get(values["kind"], name)["metadata"]
    taken = owner_marks(about)
    body = {"metadata": {"ownerReferences": None, "labels": dict.fromkeys(OWNER_LABELS)}}
    said = slurm.kube("patch", values["kind"], name, "--type=merge", f"--patch={json.dumps(body)}", timeout=SOON)
    return f"{said.strip()}, without {', '.join(taken) or 'anything that it had'}"


def owner_marks(about: Mapping[str, Any]) -> list[str]:
    """What names the owner of an object, from its metadata."""
    references = [f"its owner {one['kind']} {one['name']}" for one in about.get("ownerReferences") or ()]
    return references + [f"label {one}" for one in OWNER_LABELS if one in (about.get("labels") or {})]


def _take_finalizers(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    body = '{"metadata":{"finalizers":null}}'
    return slurm.kube("patch", "nodeset", values["nodeset"], "--type=merge", f"--patch={body}", timeout=SOON)


def _delete_daemon(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    return slurm.kube("delete", "pod", f"{slurm.name}-{values['pod']}", "--wait=false", timeout=SOON)


def _delete_operator(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    selector = "--selector=app.kubernetes.io/name=slurm-operator"
    return slurm.kubectl("delete", "pods", f"--namespace={NAMESPACE}", selector, "--wait=false", timeout=SOON)


def _take_lease(slurm: SlurmInKubernetes, values: Mapping[str, Any]) -> str:
    """The Lease of the leader names somebody else, who never renews it."""
    body = '{"spec":{"holderIdentity":"campaign"}}'
    lease = ("patch", "lease", RELEASE, f"--namespace={NAMESPACE}", "--type=merge", f"--patch={body}")
    return slurm.kubectl(*lease, timeout=SOON)


def patch(slurm: SlurmInKubernetes, kind: str, name: str, spec: Mapping[str, Any]) -> str:
    """Merge fields into a spec, as `kubectl edit` would."""
    body = json.dumps({"spec": spec})
    return slurm.kube("patch", kind, name, "--type=merge", f"--patch={body}", timeout=SOON)


def in_slurm(slurm: SlurmInKubernetes, *argv: str, stdin: str | None = None, timeout: float = SOON) -> str:
    """Run a command beside slurmctld, once: in a pod with a client of Slurm that no fault is about there is none."""
    pod = f"{slurm.name}-controller-0"
    command = ("exec", "--stdin", pod, "--container=slurmctld", "--", "timeout", str(int(timeout)), *argv)
    return slurm.kubectl("--namespace", slurm.namespace, *command, stdin=stdin or "", timeout=timeout + 5)


_NODES: Final = tuple(f"{name}-{number}" for name, count in NODES.items() for number in range(count))

CLUSTER_EDITS: Final[tuple[dict[str, Any], ...]] = (
    {"extraConf": "KillWait=10"},
    {"extraConf": "SlurmctldDebug=verbose"},
    {"extraConf": "NoSuchKey=1"},
    {"extraConf": "SelectType=select/linear"},
    {"extraConf": "PartitionName=x Nodes=nosuch"},
    {"maxNodeCount": 2},
    {"partitions": []},
    {"partitions": [{"name": "both", "nodeSets": ["a", "b"], "config": "Default=YES MaxTime=1"}]},
    {"partitions": [{"name": "both", "nodeSets": ["a"], "config": "Default=YES"}]},
    {"controller": {"image": "localhost/slinky/nosuch:1"}},
)
"""Edits that are known to need care: limits, partitions under jobs, files that slurmctld refuses, images."""

NODESET_EDITS: Final[tuple[dict[str, Any], ...]] = (
    {"partition": {"config": "MaxTime=1"}},
    {"partition": {"enabled": False}},
    {"partition": {"config": "Nosuch=1"}},
    {"features": ["x"]},
    {"gres": "craft:1"},
    {"weight": 7},
    {"extraConf": "Nosuch=1"},
    {"image": "localhost/slinky/nosuch:1"},
    {"resources": {"limits": {"memory": "300Mi"}}},
    {"updateStrategy": {"type": "OnDelete"}},
)

ACTIONS: Final[Mapping[str, Action]] = {
    "scale": Action(_scale, {"nodeset": tuple(NODES), "replicas": (0, 1, 2, 3, 4)}, 5),
    "update": Action(_update, {"nodeset": tuple(NODES), "revision": tuple(range(1000))}, 3),
    "delete NodeSet": Action(_delete, {"nodeset": tuple(NODES)}, 1),
    "cordon": Action(_cordon, {"host": ("node-1", "node-2")}),
    "uncordon": Action(_uncordon, {}),
    "drain by hand": Action(_drain, {"node": _NODES}),
    "undrain by hand": Action(_undrain, {"node": _NODES}),
    "evict": Action(_evict, {"node": _NODES}),
    "edit Cluster": Action(_edit_cluster, {"spec": CLUSTER_EDITS}, 3),
    "edit NodeSet": Action(_edit_nodeset, {"nodeset": tuple(NODES), "spec": NODESET_EDITS}, 3),
    EDIT_CLUSTER: Action(_edit_cluster, {}, 4, edits="clusters"),
    "edit a field of a NodeSet": Action(_edit_nodeset, {"nodeset": tuple(NODES)}, 4, edits="nodesets"),
    "take labels off a pod": Action(_take_labels, {"node": _NODES}, 1),
    "take the owners off a pod": Action(_take_owners, {"node": _NODES}, 1),
    "take the owner off a StatefulSet": Action(
        _take_owner, {"kind": ("statefulset",), "name": tuple(f"{{cluster}}-{one}" for one in STATEFUL)}, 1
    ),
    "take the owner off a Secret": Action(_take_owner, {"kind": ("secret",), "name": MADE_SECRETS}, 1),
    "take the owner off a daemon's pod": Action(
        _take_owner, {"kind": ("pod",), "name": tuple(f"{{cluster}}-{one}-0" for one in STATEFUL)}, 1
    ),
    "take the finalizers off a NodeSet": Action(_take_finalizers, {"nodeset": tuple(NODES)}, 1),
    DELETE_SLURMCTLD: Action(_delete_daemon, {"pod": ("controller-0",)}, 1),
    "delete the operator's pods": Action(_delete_operator, {}, 1),
    "another leader": Action(_take_lease, {}, 1),
}

"""What a pod is, whatever labels it has.

Users who may edit a pod or its template can give it any label. So a label only finds candidates, and what is
decided about them follows from their owners and names, which nobody changes by accident: a slurmd pod has a NodeSet
and its guard for owners from the moment it is made, a daemon's pod has a StatefulSet or a ReplicaSet, and the pod of a
preflight has none. What is neither is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.common import GROUP

OWN_PREFIXES: Final = (
    labels.NODESET_PREFIX,
    labels.CLUSTER_PREFIX,
    labels.LOGINSET_PREFIX,
    "statefulset.kubernetes.io/",
)
"""Labels that identify the owner of a pod, or that the operator's Services select by: no user template may set them."""

GUARD_PREFIX: Final = "nodeset-"
"""How names of guards begin, the ConfigMaps that own the pods of a NodeSet beside it."""

_OF_SLURMD: Final = frozenset({"NodeSet", "ConfigMap"})
"""Kinds of owners: the NodeSet, and its guard, which stays when the garbage collector has taken the NodeSet off."""

_OF_DAEMONS: Final = frozenset({"StatefulSet", "ReplicaSet"})


def owners(obj: Mapping[str, Any]) -> frozenset[str]:
    """Kinds of a pod's owners."""
    return frozenset(str(reference.get("kind")) for reference in obj["metadata"].get("ownerReferences") or ())


def is_slurmd(obj: Mapping[str, Any]) -> bool:
    """Whether a pod is a NodeSet's; one without any owner is, if its labels say so."""
    kinds = owners(obj)
    if kinds:
        return not kinds.isdisjoint(_OF_SLURMD)
    own = obj["metadata"].get("labels") or {}
    return labels.LABEL_NODESET_UID in own or labels.LABEL_CLUSTER_UID in own


def is_of_nodeset(owner: Mapping[str, Any]) -> bool:
    """Whether an owner is a NodeSet or a guard: more than its kind says so, where others may have such owners."""
    kind, group = owner.get("kind"), str(owner.get("apiVersion")).partition("/")[0]
    if kind == "NodeSet":
        return group == GROUP
    return kind == "ConfigMap" and str(owner.get("name")).startswith(GUARD_PREFIX)


def nodeset_uid(obj: Mapping[str, Any]) -> str:
    """Uid of the NodeSet that controls a pod, by its owners; empty if none does, whatever its labels."""
    found = obj["metadata"].get("ownerReferences") or ()
    return next((str(one.get("uid")) for one in found if one.get("controller") and one.get("kind") == "NodeSet"), "")


def may_be_daemon(obj: Mapping[str, Any]) -> bool:
    """Whether a pod can be that of slurmctld or slurmrestd."""
    return not is_slurmd(obj) and owners(obj) <= _OF_DAEMONS


def may_be_preflight(obj: Mapping[str, Any]) -> bool:
    """Whether a pod can be that of a preflight."""
    return not is_slurmd(obj) and not owners(obj)


def node_name(obj: Mapping[str, Any]) -> str:
    """Name of a pod's node in Slurm: its host name, which is the pod's own name unless the spec sets another."""
    return str((obj.get("spec") or {}).get("hostname") or obj["metadata"]["name"])

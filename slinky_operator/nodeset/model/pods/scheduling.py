"""On which Kubernetes Nodes a pod may run: node selector, required node affinity, taints and tolerations.

The rules are those of the scheduler, and the tolerations added are those that DaemonSets get. They are evaluated here,
since with one pod per matching Node these Nodes must be known beforehand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, Taint

NAME_FIELD: Final = "metadata.name"
"""The only field of a Node that a selector may name."""

OUT_OF_REACH: Final[Sequence[Mapping[str, str]]] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
)
"""Tolerated by every slurmd pod: on an unreachable Node it may still hold jobs, and is not evicted for that."""

ANY_EVICTION: Final[Mapping[str, str]] = {"operator": "Exists", "effect": "NoExecute"}
"""Tolerated by a pod that belongs to one Node, since Kubernetes would end the pod and its jobs at once when its Node
gets such a taint. The operator drains it first and deletes it then; so `fit` does not count this toleration."""

TOLERATIONS: Final[Sequence[Mapping[str, str]]] = (
    *OUT_OF_REACH,
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    # Follows a cordon sooner or later; the cordon itself is what counts.
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
"""Tolerated by every pod that belongs to one Node."""

_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {"Gt": operator.gt, "Lt": operator.lt}


class Fit(Enum):
    """Whether a pod may run on a Node."""

    RUN = "a new one may be put there"
    STAY = "one that is there may stay, but none is put there"
    NO = "none may be there"


def fit(pod_spec: Mapping[str, Any], host: KubernetesNode) -> Fit:
    """Return whether a pod may run on a Node.

    Parameters
    ----------
    pod_spec
        The spec in the user's template; `TOLERATIONS` are added.
    host
        The Node.
    """
    if not _is_selected(pod_spec, host):
        return Fit.NO
    tolerations = [*(pod_spec.get("tolerations") or ()), *TOLERATIONS]
    untolerated = {taint.effect for taint in host.taints if not _is_tolerated(taint, tolerations)}
    if "NoExecute" in untolerated:
        return Fit.NO
    # A kubelet that is short of disk turns new pods away, whatever they tolerate: one would be created for ever.
    keeps_out = host.cordoned or host.disk_pressure or untolerated & _KEEPS_OUT
    return Fit.STAY if keeps_out else Fit.RUN


def affinity_to(host: str) -> dict[str, Any]:
    """A required node affinity to one Node."""
    expression = {"key": NAME_FIELD, "operator": "In", "values": [host]}
    return {"nodeSelectorTerms": [{"matchFields": [expression]}]}


def pinned_to(pod_spec: Mapping[str, Any]) -> str:
    """The Node in a pod's affinity, if it has the form that the operator writes; empty otherwise."""
    terms = required_terms(pod_spec) or ()
    names = {
        value
        for term in terms
        for expression in term.get("matchFields") or ()
        if expression.get("key") == NAME_FIELD and expression.get("operator") == "In"
        for value in expression.get("values") or ()
    }
    return names.pop() if len(names) == 1 else ""


def _is_selected(pod_spec: Mapping[str, Any], host: KubernetesNode) -> bool:
    selector: Mapping[str, str] = pod_spec.get("nodeSelector") or {}
    if any(host.labels.get(key) != value for key, value in selector.items()):
        return False
    terms = required_terms(pod_spec)
    return terms is None or any(_matches(term, host) for term in terms)


def required_terms(pod_spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """Terms of which one must match; None without such an affinity."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def _matches(term: Mapping[str, Any], host: KubernetesNode) -> bool:
    """Whether all expressions of a term hold; a term without any matches nothing."""
    on_labels, on_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not on_labels and not on_fields:
        return False
    fields = {NAME_FIELD: host.name}
    return all(_holds(label, host.labels) for label in on_labels) and all(_holds(field, fields) for field in on_fields)


def _holds(expression: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    value = values.get(str(expression.get("key")))
    wanted: Sequence[str] = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as word:
            return value is not None and len(wanted) == 1 and _compare(word, value, wanted[0])
        case _:
            return False


def _compare(word: str, value: str, wanted: str) -> bool:
    try:
        return _NUMBERS[word](int(value), int(wanted))
    except ValueError:
        # A label that is not a number is neither greater nor less; the scheduler does the same.
        return False


def _is_tolerated(taint: Taint, tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    if toleration.get("operator") == "Exists":
        return True
    # Without a key only the operator Exists is valid.
    return bool(toleration.get("key")) and (toleration.get("value") or "") == taint.value

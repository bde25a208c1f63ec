"""Which Node an ordinal belongs to, if `spec.pinToNode` is set: the one its pod first ran on.

It is in the NodeSet's status, which outlives pods. Once recorded it is not changed: not by a scale-in, and not by an
absent Node, for which the pod then waits. Switching `pinToNode` off clears all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model.pods.pod_facts import Pod


def known(nodeset: NodeSet) -> Mapping[str, str]:
    """The recorded Node of each ordinal; empty if nothing is pinned."""
    if not nodeset.spec.pin_to_node or nodeset.mode is not ScalingMode.STATEFUL_SET:
        return {}
    return nodeset.status.ordinal_to_node or {}


def remembered(nodeset: NodeSet, pods: Iterable[Pod]) -> dict[str, str] | None:
    """What to record now; None for nothing.

    Parameters
    ----------
    nodeset
        With what was recorded before.
    pods
        All its pods, including those being deleted.
    """
    if not nodeset.spec.pin_to_node or nodeset.mode is not ScalingMode.STATEFUL_SET:
        return None
    found = dict(known(nodeset))
    for pod in pods:
        if pod.ordinal is not None and pod.host:
            _ = found.setdefault(str(pod.ordinal), pod.host)
    return dict(sorted(found.items(), key=lambda item: int(item[0]))) or None

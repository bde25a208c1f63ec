"""Which Node an ordinal belongs to, where `spec.pinToNode` asks for that: the one its pod first ran on.

It stands in the NodeSet's status, which outlives pods. What is known once is not changed: not by a scale-in, and not by
a Node that is away, on which the pod then waits. Switching `pinToNode` off forgets all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slinky_api.v1alpha1.nodeset import NodeSet, ScalingMode
from slinky_operator.nodeset.model.pod_facts import Pod


def known(nodeset: NodeSet) -> Mapping[str, str]:
    """The Node of each ordinal, as far as it has been written down; empty where nothing is pinned."""
    if not nodeset.spec.pin_to_node or nodeset.mode is not ScalingMode.STATEFUL_SET:
        return {}
    return nodeset.status.ordinal_to_node or {}


def remembered(nodeset: NodeSet, pods: Iterable[Pod]) -> dict[str, str] | None:
    """What is to be written down now; None for nothing.

    Parameters
    ----------
    nodeset
        With what was written before.
    pods
        All its pods, those on their way out too.
    """
    if not nodeset.spec.pin_to_node or nodeset.mode is not ScalingMode.STATEFUL_SET:
        return None
    found = dict(known(nodeset))
    for pod in pods:
        if pod.ordinal is not None and pod.host:
            _ = found.setdefault(str(pod.ordinal), pod.host)
    return dict(sorted(found.items(), key=lambda item: int(item[0]))) or None

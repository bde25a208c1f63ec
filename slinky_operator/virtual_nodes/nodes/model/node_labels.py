"""Labels of a virtual Node: those by which wlm-operator's manifests select, and the site's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from slinky_api import labels
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

WLM: Final = "wlm.sylabs.io/"
"""Prefix of the labels that wlm-operator's configurator wrote."""

NO_LIMIT: Final = 2**31 - 1
"""Seconds in the label of a partition without a time limit: manifests of wlm-operator compare with `Gt`, which never
holds for a label that is not there."""

LONGEST: Final = 63
"""Characters of a label's value."""

_NUMBERS: Final = ("nodes", "cpu-per-node", "mem-per-node", "wall-time")

_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"

_FIXED: Final[Mapping[str, str]] = {
    "type": "virtual-kubelet",
    "kubernetes.io/role": "agent",
    "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
    "node.kubernetes.io/exclude-from-external-load-balancers": "true",
}
"""No kubernetes.io/os: without it, kube-proxy, network plugins and their like stay away."""

_OWN: Final = frozenset({*_FIXED, *(WLM + name for name in ("partition", *_NUMBERS))})
_OF_KUBERNETES: Final = re.compile(r"(?:.*\.)?(?:kubernetes|k8s)\.io/.*")
_KEY: Final = re.compile(
    r"(?:(?=[^/]{1,253}/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def is_value(text: str) -> bool:
    """Whether a text can be the value of a label."""
    return _VALUE.fullmatch(text) is not None


def why_refused(key: str, value: str) -> str:
    """Why a label of spec.jobs.virtualNodes.labels is not written; empty if it is."""
    if not _KEY.fullmatch(key):
        return "is no name of a label"
    if _OF_KUBERNETES.fullmatch(key):
        return "is a label of Kubernetes: it decides which system pods come to a Node"
    if key in _OWN or key.startswith(labels.VIRTUAL_NODE_PREFIX):
        return "is written by the operator"
    return "" if is_value(value) else f"has a value that no label can have: {value!r}"


def node_labels(
    name: str,
    facts: PartitionFacts,
    *,
    features: Mapping[str, str],
    site: Mapping[str, str],
    zone: str | None,
) -> dict[str, str]:
    """All labels of a Node.

    Parameters
    ----------
    name
        Of the Node.
    facts
        What its partition has.
    features
        Those of the partition configuration: quantities by name.
    site
        Those of the spec, without the refused ones.
    zone
        Value of topology.kubernetes.io/zone.
    """
    numbers = dict(
        zip(
            _NUMBERS,
            (facts.job_nodes, facts.node_cpus, facts.node_memory_mib, facts.wall_time or NO_LIMIT),
            strict=True,
        )
    )
    return {
        **site,
        **{WLM + feature: quantity for feature, quantity in features.items()},
        **_FIXED,
        # A longer one is no value of a label; then nothing can be selected by it.
        **({_HOSTNAME: name} if len(name) <= LONGEST else {}),
        **({_ZONE: zone} if zone else {}),
        WLM + "partition": facts.name,
        # None where Slurm has no node for it yet: a job that asks for one does not fit.
        **{WLM + kind: str(number) for kind, number in numbers.items() if number},
        labels.LABEL_VIRTUAL_NODE: facts.name,
    }

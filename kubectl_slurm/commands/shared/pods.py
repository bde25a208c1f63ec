"""Pods that commands look for by what Slurm calls them."""

from __future__ import annotations

import re
from typing import Final

from kubectl_slurm.access.kinds import PODS
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.errors import ObjectNotFound
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import PodFacts
from slinky_api import labels

_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def pod_of_node(kube: Kubernetes, name: str) -> PodFacts:
    """The pod of a node in Slurm: it has the node's name, or the node's name as its host name; else ObjectNotFound."""
    try:
        return reading.pod(kube.get(PODS, name))
    except ObjectNotFound:
        if _LABEL.fullmatch(name) is None:
            raise
        found = kube.objects(PODS, selector=f"{labels.LABEL_POD_HOSTNAME}={name}", most=20)
        named = [pod for pod in map(reading.pod, found) if pod.slurm_node == name]
        if not named:
            raise
        return named[0]

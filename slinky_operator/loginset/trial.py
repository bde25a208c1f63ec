"""Whether sshd accepts a configuration: a disposable pod with the image of login pods runs `sshd -t`. Pure.

A pod that has refused one stays, with sshd's words, until the configuration changes: it is the record of the refusal.
So it has another life than trials of a Cluster (`cluster.trials`), whose results are remembered and whose pods go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.kube.objects import Object
from slinky_operator.loginset import names
from slinky_operator.loginset.bodies import objects, pod
from slinky_operator.reconcile import pod_trouble
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import ended

ANNOTATION_CONFIG: Final = labels.LOGINSET_PREFIX + "sshd-config"
"""On the pod: the text."""

ANNOTATION_TRIED: Final = labels.LOGINSET_PREFIX + "sshd-config-tried"
"""On the ConfigMap: digest of the configuration and the image that a trial has accepted."""


class TrialResult(Enum):
    """The outcome of a trial."""

    ACCEPTED = auto()
    REFUSED = auto()
    LOST = auto()
    """It ended without an answer, for example because its Node went; it is repeated."""
    UNDECIDED = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial has shown."""

    outcome: TrialResult
    words: str = ""
    """sshd's, or why the pod does not start."""


def digest(text: str, template: Mapping[str, Any]) -> str:
    """Identify what is tried: the text, and the image that has the sshd."""
    image = next(one["image"] for one in template["spec"]["containers"] if one["name"] == names.LOGIN)
    return hashlib.sha256(f"{image}\0{text}".encode()).hexdigest()[:12]


def body(loginset: LoginSet, cluster: Cluster, template: Mapping[str, Any], text: str, what: str) -> Object:
    """The pod."""
    metadata = objects.metadata(loginset, names.trial(loginset.name, what))
    own = {**naming.pod_labels(cluster, names.COMPONENT_TRIAL), **names.labels_of(loginset)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": own, "annotations": {ANNOTATION_CONFIG: text}},
        "spec": pod.trial_spec(template, ANNOTATION_CONFIG),
    }


def verdict(obj: Object, wall: datetime) -> Verdict:
    """What a trial's pod shows."""
    status = obj.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return Verdict(TrialResult.ACCEPTED)
    if phase == "Failed":
        words = next((end.get("message") or "" for end in ended(obj).values() if end.get("exitCode")), "")
        return Verdict(TrialResult.REFUSED, words) if words.strip() else Verdict(TrialResult.LOST)
    troubles = pod_trouble.of_pod("sshd's trial", obj, wall)
    return Verdict(TrialResult.UNDECIDED, "; ".join(map(str, troubles)))

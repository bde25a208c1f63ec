"""Who owns a Slurm node: decided by its record, never by its name.

A slurmd of the operator registers with the uid of its pod (`--instance-id`) and with `<namespace>/<nodeset>`
(`--extra`). Slurm 24.11 updates both with every registration; 26.05 keeps those of the first one as long as the record
exists (measured). So a record that outlives its pod, such as one with somebody else's drain, keeps the uid of the first
pod. Then the start time of its slurmd decides: no slurmd of an earlier pod can have started after the container of this
one, and both times come from the same machine's clock.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from slurm_client.models import Node

CLOCK_GRAIN: Final = timedelta(seconds=1)
"""Both times are cut to whole seconds."""


class RecordOwnership(StrEnum):
    """How a record is related to the pod of the same name."""

    OURS = "ours"
    """Created by this pod's slurmd, or taken over by it."""

    PREDECESSOR = "predecessor"
    """Created by an earlier pod of the same NodeSet; this pod's slurmd has not registered."""

    FOREIGN = "foreign"
    """Owned by somebody else: a static node, another NodeSet's, another namespace's."""


def tag(namespace: str, nodeset: str) -> str:
    """The value of `extra` in the records of a NodeSet."""
    return f"{namespace}/{nodeset}"


def is_tagged(node: Node, owner: str) -> bool:
    """Whether the record is dynamic and was created by a pod of the NodeSet with that tag."""
    # Most nodes of a large Slurm are not of that NodeSet: what takes least is looked at first.
    return node.extra == owner and node.is_dynamic and not node.is_external


def bond(node: Node, *, owner: str, pod_uid: str, slurmd_started_at: datetime | None) -> RecordOwnership:
    """Return whether a record belongs to a pod.

    Parameters
    ----------
    node
        The record of the pod's node name.
    owner
        Tag of the pod's NodeSet.
    pod_uid
        Uid of the pod.
    slurmd_started_at
        When its slurmd container last started; None if it does not run.
    """
    if not is_tagged(node, owner):
        return RecordOwnership.FOREIGN
    if node.instance_id == pod_uid:
        return RecordOwnership.OURS
    if slurmd_started_at is None or node.slurmd_start_time is None:
        return RecordOwnership.PREDECESSOR
    return (
        RecordOwnership.OURS
        if node.slurmd_start_time >= slurmd_started_at - CLOCK_GRAIN
        else RecordOwnership.PREDECESSOR
    )


def has_started_since(node: Node | None, ended_at: datetime | None) -> bool:
    """Whether the slurmd of a record has started after one of this name had ended: it is none of a pod that is known.

    Another Kubernetes cluster may have a NodeSet of this name in the same Slurm.
    """
    started = node.slurmd_start_time if node is not None else None
    return started is not None and ended_at is not None and started > ended_at + CLOCK_GRAIN


def static_hint(node: Node) -> str:
    """What to do about somebody else's record, where slurm.conf has it: a slurmd of that name would not start."""
    if node.is_external:
        return (
            ": no slurmd belongs to it, as to a Kubernetes Node on which Slurm places pods (spec.jobs.bridge of the "
            "Cluster). Give the NodeSet, or the Kubernetes Node, another name"
        )
    if node.is_dynamic:
        return ""
    return (
        ": it is a static node, and pods register as dynamic ones. Take it out of slurm.conf (NodeName=), and collect"
        " the nodes of pods by NodeSet=… Feature=…, with the name of their NodeSet as feature"
    )


def is_named_in(node: Node, namespace: str, pod: str) -> bool:
    """Whether a record without any mark belongs to a pod, by the comment that Slinky's operator wrote."""
    if not node.is_dynamic or node.is_external or node.extra or not node.comment:
        return False
    try:
        about = json.loads(node.comment)
    except (ValueError, RecursionError):
        return False
    return isinstance(about, dict) and about.get("namespace") == namespace and about.get("podName") == pod

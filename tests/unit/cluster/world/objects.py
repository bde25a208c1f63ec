"""Objects of a world: what users write, and the pods that controllers and kubelets make of what the operator writes.

What there is of them is in `state`, when they appear in `effects`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slinky_operator.slurm.releases import Release

WALL = datetime(2026, 1, 1, tzinfo=UTC)
"""When a world begins, and all in it is made."""


def cluster_object(spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "slurm", "namespace": "here", "uid": "cluster-uid", "generation": 1, **metadata},
        "spec": dict(spec or {}),
    }


def node_set_object(name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name, "namespace": "here", "uid": f"uid-of-{name}", **metadata},
        "spec": {"clusterName": "slurm", "replicas": 1, **(spec or {})},
    }


def controller_pod(workload: Mapping[str, Any]) -> dict[str, Any]:
    """slurmctld's pod as its StatefulSet makes it."""
    notes = dict(workload["spec"]["template"]["metadata"].get("annotations") or {})
    return {
        "metadata": {"name": f"{workload['metadata']['name']}-0", "namespace": "here", "uid": "pod-uid"}
        | ({"annotations": notes} if notes else {}),
        "status": {"podIP": "10.0.0.1"},
    }


def pod_of_a_trial(body: Mapping[str, Any], refusal: str, version: str) -> dict[str, Any]:
    """The pod of a trial that has ended.

    Parameters
    ----------
    refusal
        What the daemon says of the configuration; empty if it takes it.
    version
        What it says of itself then.
    """
    ended = {"exitCode": 1 if refusal else 0, "message": f"slurmctld: fatal: {refusal}" if refusal else version}
    pod = _made(body)
    pod["status"] = {
        "phase": "Failed" if refusal else "Succeeded",
        "containerStatuses": [{"name": "slurmctld", "state": {"terminated": ended}}],
    }
    return pod


def pod_of_images(body: Mapping[str, Any], releases: Mapping[str, str], otherwise: str) -> dict[str, Any]:
    """A pod whose images have said their releases: their tags, unless another is known.

    Parameters
    ----------
    releases
        What images say, by name; empty for one without Slurm.
    otherwise
        What an image says that has no tag.
    """
    pod = _made(body)
    ends = []
    for one in pod["spec"]["containers"]:
        release = releases.get(one["image"], str(Release.of_image(one["image"]) or otherwise))
        said = {"message": f"slurm-wlm {release}"} if release else {"exitCode": 127, "message": "not found"}
        ends.append({"name": one["name"], "state": {"terminated": {"exitCode": 0, **said}}})
    pod["status"] = {"phase": "Succeeded", "containerStatuses": ends}
    return pod


def _made(body: Mapping[str, Any]) -> dict[str, Any]:
    """A pod as the API server makes it."""
    pod = copy.deepcopy(dict(body))
    pod["metadata"] |= {"uid": f"uid-of-{pod['metadata']['name']}", "creationTimestamp": WALL.isoformat()}
    return pod

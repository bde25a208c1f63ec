"""A pod is classified by its owners, and by labels only if there are none."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.slurm.pods import pod_ownership


def pod(*owners: str, **own: str) -> dict[str, Any]:
    references = [{"kind": kind, "name": "x", "uid": "u"} for kind in owners]
    return {"metadata": {"name": "p", "labels": own, "ownerReferences": references}}


OF_NODESET = {labels.LABEL_NODESET_UID: "n", labels.LABEL_CLUSTER_UID: "c"}


@pytest.mark.parametrize(
    "found",
    [
        pod("NodeSet", "ConfigMap", **OF_NODESET),
        pod("NodeSet"),
        # The garbage collector has taken the NodeSet off in a foreground deletion.
        pod("ConfigMap"),
        pod(**OF_NODESET),
    ],
)
def test_a_pod_of_a_nodeset_is_never_a_daemon_nor_a_preflight(found: dict[str, Any]) -> None:
    assert pod_ownership.is_slurmd(found)
    assert not pod_ownership.may_be_daemon(found)
    assert not pod_ownership.may_be_preflight(found)


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_a_daemon_is_none_of_a_nodesets_pods_whatever_its_labels(kind: str) -> None:
    found = pod(kind, **OF_NODESET)
    assert not pod_ownership.is_slurmd(found)
    assert pod_ownership.may_be_daemon(found)
    assert not pod_ownership.may_be_preflight(found)


def test_a_pod_of_somebody_elses_is_nothing_of_ours() -> None:
    found = pod("Job", **OF_NODESET)
    assert not pod_ownership.is_slurmd(found)
    assert not pod_ownership.may_be_daemon(found)
    assert not pod_ownership.may_be_preflight(found)

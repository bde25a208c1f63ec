"""Updates of slurmd pods wait for their Cluster's upgrade."""

from __future__ import annotations

from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption import cluster_upgrade


def cluster(release: str = "24.11.5", *, upgrading: bool = False, **spec: Any) -> Cluster:
    condition = {
        "type": "Progressing", "status": "True", "reason": "Upgrading" if upgrading else "ConfigPending",
        "message": "slurmdbd gets x", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return Cluster.parse(
        {
            "metadata": {"name": "slurm", "namespace": "here", "uid": "c"},
            "spec": spec,
            "status": {"slurmVersion": release, "conditions": [condition]},
        }
    )


def test_a_newer_slurmd_waits_and_one_of_the_same_release_does_not() -> None:
    assert cluster_upgrade.wait_of(cluster(), "slurmd:26.05.5") == (
        "image slurmd:26.05.5 is of Slurm 26.05.5, and slurmctld, which must not be older than slurmd, of Slurm "
        "24.11.5. Change the images of Cluster slurm first"
    )
    for image in ("slurmd:24.11.9", "slurmd:24.05.1", "slurmd:latest", ""):
        assert cluster_upgrade.wait_of(cluster(), image) == ""


def test_every_update_waits_while_the_cluster_is_upgraded() -> None:
    for image in ("slurmd:24.11.5", "slurmd:latest", ""):
        assert cluster_upgrade.wait_of(cluster(upgrading=True), image) == (
            "Cluster slurm is being upgraded: slurmdbd gets x"
        )


def test_nothing_is_known_of_a_slurm_elsewhere_or_one_that_never_answered() -> None:
    elsewhere = cluster(server="http://there:6820", token={"secretRef": "token"})
    assert cluster_upgrade.wait_of(elsewhere, "slurmd:26.05.5") == ""
    assert cluster_upgrade.wait_of(cluster(""), "slurmd:26.05.5") == ""


def test_an_update_that_waits_is_paused_for_the_pass_only() -> None:
    nodeset = NodeSet.parse(
        {"metadata": {"name": "a", "namespace": "here", "uid": "a"}, "spec": {"clusterName": "slurm", "replicas": 1}}
    )
    assert cluster_upgrade.held(nodeset, "") is nodeset
    assert cluster_upgrade.held(nodeset, "why").spec.update_strategy.rolling_update.paused
    assert not nodeset.spec.update_strategy.rolling_update.paused

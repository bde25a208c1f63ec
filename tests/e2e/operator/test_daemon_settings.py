"""What a Cluster says of the Services of its daemons, in a real Kubernetes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster without nodes."""
    instance = new_slurm("settings")
    instance.create(
        controller={
            "image": instance.image("slurmctld"),
            "service": {"spec": {"type": "NodePort"}},
        }
    )
    instance.wait_ready()
    return instance


def change(slurm: SlurmInKubernetes, controller: dict[str, Any]) -> None:
    patch = json.dumps({"spec": {"controller": controller}})
    slurm.kube("patch", "cluster.slinky.slurm.net", slurm.name, "--type=merge", "--patch", patch)


def test_slurmctld_is_reached_by_a_second_service(slurm: SlurmInKubernetes) -> None:
    inside, outside = (slurm.get("service", name)["spec"] for name in ("slurm-controller", "slurm-controller-outside"))
    assert (inside["clusterIP"], outside["type"]) == ("None", "NodePort")
    assert inside["selector"] == outside["selector"]
    host = f"{outside['clusterIP']}/{outside['ports'][0]['port']}"
    slurm.kube("exec", "slurm-controller-0", "--container=slurmctld", "--", "bash", "-c", f"true < /dev/tcp/{host}")
    change(slurm, {"service": None})
    wait_for("its end", lambda: "slurm-controller-outside" not in slurm.kube("get", "services"), 120)

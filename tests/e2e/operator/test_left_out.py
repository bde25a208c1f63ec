"""A NodeSet whose slurmd cannot be tried is named, and blocks no other's change; a full quota blocks all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.configuring import edit, rendered, shows, wait_live, wait_reason
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

NOWHERE = "localhost/slinky/nowhere:1"
BUSYBOX = "localhost/slinky/busybox:1"
PRIVILEGED = {"spec": {"containers": [{"name": "slurmd", "securityContext": {"privileged": True}}]}}


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> SlurmInKubernetes:
    """A Cluster with one node, in a namespace that admits no privileged pod."""
    instance = new_slurm("untried")
    kubectl("create", "namespace", instance.namespace)
    kubectl("label", "namespace", instance.namespace, "pod-security.kubernetes.io/enforce=baseline")
    instance.create(extraConf="KillWait=5")
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


@pytest.fixture(scope="module", autouse=True)
def job(slurm: SlurmInKubernetes) -> Iterator[str]:
    """A job from the first test to the last."""
    found = slurm.hold("compute-0")
    yield found
    assert slurm.job_state(found) == "RUNNING"
    slurm.release(found, "compute-0")


def wait_degraded(slurm: SlurmInKubernetes, *words: str) -> None:
    """Wait until the Cluster says that it is degraded, in these words."""

    def said() -> bool:
        found = slurm.condition("cluster", slurm.name, "Degraded")
        return found["status"] == "True" and all(word in found["message"] for word in words)

    wait_for(f"Degraded: {words}", said, PATIENCE)


def test_bad_images_and_a_refused_pod_are_named_and_hold_up_nobody(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("missing", 1, image=NOWHERE)
    slurm.nodeset("empty", 1, image=BUSYBOX)
    slurm.nodeset("mighty", 1, template=PRIVILEGED)
    wait_live(slurm, edit(slurm, extraConf="KillWait=6"))
    assert shows(slurm, "KillWait = 6 sec")
    wait_degraded(
        slurm,
        f"NodeSet missing: its slurmd has not tried the configuration, and delays no other: image {NOWHERE}: ",
        f"image {BUSYBOX}: there is no slurmd in it",
        "violates PodSecurity",
    )
    assert slurm.condition("cluster", slurm.name, "Degraded")["reason"] == "ConfigUntried"
    slurm.wait_event("missing", "ConfigUntried", NOWHERE)
    slurm.wait_event("mighty", "ConfigUntried", "violates PodSecurity")
    # Each further change costs what it always costs: nothing is left to be found out.
    wait_live(slurm, edit(slurm, extraConf="KillWait=7"))
    assert shows(slurm, "KillWait = 7 sec")


def test_a_full_quota_is_told_in_the_api_servers_words_and_nothing_goes_on_untried(slurm: SlurmInKubernetes) -> None:
    slurm.kube("delete", "nodeset", "missing", "empty", "mighty")
    slurm.kube("create", "quota", "full", "--hard=pods=0")
    # The controller that counts has to have seen it.
    wait_for("the quota", lambda: "hard" in slurm.get("quota", "full").get("status", {}), PATIENCE)
    before = rendered(slurm)
    wait_reason(slurm, edit(slurm, extraConf="KillWait=8"), "ConfigUntried", "exceeded quota: full")
    wait_degraded(slurm, "exceeded quota: full")
    assert "KillWait=7" in before
    assert "KillWait=7" in rendered(slurm)
    slurm.kube("delete", "quota", "full")
    wait_live(slurm, slurm.get("cluster", slurm.name)["metadata"]["generation"])
    wait_for("no trouble", lambda: slurm.condition("cluster", slurm.name, "Degraded")["status"] == "False", PATIENCE)

"""User labels on slurmd pods: none makes the operator treat one as a daemon or a preflight."""

from __future__ import annotations

import json

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, SLURM_CONF, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

APPLICATION = {"app.kubernetes.io/name": "slurm"}
COMPONENT = "app.kubernetes.io/component"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with a NodeSet for each component that its pods are said to be."""
    instance = new_slurm("labels")
    instance.create(extraConf="MinJobAge=3600")
    for component in ("preflight", "restapi"):
        labels = {**APPLICATION, COMPONENT: component}
        instance.nodeset(component, 1, template={"metadata": {"labels": labels}})
    instance.nodeset("plain", 1)
    instance.wait_ready()
    instance.wait_idle(["preflight-0", "restapi-0", "plain-0"])
    return instance


def addresses(slurm: SlurmInKubernetes, service: str) -> set[str]:
    """Names of the pods that a Service leads to, ready or not."""
    slices = slurm.get("endpointslices", f"--selector=kubernetes.io/service-name={service}")["items"]
    return {one["targetRef"]["name"] for part in slices for one in part.get("endpoints") or ()}


def test_a_labelled_pod_keeps_its_job_through_changes_of_the_configuration(slurm: SlurmInKubernetes) -> None:
    slurm.kube("label", "--overwrite", "pod/plain-0", "app.kubernetes.io/name=slurm", f"{COMPONENT}=controller")
    nodes = ("preflight-0", "restapi-0", "plain-0")
    uids = {node: slurm.pod_uid(node) for node in nodes}
    jobs = {node: slurm.hold(node) for node in nodes}

    patch = json.dumps({"spec": {"extraConf": "MinJobAge=3600\nKillWait=31"}})
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", f"--patch={patch}")
    wait_for("the change", lambda: "KillWait=31" in slurm.run("cat", SLURM_CONF, pod="plain-0"), PATIENCE)
    wait_for("no preflight", lambda: preflights(slurm) == {"preflight-0"}, PATIENCE)
    slurm.wait_ready()

    assert {node: slurm.pod_uid(node) for node in nodes} == uids
    assert {node: slurm.job_state(job) for node, job in jobs.items()} == dict.fromkeys(nodes, "RUNNING")
    assert addresses(slurm, f"{slurm.name}-controller") == {f"{slurm.name}-controller-0"}
    assert all(name.startswith(f"{slurm.name}-restapi-") for name in addresses(slurm, f"{slurm.name}-restapi"))
    assert addresses(slurm, f"{slurm.name}-restapi")
    for node, job in jobs.items():
        slurm.release(job, node)
        slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle(nodes)


def preflights(slurm: SlurmInKubernetes) -> set[str]:
    """Names of the pods that are labelled like preflights."""
    return {pod["metadata"]["name"] for pod in slurm.get("pods", f"--selector={COMPONENT}=preflight")["items"]}


def test_a_label_that_says_whose_a_pod_is_is_refused_where_it_is_written(slurm: SlurmInKubernetes) -> None:
    label = "cluster.slinky.slurm.net/daemon"
    slurm.nodeset("refused", 1, template={"metadata": {"labels": {label: "slurmrestd"}}})
    field = f"spec.template.metadata.labels[{label}]: is the operator's"
    wait_for("the reason", lambda: field in slurm.condition("nodeset", "refused", "Ready")["message"], PATIENCE)

"""From manifests to jobs, in both versions of Slurm."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from hack.operator_install import Installation
from tests.support.operator_death import wait_whole
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.both_slurms]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with nothing said but the images, and two nodes."""
    instance = new_slurm("light")
    instance.create()
    instance.nodeset("compute", 2, partition={"config": "Default=YES"})
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


def test_kubectl_get_shows_that_it_is_ready(slurm: SlurmInKubernetes) -> None:
    def columns() -> tuple[list[str], list[str]]:
        header, row = slurm.kube("get", "clusters.slinky.slurm.net").splitlines()
        return header.split(), row.split()

    wanted = [slurm.name, "true", "Running", "2", "0", "0", "0", "0"]
    # The counts come after the rest; while there is none, its column is empty.
    wait_for("two nodes in the columns", lambda: columns()[1][:8] == wanted, PATIENCE)
    header, row = columns()
    assert header == ["NAME", "READY", "STATUS", "NODES", "DOWN", "DRAINED", "RUNNING", "PENDING", "VERSION", "AGE"]
    assert row[8].startswith(slurm.slurm)


def test_the_nodes_are_ours_by_instance_id_and_extra(slurm: SlurmInKubernetes) -> None:
    uid = slurm.slurmd_pods()["compute-0"]["metadata"]["uid"]
    shown = slurm.control("scontrol", "show", "node", "compute-0")
    assert f"Extra={slurm.namespace}/compute" in shown
    assert f"InstanceId={uid}" in shown


def test_srun_runs_on_both_nodes(slurm: SlurmInKubernetes) -> None:
    assert sorted(slurm.run("srun", "-N2", "hostname").split()) == ["compute-0", "compute-1"]


def test_a_batch_job_completes(slurm: SlurmInKubernetes) -> None:
    slurm.wait_job(slurm.submit(seconds=1), "COMPLETED")


def test_a_nodeset_added_later_works_and_no_pod_is_restarted(slurm: SlurmInKubernetes) -> None:
    before = identities(slurm)
    job = slurm.submit(seconds=15)
    slurm.nodeset("burst", 1)
    slurm.wait_idle_nodes("burst-0")
    assert slurm.run("srun", "-p", "burst", "hostname", pod="burst-0").strip() == "burst-0"
    after = identities(slurm)
    assert {name: after[name] for name in before} == before
    slurm.wait_job(job, "COMPLETED")
    assert slurm.get("cluster", slurm.name)["status"]["config"]["nodeSets"] == ["burst", "compute"]


def test_a_pod_deleted_by_hand_comes_back_with_a_new_identity(slurm: SlurmInKubernetes) -> None:
    before = slurm.slurmd_pods()["compute-1"]["metadata"]["uid"]
    slurm.kube("delete", "pod", "compute-1", "--wait", timeout=PATIENCE)

    def replaced() -> bool:
        pod = slurm.slurmd_pods().get("compute-1")
        return pod is not None and f"InstanceId={pod['metadata']['uid']}" in slurm.control(
            "scontrol", "show", "node", "compute-1"
        )

    wait_for("the record of the new pod", replaced, PATIENCE)
    assert slurm.slurmd_pods()["compute-1"]["metadata"]["uid"] != before
    slurm.wait_idle_nodes("compute-1")


def test_the_daemons_run_without_privileges(slurm: SlurmInKubernetes) -> None:
    for pod in slurm.get("pods", "--selector=app.kubernetes.io/component!=preflight")["items"]:
        for container in pod["spec"]["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"]["drop"] == ["ALL"]
            if not pod["metadata"]["name"].startswith(("compute-", "burst-")):
                assert context.get("readOnlyRootFilesystem") is True
                assert "add" not in context["capabilities"]


def test_the_operator_was_forbidden_nothing(slurm: SlurmInKubernetes, operator: Installation) -> None:
    # A pod of an operator that was killed elsewhere may have nothing to show yet.
    wait_whole(operator)
    logs = operator.logs()
    assert "became leader" in logs
    assert "Traceback" not in logs
    # Not any "forbidden": a namespace that is being deleted says that of new objects, too.
    assert 'forbidden: User "system:serviceaccount' not in logs

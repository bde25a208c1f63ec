"""From manifests to jobs, in both versions of Slurm."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from tests.support.configuring import edit
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


def test_slurmstepds_leave_no_zombies(slurm: SlurmInKubernetes) -> None:
    slurm.run("sh", "-c", "for step in $(seq 20); do srun --nodelist=compute-0 true; done")
    script = 'for file in /proc/[0-9]*/stat; do read -r line < "$file" && echo "$line"; done 2>/dev/null || :'

    def processes() -> str:
        return slurm.run("sh", "-c", script)

    # A slurmstepd ends a moment after its step.
    wait_for("no zombie", lambda: " Z " not in processes(), PATIENCE)
    assert "(slurmd" in processes()


def test_a_batch_job_completes(slurm: SlurmInKubernetes) -> None:
    slurm.wait_job(slurm.submit(seconds=1), "COMPLETED")


def test_a_job_that_waited_for_a_node_with_a_job_log_server_starts_on_one_without(slurm: SlurmInKubernetes) -> None:
    """Slurm ends a job whose output it cannot open, so the folder is there."""
    slurm.wait_job(slurm.submit("--output=/var/spool/job-output/secret-%j.out", seconds=1), "COMPLETED")


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


def test_the_exporter_has_the_numbers_of_the_commands_whatever_becomes_of_slurmrestds_pod(
    slurm: SlurmInKubernetes,
) -> None:
    edit(slurm, metrics={"exporter": {"enabled": True, "interval": "1s"}})

    def ready() -> bool:
        return slurm.condition("cluster", slurm.name, "ExporterReady").get("status") == "True"

    wait_for("the exporter", ready, PATIENCE)
    gone = slurm.get("pods", "--selector=app.kubernetes.io/component=restapi")["items"][0]["metadata"]["name"]
    slurm.kube("delete", "pod", gone, "--wait=false")
    # Seen only after the pod that replaces it has answered.
    waiting = slurm.submit("--hold")

    def page() -> dict[tuple[str, ...], float]:
        host = f"{slurm.name}-exporter.{slurm.namespace}.svc"
        ask = f"exec 3<>/dev/tcp/{host}/8080; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        said = slurm.control("bash", "-c", ask)
        # An answer that says that there is nothing to show yet has no samples.
        families = text_string_to_metric_families(said[said.index("# HELP") :] if "# HELP" in said else "")
        samples = [sample for family in families for sample in family.samples]
        assert {sample.labels.pop("slurm_cluster") for sample in samples} <= {slurm.name}
        return {(sample.name, *sample.labels.values()): sample.value for sample in samples}

    def agrees() -> bool:
        told, nodes = page(), set(slurm.control("sinfo", "--Node", "--noheader", "--format=%N %T").splitlines())
        jobs = slurm.control("squeue", "--noheader", "--states=PENDING", "--format=%i").split()
        return (
            told.get(("slurm_cluster_nodes", "idle")) == sum(node.endswith(" idle") for node in nodes) > 1
            and told.get(("slurm_cluster_jobs", "pending")) == len(jobs) == 1
            and {value for (name, *_), value in told.items() if name == "slurm_exporter_source_up"} == {1.0}
        )

    wait_for("the numbers of sinfo and squeue", agrees, PATIENCE)
    slurm.control("scancel", waiting)


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

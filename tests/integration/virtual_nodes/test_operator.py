"""Virtual Nodes by the operator as its charts run it, with the controllers of Kubernetes and a fake slurmrestd.

Pods name their Node, since there is no kube-scheduler. The operator has the rights of both charts and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slinky_api import labels
from tests.support import audit, virtual_site
from tests.support.virtual_site import NODE, TEAM, VirtualSite, is_ready, pod_spec

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualSite]:
    with virtual_site.running(tmp_path_factory.mktemp("operator")) as made:
        yield made


def test_a_node_is_ready_and_comes_back(site: VirtualSite) -> None:
    site.until("the Node is ready", lambda: is_ready(site))
    node = site.find("node", NODE)
    assert node["spec"]["providerID"] == f"slurm://{NODE}"
    assert node["metadata"]["labels"][labels.LABEL_VIRTUAL_NODE] == "main"
    site.kubectl("delete", "node", NODE, "--wait=false")
    uid = node["metadata"]["uid"]
    site.until("another Node", lambda: site.find("node", NODE).get("metadata", {}).get("uid", uid) != uid)
    site.until("it is ready", lambda: is_ready(site))


def test_the_api_server_says_that_it_reaches_the_operator(site: VirtualSite) -> None:
    def shown() -> tuple[str, str]:
        conditions = site.find("cluster.slinky.slurm.net", "slurm")["status"].get("conditions", ())
        found = [one for one in conditions if one["type"] == "KubeletApiReachable"]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    site.until("the condition", lambda: shown() == ("True", "AsExpected"))


def test_a_second_cluster_with_the_same_host_is_told_whose_it_is(site: VirtualSite) -> None:
    kind = "clusters.slinky.slurm.net"
    nodes = {one["metadata"]["uid"] for one in site.kubectl.get("nodes")["items"]}
    older = site.find(kind, "slurm")
    about = {"name": "younger", "namespace": TEAM}
    site.kubectl.apply(
        [{"apiVersion": older["apiVersion"], "kind": "Cluster", "metadata": about, "spec": older["spec"]}]
    )
    message = (
        f"spec.jobs.virtualNodes.host: Cluster {TEAM}/slurm, which is older, has the host site, so this Cluster has no "
        "virtual Nodes: choose another one"
    )

    def shown() -> set[tuple[str, str, str]]:
        found = site.find(kind, "younger").get("status", {}).get("conditions", ())
        return {(one["type"], one["status"], one["message"]) for one in found}

    def told() -> set[tuple[str, str, str]]:
        found = site.kubectl.get("events", "-n", TEAM)["items"]
        return {(one["involvedObject"]["name"], one["reason"], one["message"]) for one in found}

    site.until("its condition", lambda: ("VirtualNodesReady", "False", message) in shown())
    site.until("its Event", lambda: ("younger", "HostTaken", message) in told())
    site.kubectl("delete", kind, "younger", "-n", TEAM, timeout=120)
    assert {one["metadata"]["uid"] for one in site.kubectl.get("nodes")["items"]} == nodes


def test_a_bare_pod_runs_as_a_job(site: VirtualSite) -> None:
    _ = site.pod("ends")
    pod, number = site.runs("ends")
    (owner,) = site.job_of(pod["metadata"]["uid"])["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    (container,) = pod["status"]["containerStatuses"]
    assert (container["ready"], container["containerID"]) == (True, f"slurm://{number}")
    _ = site.slurm.world.finish_job(number)
    site.until("the pod has succeeded", lambda: site.phase("ends") == "Succeeded")
    site.until("its finalizer is gone", lambda: not site.find("pod", "ends")["metadata"].get("finalizers"))
    site.kubectl("delete", "pod", "ends", "-n", TEAM, "--wait=false")
    site.until("the pod has gone", lambda: not site.find("pod", "ends"))


@pytest.mark.parametrize("options", [(), ("--grace-period=0", "--force")], ids=["usual", "by force"])
def test_a_pod_that_is_deleted_takes_its_job_along(site: VirtualSite, options: tuple[str, ...]) -> None:
    _ = site.pod("goes")
    pod, number = site.runs("goes")
    site.kubectl("delete", "pod", "goes", "-n", TEAM, "--wait=false", *options)
    site.until("the pod has gone", lambda: not site.find("pod", "goes"))
    site.until("the job is cancelled", lambda: site.state(number) == "CANCELLED")
    site.until("the SlurmJob has gone", lambda: not site.job_of(pod["metadata"]["uid"]))


def test_nothing_is_written_while_nothing_changes(site: VirtualSite) -> None:
    _ = site.pod("rests")
    _, number = site.runs("rests")
    site.until("the Node is ready", lambda: is_ready(site))

    def seen() -> tuple[list[tuple[str, str, str]], str, str]:
        pod, node = site.find("pod", "rests"), site.find("node", NODE)
        return site.writes(), pod["metadata"]["resourceVersion"], node["metadata"]["resourceVersion"]

    def a_while() -> None:
        """Until Slurm was asked again for its partitions, and the Lease renewed."""
        asked, renewed = len(site.slurm.calls("get_partitions")), site.renewed()
        site.until("Slurm is asked again", lambda: len(site.slurm.calls("get_partitions")) > asked)
        site.until("the Lease is renewed", lambda: site.renewed() != renewed)

    a_while()
    before = seen()
    a_while()
    assert seen() == before
    _ = site.slurm.world.finish_job(number)
    site.until("the pod has succeeded", lambda: site.phase("rests") == "Succeeded")


def test_an_indexed_job_completes(site: VirtualSite) -> None:
    spec = {"completions": 3, "parallelism": 2, "completionMode": "Indexed", "template": {"spec": pod_spec()}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many", "namespace": TEAM}, "spec": spec}
    site.kubectl.apply([job])

    def is_complete() -> bool:
        for number, one in list(site.slurm.world.jobs.items()):
            if one.state.base == "RUNNING":
                _ = site.slurm.world.finish_job(number)
        conditions = site.find("job", "many").get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Complete", "True") for one in conditions)

    site.until("the Job is complete", is_complete)
    assert site.find("job", "many")["status"]["completedIndexes"] == "0-2"
    pods = site.kubectl.get("pods", "-n", TEAM, "-l", "job-name=many")["items"]
    assert len(pods) == 3


def jobs_of_a_jobset(attempt: int) -> list[dict[str, Any]]:
    """The Jobs of a replicated job of two replicas with two pods each, as the controller of JobSet 0.10.1 makes them.

    By the defaults of its webhook, pods have names in a headless Service: `subdomain`.
    """
    uid = "7a710d65-40f0-4533-994a-4ab6f836a71f"
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": uid}
    made = []
    for number in range(2):
        about = {
            "global-replicas": "2",
            "group-name": "default",
            "group-replicas": "2",
            "job-global-index": str(number),
            "job-group-index": str(number),
            "job-index": str(number),
            "job-key": f"{number:040x}",
            "jobset-name": "train",
            "jobset-uid": uid,
            "replicatedjob-name": "workers",
            "replicatedjob-replicas": "2",
            "restart-attempt": str(attempt),
        }
        told = {f"jobset.sigs.k8s.io/{key}": value for key, value in about.items()}
        template = {"metadata": {"labels": told, "annotations": told}, "spec": pod_spec(subdomain="train")}
        indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0}
        metadata = {
            "name": f"train-workers-{number}",
            "namespace": TEAM,
            "labels": told,
            "annotations": told,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        spec = {**indexed, "suspend": False, "template": template}
        made.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return made


def test_a_jobset_that_restarts_runs_no_job_twice(site: VirtualSite) -> None:
    """Of its controller, the writes that were seen: a restart deletes all Jobs, and waits until they have gone."""
    before = set(site.slurm.world.jobs)

    def running(attempt: int) -> dict[tuple[str, str], int]:
        """Jobs in Slurm, by the Job and the index that they were told."""
        selector = f"jobset.sigs.k8s.io/jobset-name=train,jobset.sigs.k8s.io/restart-attempt={attempt}"
        found = {}
        for pod in site.kubectl.get("pods", "-n", TEAM, "-l", selector)["items"]:
            if pod["status"].get("phase") == "Running":
                job = site.job_of(pod["metadata"]["uid"])
                (index,) = (one["value"] for one in job["spec"]["env"] if one["name"] == "JOB_COMPLETION_INDEX")
                found[pod["metadata"]["labels"]["job-name"], index] = int(job["status"]["jobId"])
        return found

    wanted = {(f"train-workers-{number}", index) for number in range(2) for index in "01"}
    site.kubectl.apply(jobs_of_a_jobset(0))
    site.until("all run", lambda: running(0).keys() == wanted)
    first = running(0)
    _ = site.slurm.world.finish_job(first["train-workers-0", "1"], "FAILED")

    def is_failed() -> bool:
        conditions = site.find("job", "train-workers-0").get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Failed", "True") for one in conditions)

    site.until("its Job has failed", is_failed)
    for name in ("train-workers-0", "train-workers-1"):
        site.kubectl("delete", "job", name, "-n", TEAM, "--cascade=foreground", "--wait=false")
    site.until("both Jobs have gone", lambda: not [n for n, _ in wanted if site.find("job", n)])
    # The next attempt starts now: nothing of this one may be on a node.
    failed = first.pop(("train-workers-0", "1"))
    assert site.state(failed) == "FAILED"
    assert {site.state(number) for number in first.values()} == {"CANCELLED"}
    site.kubectl.apply(jobs_of_a_jobset(1))
    site.until("all run again", lambda: running(1).keys() == wanted)
    second = running(1)
    for number in second.values():
        _ = site.slurm.world.finish_job(number)
    for name, _ in wanted:
        site.until(f"{name} is complete", lambda name=name: site.find("job", name)["status"].get("succeeded") == 2)  # type: ignore[misc]
    assert set(site.slurm.world.jobs) - before == {failed, *first.values(), *second.values()}


def is_left(site: VirtualSite, uid: str) -> bool:
    """Whether the SlurmJob of a pod goes on without it."""
    about = site.job_of(uid).get("metadata", {})
    return labels.ANNOTATION_VIRTUAL_POD_LEFT in about.get("annotations", {}) and not about.get("ownerReferences")


def test_a_pod_that_a_taint_deletes_leaves_its_job(site: VirtualSite) -> None:
    _ = site.pod("tainted")
    pod, number = site.runs("tainted")
    site.kubectl("taint", "node", NODE, "site/works=here:NoExecute")
    try:
        site.until("the pod has gone", lambda: not site.find("pod", "tainted"))
    finally:
        site.kubectl("taint", "node", NODE, "site/works-")
    assert is_left(site, pod["metadata"]["uid"])
    assert site.state(number) == "RUNNING"


def test_the_rights_of_the_charts_suffice(site: VirtualSite) -> None:
    """The last test: of all that the others have made the operator do, nothing was refused."""
    asked = [one for one in audit.writes(site.plane.audit_log) if one.user == site.user]
    assert {("nodes", 201)} <= {(one.resource, one.code) for one in asked}
    assert not [one for one in asked if one.code == 403]
    assert "orbidden" not in site.said()

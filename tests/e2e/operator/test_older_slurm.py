"""Tests of the newest Slurm, repeated with the older one: one node per Kubernetes Node, updates, deletion; its upgrade.

First light, confinement and lost pods have tests of their own with both versions. Scaling, drains and configurations
run with the older one in `make test-full`; what slurmctld and slurmrestd answer is compared in integration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.logins import Visitor, keys_of_users, visitor
from tests.support.nodesets import features, uids
from tests.support.slurm_in_kubernetes import NEWEST, OLDER, PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.only_slurm("24.11"),
    pytest.mark.long(310),
]

MACHINES = ["node-1", "node-2"]
"""The Nodes of the local cluster, and so the Slurm nodes with one pod on each."""

ROLLED = ["rolled-0", "rolled-1"]


@pytest.fixture(scope="module")
def alice(new_slurm: NewSlurm, tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A Cluster of Slurm 24.11 with a NodeSet of each mode, one to delete, and login pods; a user of it."""
    instance = new_slurm("older")
    found = visitor(instance, tmp_path_factory.mktemp("alice"), "alice")
    # A job's end is to be there when it is looked at, however long the rest takes.
    instance.create(
        extraConf="MinJobAge=3600",
        identity={"passwd": {"configMapRef": {"name": "people"}}},
        login=[{"name": "front", "image": instance.image("login"), "authorizedKeysRef": {"name": "people"}}],
    )
    users = {"passwd": "alice:x:2001:2100::/home/alice:/bin/bash", "group": "lab:x:2100:\nbeam:x:2101:alice"}
    metadata = {"name": "people", "namespace": instance.namespace}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": users}
    instance.kubectl.apply([config_map, keys_of_users(instance, alice=found.public_key)])
    instance.nodeset("machine", None)
    instance.nodeset("rolled", 2)
    instance.nodeset("doomed", 1)
    instance.wait_ready()
    instance.wait_idle([*MACHINES, *ROLLED, "doomed-0"])
    return found


@pytest.fixture(scope="module")
def slurm(alice: Visitor) -> SlurmInKubernetes:
    """The Cluster."""
    return alice.slurm


def finish(slurm: SlurmInKubernetes, job: str, pod: str) -> None:
    """Release a job and see that it has run once and to its end."""
    slurm.release(job, pod)
    slurm.wait_job(job, "COMPLETED")
    assert slurm.job(job)["Restarts"] == "0"


@pytest.mark.full
def test_a_user_who_logs_in_is_the_same_on_each_node(alice: Visitor) -> None:
    alice.wait_ready()
    alice.say("true", checked="accept-new")
    who = "uid=2001(alice) gid=2100(lab) groups=2100(lab),2101(beam)"
    lines = alice.say("cd /; id; srun --partition=rolled --label -N2 -n2 id").splitlines()
    assert [lines[0], *sorted(lines[1:])] == [who, f"0: {who}", f"1: {who}"]


@pytest.mark.alone
@pytest.mark.full
def test_a_cordoned_node_has_its_slurm_node_drained_under_a_job_and_given_back(
    slurm: SlurmInKubernetes,
) -> None:
    shown = slurm.run("srun", "-p", "machine", "-N2", "hostname", pod="machine-node-1")
    assert sorted(shown.split()) == MACHINES
    job = slurm.hold("node-2", pod="machine-node-2", partition="machine")
    slurm.kubectl("cordon", "node-2")
    try:
        wait_for("the drain", lambda: "node-2" in slurm.drained_nodes(), PATIENCE)
        assert slurm.reason("node-2").startswith("slurm-operator: node-cordon")
        assert slurm.job_state(job) == "RUNNING"
    finally:
        slurm.kubectl("uncordon", "node-2")
    wait_for("the undrain", lambda: "node-2" not in slurm.drained_nodes(), PATIENCE)
    finish(slurm, job, "machine-node-2")


def test_an_update_waits_for_a_job_while_slurmctld_is_replaced(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm), slurm.hold("rolled-1")
    slurm.wait_view("rolled", "rolled-0")
    slurm.nodeset("rolled", 2, features=["second"])
    wait_for("the idle one's update", lambda: "second" in features(slurm, "rolled-0"), PATIENCE)
    wait_for("the drain of the other", lambda: "rolled-1" in slurm.drained_nodes(), PATIENCE)

    controller = f"{slurm.name}-controller-0"
    old = slurm.get("pod", controller)["metadata"]["uid"]
    slurm.kube("delete", "pod", controller, "--wait=false")
    wait_for("another slurmctld", lambda: slurm.get("pod", controller)["metadata"]["uid"] != old, PATIENCE)
    wait_for("its word on the drain", lambda: "rolled-1" in slurm.drained_nodes(), PATIENCE)
    assert slurm.reason("rolled-1").startswith("slurm-operator: update")
    assert slurm.job_state(job) == "RUNNING"
    assert uids(slurm)["rolled-1"] == before["rolled-1"]

    finish(slurm, job, "rolled-1")
    wait_for("its update", lambda: "second" in features(slurm, "rolled-1"), PATIENCE)
    slurm.wait_idle_nodes(*ROLLED)
    after = uids(slurm)
    assert {name for name in before if after[name] != before[name]} == set(ROLLED)


@pytest.mark.full
def test_a_nodeset_deleted_in_the_foreground_goes_after_its_job(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm)["doomed-0"], slurm.hold("doomed-0")
    slurm.kube("delete", "nodeset", "doomed", "--cascade=foreground", "--wait=false")
    wait_for("the drain", lambda: "doomed-0" in slurm.drained_nodes(), PATIENCE)
    assert slurm.reason("doomed-0").startswith("slurm-operator: deletion")
    wait_for(
        "the job's name in the condition",
        lambda: f"job {job} " in slurm.condition("nodeset", "doomed", "Draining")["message"],
        PATIENCE,
    )
    assert slurm.job_state(job) == "RUNNING"
    pod = slurm.slurmd_pods()["doomed-0"]["metadata"]
    assert pod["uid"] == before
    assert "deletionTimestamp" not in pod
    finish(slurm, job, "doomed-0")
    wait_for("the pod's end", lambda: "doomed-0" not in slurm.slurmd_pods(), PATIENCE)
    wait_for("the NodeSet's end", lambda: "doomed" not in slurm.kube("get", "nodesets", "--output=name"), PATIENCE)
    slurm.wait_idle([*MACHINES, *ROLLED])


@pytest.mark.full
def test_a_nodeset_on_each_node_is_updated_and_deleted_after_its_job(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm), slurm.hold("node-1", pod="machine-node-1", partition="machine")
    slurm.wait_view("machine", "node-2", pod="machine-node-2")
    slurm.nodeset("machine", None, features=["second"])
    wait_for("the idle one's update", lambda: "second" in features(slurm, "node-2"), PATIENCE)
    wait_for("the drain of the other", lambda: "node-1" in slurm.drained_nodes(), PATIENCE)
    assert uids(slurm)["machine-node-1"] == before["machine-node-1"]
    slurm.kube("delete", "nodeset", "machine", "--wait=false")
    wait_for("the idle one's end", lambda: "node-2" not in slurm.states(), PATIENCE)
    assert slurm.job_state(job) == "RUNNING"
    finish(slurm, job, "machine-node-1")
    wait_for("the end of the other", lambda: set(slurm.states()) == set(ROLLED), PATIENCE)


def images(alice: Visitor, version: str, *daemons: str) -> None:
    """Name the images of a version for daemons and login pods in the Cluster's spec."""
    slurm = alice.slurm
    login = {"name": "front", "image": f"localhost/slinky/login:{version}", "authorizedKeysRef": {"name": "people"}}
    spec: dict[str, object] = {"login": [login]}
    for field, image in (("controller", "slurmctld"), ("restapi", "slurmrestd")):
        if image in daemons:
            spec[field] = {"image": f"localhost/slinky/{image}:{version}"}
    slurm.kube("patch", "clusters.slinky.slurm.net", slurm.name, "--type=merge", "--patch", json.dumps({"spec": spec}))


def degraded(slurm: SlurmInKubernetes) -> str:
    """What needs somebody's help; empty for nothing."""
    found = slurm.condition("cluster", slurm.name, "Degraded")
    return str(found["message"]) if found["status"] == "True" else ""


def state_trials(slurm: SlurmInKubernetes) -> set[str]:
    """Names of the pods in which a slurmctld has started beside the live state, by the kubelet's Events."""
    items = slurm.get("events", "--field-selector=reason=Started")["items"]
    return {
        one["involvedObject"]["name"]
        for one in items
        if one["involvedObject"]["name"].startswith(f"{slurm.name}-preflight-t")
    }


def test_images_of_the_wrong_release_replace_nothing(alice: Visitor) -> None:
    slurm, before = alice.slurm, alice.slurm.get("loginset", alice.loginset)["spec"]["image"]
    images(alice, NEWEST, "slurmrestd")
    wait_for("the refusal", lambda: degraded(slurm).count("cannot talk to slurmctld of Slurm") == 2, PATIENCE)
    assert f"slurmrestd keeps localhost/slinky/slurmrestd:{OLDER}: spec.restapi.image has slurmrestd" in degraded(slurm)
    assert f"of LoginSet {alice.loginset} has srun of Slurm" in degraded(slurm)
    workload = slurm.get("deployment", f"{slurm.name}-restapi")["spec"]["template"]["spec"]["containers"][0]
    assert workload["image"] == f"localhost/slinky/slurmrestd:{OLDER}"
    assert slurm.get("loginset", alice.loginset)["spec"]["image"] == before
    images(alice, OLDER, "slurmrestd")
    wait_for("the end of the refusal", lambda: not degraded(slurm), PATIENCE)


def test_slurm_is_upgraded_under_a_job_and_never_taken_back(alice: Visitor) -> None:
    slurm, daemons = alice.slurm, ("slurmctld", "slurmrestd")
    before, job = uids(slurm), slurm.hold("rolled-1")
    slurm.wait_view("rolled", "rolled-0")
    slurm.nodeset("rolled", 2, features=["second"], image=f"localhost/slinky/slurmd:{NEWEST}")
    wait_for(
        "the NodeSet to wait for its Cluster",
        lambda: slurm.condition("nodeset", "rolled", "Progressing")["reason"] == "UpdateWaitsForCluster",
        PATIENCE,
    )
    assert (
        f"image localhost/slinky/slurmd:{NEWEST} is of Slurm {NEWEST}"
        in slurm.condition("nodeset", "rolled", "Progressing")["message"]
    )
    images(alice, NEWEST, *daemons)
    wait_for("the update of the idle one", lambda: uids(slurm).get("rolled-0") != before["rolled-0"], PATIENCE)
    assert slurm.get("clusters.slinky.slurm.net", slurm.name)["status"]["slurmVersion"].startswith(NEWEST)
    wait_for("the drain of the other", lambda: "rolled-1" in slurm.drained_nodes(), PATIENCE)
    assert slurm.get("loginset", alice.loginset)["spec"]["image"] == f"localhost/slinky/login:{NEWEST}"
    # A kubelet writes its Events in the background.
    wait_for("the Event of the trial", lambda: bool(state_trials(slurm)), PATIENCE)
    assert len(state_trials(slurm)) == 1
    assert not any("StateNotTried" in line for line in slurm.events(slurm.name))
    assert slurm.job_state(job) == "RUNNING"
    assert uids(slurm)["rolled-1"] == before["rolled-1"]
    finish(slurm, job, "rolled-1")
    slurm.wait_idle_nodes(*ROLLED)
    controller = slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"]

    images(alice, OLDER, *daemons)
    wait_for(
        "the refusal of the step back",
        lambda: "cannot read the state that Slurm" in degraded(slurm),
        PATIENCE,
    )
    images(alice, NEWEST, *daemons)
    wait_for(
        "the end of the refusal",
        lambda: not degraded(slurm),
        PATIENCE,
    )
    assert slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"] == controller


@pytest.mark.full
def test_a_slurmrestd_that_does_not_come_up_loses_nothing_and_stops_what_follows(alice: Visitor) -> None:
    slurm, deployment = alice.slurm, f"{alice.slurm.name}-restapi"
    before, jobs = uids(slurm), {name: slurm.hold(name) for name in ROLLED}
    too_much = {"requests": {"cpu": "1000"}}
    give_restapi(slurm, {"image": f"localhost/slinky/slurmrestd:{OLDER}", "resources": too_much})
    stays = f"its pods with localhost/slinky/slurmrestd:{NEWEST} stay until others are ready"
    wait_for(
        "the upgrade that goes no further",
        lambda: stays in slurm.condition("cluster", slurm.name, "Progressing")["message"],
        PATIENCE,
    )
    slurm.nodeset("rolled", 2, features=["third"], image=f"localhost/slinky/slurmd:{NEWEST}")
    wait_for(
        "the NodeSet to wait",
        lambda: slurm.condition("nodeset", "rolled", "Progressing")["reason"] == "UpdateWaitsForCluster",
        PATIENCE,
    )
    wait_for("its trouble", lambda: f"slurmrestd's pod {deployment}-" in degraded(slurm), PATIENCE)
    assert slurm.condition("cluster", slurm.name, "Ready")["status"] == "True"
    assert slurm.get("deployment", deployment)["status"]["availableReplicas"] == 1
    assert uids(slurm) == before

    give_restapi(slurm, {"image": f"localhost/slinky/slurmrestd:{NEWEST}", "resources": None})
    wait_for("the drain of the NodeSet", lambda: bool(slurm.drained_nodes()), PATIENCE)
    wait_for("the end of the trouble", lambda: not degraded(slurm), PATIENCE)
    assert uids(slurm) == before
    for name, job in jobs.items():
        finish(slurm, job, name)


def give_restapi(slurm: SlurmInKubernetes, spec: Mapping[str, object]) -> None:
    """Change the settings of slurmrestd in the Cluster's spec."""
    patch = json.dumps({"spec": {"restapi": spec}})
    slurm.kube("patch", "clusters.slinky.slurm.net", slurm.name, "--type=merge", "--patch", patch)

"""Bad Nodes and failed health checks on real kubelets: who is drained, how soon, and who comes back."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from hack.machine.progress import say
from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.slurm.health_checks import programs, tables
from tests.support.nodesets import whole
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

HOST, NODE = "node-1", "gpu-0"
"""The Node that goes bad, and the Slurm node there."""

BAD = "example.com/Bad"
RULES: dict[str, Any] = {
    "nodeConditions": [{"type": BAD, "forSeconds": 0}],
    "maxUnhealthy": "100%",
    "clearSeconds": 0,
}
TURNS = 20

CHECKED = [f"checked-{number}" for number in range(4)]
MARK = "/tmp/bad"
MARKED: dict[str, Any] = {
    "name": "marked",
    "script": f'#!/bin/sh\n[ -e {MARK} ] || exit 0\necho "there is {MARK}"\nexit 1\n',
}


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with a node on a Node that goes bad, and four with a health check."""
    instance = new_slurm("life")
    instance.create(extraConf="HealthCheckInterval=2")
    instance.nodeset("checked", len(CHECKED), health={"checks": [MARKED], "maxUnhealthy": 1, "clearSeconds": 0})
    instance.nodeset("gpu", 1, health=RULES, template={"spec": {"nodeSelector": {"kubernetes.io/hostname": HOST}}})
    instance.wait_ready()
    instance.wait_idle([NODE, *CHECKED])
    return instance


def write(kubectl: Kubectl, status: str) -> float:
    """Write the condition of the Node as a monitor does; returns when that began, in monotonic seconds."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    one = {"type": BAD, "status": status, "reason": "Test", "message": "fell off", "lastTransitionTime": since}
    patch = json.dumps({"status": {"conditions": [one]}})
    begun = time.monotonic()
    kubectl("patch", "node", HOST, "--subresource=status", "--type=strategic", f"--patch={patch}")
    return begun


def after(kubectl: Kubectl, slurm: SlurmInKubernetes, status: str) -> float:
    """Seconds from the write of the condition until the node is drained, or not any more."""
    begun, is_bad = write(kubectl, status), status == "True"
    wait_for(f"{BAD} {status}", lambda: (NODE in slurm.drained_nodes()) is is_bad, PATIENCE, poll=0.02)
    return time.monotonic() - begun


def test_a_bad_node_is_out_of_service_within_moments_and_back_as_soon(
    slurm: SlurmInKubernetes, kubectl: Kubectl
) -> None:
    turns = [(after(kubectl, slurm, "True"), after(kubectl, slurm, "False")) for _ in range(TURNS)]
    drained, back = (sorted(column) for column in zip(*turns, strict=True))
    for what, found in (("drained", drained), ("resumed", back)):
        p95 = found[round(0.95 * TURNS) - 1]
        say(f"{what} after a write of kubectl: median {found[TURNS // 2]:.2f} s, p95 {p95:.2f} s, of {TURNS}")
    assert slurm.pod_uid(NODE)


def test_a_bad_node_keeps_its_job_gets_none_and_is_replaced_once_it_is_empty(
    slurm: SlurmInKubernetes, kubectl: Kubectl
) -> None:
    replace = {"policy": "RecreatePod", "backoffSeconds": 0, "maxTries": 1}
    patch = json.dumps({"spec": {"health": {"replace": replace}}})
    slurm.kube("patch", "nodeset", "gpu", "--type=merge", f"--patch={patch}")
    job, first = slurm.hold(NODE), slurm.pod_uid(NODE)
    write(kubectl, "True")
    wait_for("the drain", lambda: NODE in slurm.drained_nodes(), PATIENCE)
    assert slurm.reason(NODE) == f"slurm-operator: health ({slurm.namespace}/gpu): {BAD}: fell off"
    waiting = slurm.submit("--partition=gpu", seconds=0, pod=NODE)
    assert (slurm.job_state(waiting), slurm.job_state(job), slurm.pod_uid(NODE)) == ("PENDING", "RUNNING", first)
    # A pod that has just registered may get a job before it is drained.
    slurm.control("scontrol", "hold", waiting)

    slurm.release(job, NODE)
    slurm.wait_job(job, "COMPLETED")
    wait_for("another pod", lambda: slurm.is_replaced(NODE, first), PATIENCE)

    def is_given_up() -> bool:
        return bool(slurm.condition("nodeset", "gpu", "ReplacementFailed")["status"] == "True")

    # It has come back to the only Node that it may be on.
    wait_for("the last try was in vain", is_given_up, PATIENCE)
    say(f"back in service {after(kubectl, slurm, 'False'):.1f} s after the Node was well")
    slurm.control("scontrol", "release", waiting)
    slurm.wait_job(waiting, "COMPLETED")
    wait_for("the NodeSet is well", lambda: whole(slurm, "gpu", 1), PATIENCE)


def test_a_check_that_fails_everywhere_drains_the_budget_and_an_administrators_drain_stays(
    slurm: SlurmInKubernetes,
) -> None:
    revision = tables.table([Check.model_validate(MARKED)])[0].revision
    tries = iter(range(10_000))

    def run_them() -> bool:
        # A change of a pod makes its kubelet look at the volumes at once, and not within a minute.
        slurm.kube("annotate", "pod", *CHECKED, "--overwrite", f"example.com/look={next(tries)}")
        return all(f"checks {revision}" in comment(slurm, node) for node in CHECKED)

    slurm.wait_event("checked", "ChecksApproved", "marked")
    wait_for("all nodes run the check", run_them, PATIENCE, poll=1)
    modes = slurm.kube("exec", CHECKED[1], "-c=slurmd", "--", "sh", "-c", f"stat -Lc %a {programs.GIVEN_FOLDER}/*")
    assert {*modes.split()} == {"500"}

    slurm.control("scontrol", "update", f"nodename={CHECKED[3]}", "state=drain", "reason=mine")
    each(slurm, "touch", MARK)

    def waits(*words: str) -> bool:
        found = slurm.condition("nodeset", "checked", "HealthBudgetReached")
        return all(word in f"{found['status']} {found['message']}" for word in words)

    wait_for("the budget is used", lambda: waits("True", "2 nodes are not drained", "1 at most"), PATIENCE)
    ours = [node for node in CHECKED if f"(health ({slurm.namespace}" in f"({slurm.reason(node)[16:]}"]
    assert len(ours) == 1
    assert slurm.reason(ours[0]).endswith(f": check marked: there is {MARK}")
    assert slurm.drained_nodes() == {CHECKED[3], *ours}

    each(slurm, "rm", MARK)
    wait_for("all are given back", lambda: slurm.drained_nodes() == {CHECKED[3]}, PATIENCE)
    wait_for("nothing waits", lambda: waits("False", "keeps 0 nodes drained"), PATIENCE)
    assert slurm.reason(CHECKED[3]) == "mine"


def comment(slurm: SlurmInKubernetes, node: str) -> str:
    """The comment of a node in Slurm."""
    lines = slurm.control("scontrol", "show", "node", node).splitlines()
    return next((line.strip() for line in lines if "Comment=" in line), "")


def each(slurm: SlurmInKubernetes, *command: str) -> None:
    """Run a command in the pods of all nodes with checks."""
    for node in CHECKED:
        slurm.kube("exec", node, "--container=slurmd", "--", *command)

"""The output of `kubectl get` and `kubectl describe` for a NodeSet in each situation of docs/troubleshooting.md.

One Cluster has a NodeSet for each. Each test restores what it changes, and logs what a person would see.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

logger = logging.getLogger(__name__)

MUCH = {"requests": {"cpu": "4000", "memory": "64Mi"}, "limits": {"cpu": "4000", "memory": "256Mi"}}
"""More than any Node has."""

NO_IMAGE = "localhost/slinky/slurmd:none"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with all the NodeSets; the first was there before Slurm was."""
    instance = new_slurm("shows")
    # With the operator's default of 2 a node that is set DOWN comes back at slurmctld's next ping.
    instance.create(extraConf="ReturnToService=1")
    instance.nodeset("compute", 2)
    wait_summary(instance, "compute", "waiting for Cluster slurm")
    show(instance, "compute")
    instance.wait_ready()
    wait_summary(instance, "compute", "2 of 2 ready")
    for name, spec in OTHERS.items():
        instance.nodeset(name, 1, **spec)
    return instance


OTHERS: dict[str, dict[str, Any]] = {
    "image": {"image": NO_IMAGE},
    "large": {"resources": MUCH},
    "memory": {"extraConf": "RealMemory=99999999"},
    "refused": {"features": ["compute"]},
}
"""NodeSets that do not come up, with what keeps each from it."""


def summary(slurm: SlurmInKubernetes, nodeset: str) -> str:
    return str(slurm.get("nodeset", nodeset).get("status", {}).get("summary", ""))


def wait_summary(slurm: SlurmInKubernetes, nodeset: str, *words: str) -> None:
    wait_for(
        f"NodeSet {nodeset}: {' … '.join(words)}",
        lambda: all(word in summary(slurm, nodeset) for word in words),
        PATIENCE,
    )


def show(slurm: SlurmInKubernetes, nodeset: str) -> None:
    """Log what a person sees."""
    logger.info("\n%s\n%s", slurm.kube("get", "nodesets"), slurm.kube("describe", "nodeset", nodeset))


def degraded(slurm: SlurmInKubernetes, nodeset: str) -> tuple[str, str, str]:
    found = slurm.condition("nodeset", nodeset, "Degraded")
    return found["status"], found["reason"], found["message"]


def test_the_status_is_a_column_and_all_is_well_in_few_words(slurm: SlurmInKubernetes) -> None:
    show(slurm, "compute")
    header, row = slurm.kube("get", "nodesets", "compute").splitlines()
    assert header.split() == ["NAME", "DESIRED", "READY", "STATUS", "AGE"]
    assert row.split()[:7] == ["compute", "2", "2", *["2", "of", "2", "ready"]]
    assert degraded(slurm, "compute")[0] == "False"


@pytest.mark.parametrize(
    ("nodeset", "reason", "words", "text"),
    [
        (
            "image",
            "ImagePullBackOff",
            f"pod image-0: container slurmd cannot get image {NO_IMAGE}",
            f"1 pod without image {NO_IMAGE}",
        ),
        (
            "large",
            "Unschedulable",
            "not scheduled: 0/2 nodes are available: 2 Insufficient cpu.",
            "1 pod not scheduled: 0/2 nodes are available: 2 Insufficient cpu",
        ),
        ("memory", "InvalidRegistration", "memory-0: Low RealMemory (reported:", "invalid registration of memory-0"),
        (
            "refused",
            "InvalidSpec",
            "spec.features[0]: feature compute is the name of a NodeSet",
            "invalid spec.features[0]",
        ),
    ],
)
def test_what_keeps_a_nodeset_from_its_nodes_is_quoted_and_told_in_one_event(
    slurm: SlurmInKubernetes, nodeset: str, reason: str, words: str, text: str
) -> None:
    wait_summary(slurm, nodeset, text)
    wait_for(f"{words} in the condition", lambda: words in degraded(slurm, nodeset)[2], PATIENCE)
    assert degraded(slurm, nodeset)[:2] == ("True", reason)
    slurm.wait_event(nodeset, reason, words)
    show(slurm, nodeset)
    assert len([line for line in slurm.events(nodeset) if line.startswith(f"{reason}: ")]) == 1
    if nodeset == "refused":
        # Its nodes would be in the partition of NodeSet compute.
        assert "refused-0" not in slurm.slurmd_pods()


def test_a_drain_of_somebody_else_is_shown_with_who_and_why(slurm: SlurmInKubernetes) -> None:
    slurm.control("scontrol", "update", "nodename=compute-1", "state=drain", "reason=disk is full")
    wait_summary(slurm, "compute", "2 of 2 ready; 1 drained by ", "compute-1 (disk is full)")

    found = slurm.condition("nodeset", "compute", "NodesOutOfService")
    assert (found["status"], found["reason"]) == ("True", "ForeignDrain")
    assert "compute-1 (IDLE+DRAIN: disk is full, set by " in found["message"]
    assert degraded(slurm, "compute")[0] == "False"
    assert slurm.get("nodeset", "compute")["status"]["nodes"]["drained"] == 1
    show(slurm, "compute")

    slurm.control("scontrol", "update", "nodename=compute-1", "state=resume")
    wait_for("the node back", lambda: summary(slurm, "compute") == "2 of 2 ready", PATIENCE)


def test_a_node_that_is_down_is_named_with_slurms_reason(slurm: SlurmInKubernetes) -> None:
    slurm.control("scontrol", "update", "nodename=compute-0", "state=down", "reason=fan is broken")
    wait_summary(slurm, "compute", "1 of 2 ready; 1 node is down: compute-0 (fan is broken)")

    assert degraded(slurm, "compute")[:2] == ("True", "NodeDown")
    slurm.wait_event("compute", "NodeDown", "compute-0 (DOWN: fan is broken, set by ")
    show(slurm, "compute")

    slurm.control("scontrol", "update", "nodename=compute-0", "state=resume")
    wait_for("the node back", lambda: summary(slurm, "compute") == "2 of 2 ready", PATIENCE)
    assert degraded(slurm, "compute")[0] == "False"


def test_a_scale_in_says_what_it_waits_for_and_until_when(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold("compute-1", "--time=30")
    before = said(slurm)
    # The idle node would go first.
    slurm.kube("annotate", "pod", "compute-0", "nodeset.slinky.slurm.net/pod-deletion-cost=100")
    slurm.scale("compute", 0)
    wait_summary(slurm, "compute", "draining ", " for scale-in, 1 job left until ")
    show(slurm, "compute")

    slurm.release(job, "compute-1")
    slurm.wait_gone("compute-1")
    slurm.scale("compute", 2)
    wait_for("both again", lambda: summary(slurm, "compute") == "2 of 2 ready", PATIENCE)
    assert said(slurm) == before


def said(slurm: SlurmInKubernetes) -> list[tuple[str, str]]:
    """Status and reason of conditions that a scale-in has nothing to do with."""
    found = [slurm.condition("nodeset", "compute", kind) for kind in ("SlurmReachable", "NodesWatched")]
    return [(one["status"], one["reason"]) for one in found]


def test_a_slurm_that_cannot_be_asked_is_told_and_pods_stay(slurm: SlurmInKubernetes) -> None:
    uids = {name: slurm.pod_uid(name) for name in ("compute-0", "compute-1")}
    serve(slurm, 0)
    wait_summary(slurm, "compute", "2 pods; Slurm is unreachable: ")
    assert degraded(slurm, "compute")[:2] == ("True", "SlurmUnreachable")
    assert slurm.condition("nodeset", "compute", "Available")["status"] == "Unknown"
    show(slurm, "compute")

    serve(slurm, 1)
    wait_for("Slurm again", lambda: summary(slurm, "compute") == "2 of 2 ready", PATIENCE)
    assert {name: slurm.pod_uid(name) for name in uids} == uids


def serve(slurm: SlurmInKubernetes, replicas: int) -> None:
    """Run so many slurmrestd."""
    patch = json.dumps({"spec": {"restapi": {"replicas": replicas}}})
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", f"--patch={patch}")

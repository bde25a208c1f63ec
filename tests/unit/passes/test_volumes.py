"""A NodeSet whose job log server says that there is little room: from the question to status, Event and metric."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from slinky_api import labels
from slinky_operator.kube import resources
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.connection.volume_query import Looker
from slinky_operator.slurm.pods.volume_room import Room, Volumes
from tests.support.passes import NAMESPACE, Operator, operator

UID = "uid-of-NodeSet-a"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a-0",
        "namespace": NAMESPACE,
        "uid": "pod-uid",
        "labels": {
            labels.LABEL_NODESET_UID: UID,
            labels.LABEL_NODESET_NAME: "a",
            labels.LABEL_CLUSTER_UID: "uid-of-Cluster-a",
            **naming.slurmd_labels("a"),
        },
    },
    "spec": {
        "hostname": "a-0",
        "nodeName": "w",
        "containers": [{"name": "slurmd"}],
        "initContainers": [{"name": naming.JOB_LOGS_CONTAINER}],
        "volumes": [{"name": "job-output", "persistentVolumeClaim": {"claimName": "out-0"}}],
    },
    "status": {
        "phase": "Running",
        "podIP": "fd00::7",
        "containerStatuses": [{"name": "slurmd", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
    },
}


def volumes(made: Operator) -> dict[str, Any]:
    (found,) = [one for one in made.status("NodeSet")["conditions"] if one["type"] == "VolumesHaveRoom"]
    return dict(found)


async def test_from_the_question_to_what_is_told() -> None:
    asked: list[Looker] = []

    async def ask(looker: Looker) -> Volumes:
        asked.append(looker)
        return Volumes(looker.pod_uid, 0.0, {"job-output": Room(2**30, 2**26, 100, 90)})

    async with operator(ask) as made:
        made.add("Cluster", {}, {"isReady": True, "config": {"nodeSets": ["a"]}})
        made.add("NodeSet", {"clusterName": "a", "replicas": 1, "jobLogs": {}})
        made.kube.put(resources.PODS, POD)
        # No Slurm is needed for it.
        made.slurm.contact = Contact(ContactState.UNREACHABLE, datetime(2026, 1, 1, tzinfo=UTC), "no answer")
        for _ in range(4):
            await made.pass_over("NodeSet")
        # Asked once a minute, however many passes there are.
        assert asked == [Looker(f"http://[fd00::7]:{naming.JOB_LOGS_PORT}", "pod-uid", NAMESPACE)]
        told = volumes(made)
        assert (told["status"], told["reason"]) == ("False", "VolumeNearlyFull")
        assert told["message"].startswith("job-output of a-0 (claim out-0) has 6% of 1024 MiB left. ")
        assert [reason for reason, _ in made.recorder.told].count("VolumeNearlyFull") == 1
        assert made.slurm.shown["a"] == (0.0625, 0.9)

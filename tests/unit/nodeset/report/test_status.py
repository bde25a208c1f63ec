"""The status of a NodeSet: conditions with reasons, and what they name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.conditions import NodeSetCondition, Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.autoscaling import AutoscalingStatus
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.pod_state import Doubt, Ready, State, Unknown
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import status
from slinky_operator.reconcile.writes.status_writer import patch_between
from slurm_client.models import Node
from slurm_client.models.node import NodeState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


def nodeset(**spec: Any) -> NodeSet:
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "generation": 2,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    return NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 3, **spec}})


def a_pod(number: int, revision: str = "new", *, ready: bool = True) -> Pod:
    name = f"a-{number}"
    return Pod(
        name,
        name,
        f"u{number}",
        ordinal=number,
        revision=revision,
        host="host",
        slurmd=Slurmd.RUNNING,
        registered=True,
        ready_since=BEFORE if ready else None,
    )


def seen(*pods: Pod, owner: NodeSet | None = None, **cluster: Any) -> Snapshot:
    nodes = {
        pod.name: Node(
            name=pod.name,
            state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]),
            extra="ns/a",
            instance_id=pod.uid,
        )
        for pod in pods
    }
    return Snapshot(
        owner or nodeset(),
        replace(ClusterFacts(uid="c", listed=True), **cluster),
        SlurmFacts(readable=True, nodes=nodes),
        Revision("new", current="old"),
        pods,
        hosts={},
    )


def told(snapshot: Snapshot, desired: int = 3) -> dict[str, Condition]:
    found = Decisions(Layout(desired), states={pod.name: Ready() for pod in snapshot.pods})
    return {one.type: one for one in status.build(snapshot, found, NOW).conditions}


def test_all_is_well() -> None:
    found = told(seen(a_pod(0), a_pod(1), a_pod(2)))

    assert {kind for kind, one in found.items() if one.status == "True"} == {
        "Ready",
        "Available",
        "SlurmReachable",
        "NodesWatched",
    }
    assert found["Ready"].message == "3 of 3 nodes are ready"


def test_each_type_of_condition_is_reported() -> None:
    shown = NodeSetStatus(autoscaling=AutoscalingStatus(active=True, reason=Reason.NODES_WANTED))
    health = {"checks": [{"name": "disk", "use": "Disk"}], "defaults": True, "replace": {"policy": "RecreatePod"}}
    owner = nodeset(autoscaling={"maxReplicas": 3}, health=health)
    owner = owner.model_copy(update={"status": shown})
    pod = replace(a_pod(0), address="10.0.0.1", output_claim="")
    found = Decisions(
        Layout(1), states={pod.name: Ready()}, named={"a-1": ("required by job 7",)}, checks=CheckTrial(is_wanted=True)
    )
    snapshot = replace(seen(pod, owner=owner), checks=StoredChecks())
    conditions = status.build(snapshot, found, NOW).conditions
    assert sorted(one.type for one in conditions) == sorted(NodeSetCondition)


@pytest.mark.parametrize(("missing", "holds"), [(1, "True"), (2, "False")])
def test_as_many_may_be_missing_as_an_update_takes(missing: int, holds: str) -> None:
    pods = [a_pod(number, ready=number >= missing) for number in range(3)]

    available = told(seen(*pods))["Available"]

    assert available.status == holds
    assert available.message == f"{3 - missing} of 3 nodes available (minimum 2)"


def test_blind_nobody_knows_what_is_available() -> None:
    blind = replace(
        seen(*(a_pod(number) for number in range(3))),
        slurm=SlurmFacts(readable=False, reason=Reason.UNAUTHORIZED, why="token refused"),
    )

    found = told(blind)

    assert (found["Available"].status, found["Available"].reason) == ("Unknown", "Unauthorized")
    assert (found["SlurmReachable"].status, found["SlurmReachable"].message) == ("False", "token refused")


@pytest.mark.parametrize(
    ("strategy", "reason", "word"),
    [
        ({"type": "OnDelete"}, "UpdateOnDelete", "when they are deleted"),
        ({"rollingUpdate": {"paused": True}}, "UpdatePaused", "spec.updateStrategy.rollingUpdate.paused"),
        ({"rollingUpdate": {"partition": 3}}, "UpdateHeldBack", "spec.updateStrategy.rollingUpdate.partition"),
    ],
)
def test_what_is_held_back_is_ready_and_told(strategy: dict[str, Any], reason: str, word: str) -> None:
    pods = [a_pod(0, "old"), a_pod(1, "old"), a_pod(2)]

    found = told(seen(*pods, owner=nodeset(updateStrategy=strategy)))

    assert (found["Ready"].status, found["Progressing"].status) == ("True", "False")
    assert found["Ready"].reason == found["Progressing"].reason == reason
    assert "1 of 3 pods have revision new" in found["Progressing"].message
    assert word in found["Ready"].message


def test_an_update_that_waits_for_a_window_is_ready_and_told() -> None:
    paused = {"rollingUpdate": {"paused": True}}
    waiting = seen(a_pod(0, "old"), a_pod(1), a_pod(2), owner=nodeset(updateStrategy=paused))
    waits = replace(waiting.cluster, window_wait="Cluster c holds updates", maintenance="night 2026-11-29T02:00:00Z")
    waiting = replace(waiting, cluster=waits)

    found = told(waiting)

    assert (found["Ready"].status, found["Progressing"].status) == ("True", "False")
    assert found["Progressing"].reason == "UpdateWaitsForMaintenance"
    assert found["Progressing"].message == "2 of 3 pods have revision new; Cluster c holds updates"
    shown = status.build(waiting, Decisions(Layout(3)), NOW)
    assert (shown.summary, shown.maintenance) == (
        "3 of 3 ready; update waits for maintenance",
        "night 2026-11-29T02:00:00Z",
    )


def test_an_update_under_way_is_told() -> None:
    found = told(seen(a_pod(0, "old"), a_pod(1), a_pod(2)))

    assert (found["Ready"].status, found["Progressing"].status) == ("False", "True")
    assert found["Progressing"].reason == "Updating"


@pytest.mark.parametrize("listed", [True, False])
def test_what_the_cluster_refused_is_told_with_field_and_reason(listed: bool) -> None:
    why = "spec.partition.config: has a line break"

    found = told(seen(a_pod(0), a_pod(1), a_pod(2), refused=why, listed=listed))

    assert (found["Degraded"].status, found["Degraded"].reason) == ("True", "ConfigRefused")
    assert why in found["Degraded"].message
    assert ("as it was" in found["Degraded"].message) is listed
    assert found["NameConflict"].status == "False"


def test_a_name_that_the_cluster_refused_is_a_conflict() -> None:
    why = "metadata.name: a is a partition of the Cluster"

    assert told(seen(refused=why, listed=False))["NameConflict"].message == why


def test_pods_whose_cluster_is_gone_for_good_wait_for_a_word() -> None:
    gone = replace(seen(a_pod(0)), cluster=ClusterFacts(gone=True))

    found = told(gone)

    assert (found["ClusterGone"].status, found["Degraded"].reason) == ("True", "ClusterGone")
    assert labels.ANNOTATION_SKIP_DRAIN in found["ClusterGone"].message
    assert told(replace(gone, pods=()))["ClusterGone"].status == "False"


def test_an_update_is_over_once_all_have_come_up_though_a_cordon_keeps_some_drained() -> None:
    snapshot = seen(a_pod(0), a_pod(1), a_pod(2))
    cordoned = replace(
        snapshot.slurm.nodes["a-1"],
        state=NodeState.from_words(["IDLE", "DRAIN", "DYNAMIC_NORM"]),
        reason="slurm-operator: node-cordon (ns/a)",
    )
    nodes = {**snapshot.slurm.nodes, "a-1": cordoned}
    drained = replace(snapshot, slurm=replace(snapshot.slurm, nodes=nodes))

    written = status.build(drained, Decisions(Layout(3)), NOW)

    assert written.available_replicas == 2
    assert (written.node_set_hash, written.current_revision) == ("new", "a-new")


def test_an_update_is_not_over_while_one_has_not_come_up() -> None:
    written = status.build(seen(a_pod(0), a_pod(1), a_pod(2, ready=False)), Decisions(Layout(3)), NOW)

    assert (written.node_set_hash, written.current_revision) == ("old", "a-old")


def test_a_node_that_is_somebody_elses_is_a_conflict_and_words_alone_are_not() -> None:
    snapshot = seen(a_pod(0), a_pod(1), a_pod(2))
    theirs = Unknown("node a-1 in Slurm is somebody else's", Doubt.FOREIGN_RECORD)
    states: dict[str, State] = {
        "a-0": Unknown("slurmrestd: somebody else's certificate"),
        "a-1": theirs,
        "a-2": Ready(),
    }

    conditions = status.build(snapshot, Decisions(Layout(3), states=states), NOW).conditions

    (conflict,) = [one for one in conditions if one.type == "NameConflict"]
    assert (conflict.status, conflict.message) == ("True", theirs.why)


def test_a_zero_is_written_to_a_status_that_has_no_such_field_and_no_other_time() -> None:
    """`kubectl get` shows nothing for a field that is not there."""
    of = nodeset(replicas=0)
    wanted = NodeSetStatus.counted(desired=0, replicas=0, updated=0, ready=0, available=0).to_dict()
    patch = patch_between(of.status.as_stored(), wanted)
    assert (patch["desired"], patch["readyReplicas"], patch["nodes"]["idle"]) == (0, 0, 0)
    stored = NodeSet.parse({"metadata": {"name": "a"}, "spec": {"clusterName": "c"}, "status": {**patch, "strange": 1}})
    assert patch_between(stored.status.as_stored(), wanted) == {}

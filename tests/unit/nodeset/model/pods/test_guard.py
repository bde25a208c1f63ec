"""The guard, and what happens to pods that have lost it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.actions import DeletePods, EnsureGuard, RemoveFinalizer
from slinky_operator.nodeset.model.pods import guard, pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def nodeset(**metadata: object) -> NodeSet:
    given = {
        "name": "a",
        "namespace": "ns",
        "uid": "set",
        "generation": 1,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
        **metadata,
    }
    return NodeSet.parse({"metadata": given, "spec": {"clusterName": "c", "replicas": 1}})


def pod(guard_uid: str = "g", **values: object) -> Pod:
    given = {
        "ordinal": 0,
        "revision": revision.of(nodeset()),
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
        "ready_since": NOW,
        "protected": True,
        "guards": frozenset({guard_uid} - {""}),
        **values,
    }
    return Pod("a-0", "a-0", "u", **given)  # type: ignore[arg-type]


def snapshot(of: NodeSet, *pods: Pod, known: str = "g", readable: bool = True) -> Snapshot:
    node = Node(name="a-0", extra="ns/a", instance_id="u", state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]))
    slurm = SlurmFacts(readable=readable, nodes={"a-0": node} if readable else {}, jobs={})
    return Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), pods, guard=known)


def guards(of: Snapshot) -> list[EnsureGuard]:
    return [action for action in plan(of, NOW).actions if isinstance(action, EnsureGuard)]


def test_a_pod_tells_which_guard_holds_it() -> None:
    owners = guard.owners(nodeset(), "g")
    made = {"metadata": {"name": "a-0", "uid": "u", "ownerReferences": owners}}

    assert pod_facts.read(made, "a").guards == {"g"}
    assert (
        pod_facts.read({"metadata": {"name": "a-0", "uid": "u", "ownerReferences": owners[:1]}}, "a").guards
        == frozenset()
    )


@pytest.mark.parametrize(("held_by", "known"), [("", ""), ("", "g"), ("old", "g")])
def test_a_pod_that_lost_its_guard_gets_one(held_by: str, known: str) -> None:
    assert guards(snapshot(nodeset(), pod(held_by), known=known)) == [EnsureGuard((pod(held_by),))]


def test_a_former_guard_that_is_still_named_is_no_matter() -> None:
    assert guards(snapshot(nodeset(), pod(guards=frozenset({"former", "g"})))) == []


@pytest.mark.parametrize("known", ["", "g"])
def test_a_pod_that_is_held_is_left_alone(known: str) -> None:
    assert guards(snapshot(nodeset(), pod(), known=known)) == []


def test_it_is_given_back_while_slurm_is_silent_too() -> None:
    assert guards(snapshot(nodeset(), pod(""), readable=False)) == [EnsureGuard((pod(""),))]


def test_what_concerns_jobs_comes_first() -> None:
    going = nodeset(deletionTimestamp="2026-01-01T12:00:00Z")
    actions = plan(snapshot(going, pod("")), NOW).actions

    assert isinstance(actions[-1], EnsureGuard)
    assert len(actions) > 1


def test_pods_whose_jobs_are_given_up_and_those_that_go_need_none() -> None:
    given_up = nodeset(deletionTimestamp="2026-01-01T12:00:00Z", annotations={labels.ANNOTATION_SKIP_DRAIN: "true"})

    assert [type(one) for one in plan(snapshot(given_up, pod("")), NOW).actions] == [DeletePods]
    assert guards(snapshot(nodeset(), pod("", deleting=True))) == []
    gone = plan(snapshot(nodeset(deletionTimestamp="2026-01-01T12:00:00Z")), NOW).actions
    assert RemoveFinalizer() in gone
    assert RemoveFinalizer(anyway=True) in plan(snapshot(given_up), NOW).actions


def test_a_configmap_of_its_name_that_has_another_label_is_not_the_guard() -> None:
    assert guard.is_ours(nodeset(), guard.build(nodeset()))
    assert not guard.is_ours(nodeset(), guard.build(nodeset(uid="another")))
    assert not guard.is_ours(nodeset(), {"metadata": {"name": guard.name(nodeset())}})


def test_a_pod_that_an_earlier_nodeset_has_left_is_named_with_what_to_delete() -> None:
    def about(**own: str) -> str:
        return guard.stranger(nodeset(), {"metadata": {"name": "a-0", "labels": own}})

    taken = "there is a pod a-0 that is not ours"
    assert about() == taken
    assert about(**{labels.LABEL_NODESET_NAME: "b", labels.LABEL_NODESET_UID: "another"}) == taken
    assert about(**{labels.LABEL_NODESET_NAME: "a", labels.LABEL_NODESET_UID: "0123456789"}) == (
        f"{taken}: it was left by an earlier NodeSet a whose finalizers were removed. Once its node has no jobs: "
        "kubectl delete -n ns pod/a-0 configmap/nodeset-a-01234567"
    )

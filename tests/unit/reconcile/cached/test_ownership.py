"""Which objects with the operator's labels can be somebody's: those that the operator makes, and no junk."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator import controllers
from slinky_operator.kube.cache.interest import Name, OwnershipClaim
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, LOGINSETS, NODESETS, SLURMJOBS
from slinky_operator.reconcile.cached import ownership
from slinky_operator.settings import Settings
from slinky_operator.slurm import naming
from tests.unit.test_controllers import EVERYTHING

CLUSTER = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_CLUSTER_NAME: "slurm"}
STALE = {**CLUSTER, labels.LABEL_CLUSTER_UID: "gone"}


def thing(name: str, marks: dict[str, str], *owners: tuple[str, str]) -> Object:
    references = [{"kind": kind, "name": owner, "uid": f"uid-{owner}"} for kind, owner in owners]
    about: dict[str, Any] = {"name": name, "namespace": "a", "labels": marks}
    return {"metadata": {**about, "ownerReferences": references} if owners else about}


def test_every_cache_of_objects_with_owners_knows_what_they_claim() -> None:
    settings = Settings(
        slurmjobs=True, node_labels_config_map="a/b", node_labels_from_slurm=True, node_labels_clusters=("*",)
    )
    every = controllers.wanted(Settings(**EVERYTHING))
    wanted = {cache.resource for spec in every for cache in spec.caches(settings) if cache.owners}
    assert wanted == ownership.CLAIMS.keys()


@pytest.mark.parametrize("name", [*sorted(naming.children("slurm")), naming.preflight("slurm", "abc")])
def test_a_cluster_takes_over_each_of_its_objects_by_name(name: str) -> None:
    assert (CLUSTERS, "slurm") in ownership.of_child(thing(name, STALE)).names


def test_labels_alone_claim_nothing_but_the_uid_that_they_name() -> None:
    found = ownership.of_child(thing("junk", STALE))
    assert found == OwnershipClaim(frozenset({"gone"}))
    found = ownership.of_pod(thing("junk", {**STALE, labels.LABEL_NODESET_UID: "made-up"}))
    assert found == OwnershipClaim(frozenset({"gone", "made-up"}))


def test_service_and_budget_of_slurmd_pods_count_without_their_cluster() -> None:
    left = {name for name in naming.children("slurm") if ownership.of_child(thing(name, STALE)).is_left}
    assert left == {naming.node_service("slurm"), naming.disruption_budget("slurm")}


@pytest.mark.parametrize(
    ("owners", "name", "expected"),
    [
        # A slurmd pod, whole, and with the NodeSet or the guard taken off.
        ([("NodeSet", "w"), ("ConfigMap", "nodeset-w-1")], "w-0", {(CLUSTERS, "slurm"), (NODESETS, "w")}),
        ([("ConfigMap", "nodeset-w-1")], "w-0", {(CLUSTERS, "slurm")}),
        ([("StatefulSet", naming.controller("slurm"))], "slurm-controller-0", {(CLUSTERS, "slurm")}),
        ([("ReplicaSet", f"{naming.restapi('slurm')}-5d9c")], "x", {(CLUSTERS, "slurm")}),
        ([], naming.preflight("slurm", "abc"), {(CLUSTERS, "slurm")}),
        # Strangers' workloads, objects and pods of nobody.
        ([("StatefulSet", "other")], "other-0", set()),
        ([("ReplicaSet", "other-5d9c")], "x", set()),
        ([("ConfigMap", "other")], "w-0", set()),
        ([("Job", "slurm")], "w-0", set()),
        ([], "w-0", set()),
    ],
)
def test_a_pod_claims_what_its_owners_show(owners: list[tuple[str, str]], name: str, expected: set[Name]) -> None:
    found = ownership.of_pod(thing(name, CLUSTER, *owners))
    assert found.names == expected
    assert found.uids == {f"uid-{owner}" for _, owner in owners}


def test_pods_of_login_sets_claims_and_pods_of_jobs_are_found_by_name_too() -> None:
    login = thing("x", {**CLUSTER, labels.LABEL_LOGINSET_NAME: "door"}, ("ReplicaSet", "door-login-77"))
    assert ownership.of_pod(login).names == {(LOGINSETS, "door")}
    assert ownership.of_claim(thing("data-w-0", {labels.LABEL_NODESET_NAME: "w"})).names == {(NODESETS, "w")}
    job = thing("hello-job-logs", {labels.LABEL_JOB_LOGS: "true"}, ("SlurmJob", "hello"))
    assert ownership.of_job_pod(job).names == {(SLURMJOBS, "hello")}
    assert ownership.of_job_pod(thing("junk", {labels.LABEL_JOB_LOGS: "true"})).names == frozenset()

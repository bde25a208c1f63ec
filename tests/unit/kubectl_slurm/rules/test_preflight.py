"""`preflight`: what a change does to nodes and jobs follows from the objects before and after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.changes import preflight
from slinky_api import labels
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_operator.cluster.parts import daemons
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import API, KubernetesWorld
from tests.unit.kubectl_slurm.samples import NOW, job, node
from tests.unit.kubectl_slurm.screens import text

PODS = ("w-0", "w-1", "w-2")
SEEN = SlurmPicture(
    now=NOW,
    nodes=(node("w-0"), node("w-1", "MIXED"), node("w-2", "MIXED")),
    jobs=(
        job(1, "RUNNING", nodes=("w-1",), end_time=NOW + timedelta(minutes=5)),
        job(2, "RUNNING", nodes=("w-2",), end_time=NOW + timedelta(hours=5)),
        job(3, "RUNNING", nodes=("elsewhere",)),
        job(4, partition="old,all"),
    ),
)
OLD: dict[str, Any] = {"replicas": 3, "image": "a", "drain": {"timeout": "1h", "onTimeout": "Cancel"}}


def nodeset(**changes: Any) -> list[preflight.Finding]:
    return preflight.nodeset(OLD, {**OLD, **changes}, SEEN, PODS)


def test_idle_nodes_go_first_and_end_no_job() -> None:
    (found,) = nodeset(replicas=2)
    assert "Of 3 nodes, 1 will be drained and removed, idle ones first (1 idle now)" in found.text
    assert found.ends == ()


def test_jobs_that_run_longer_than_the_drain_waits_are_named() -> None:
    (found,) = nodeset(replicas=1)
    assert found.ends == ("2",)
    assert "1 job may be cancelled after drain.timeout (1h): 2." in found.text
    (found,) = nodeset(image="b")
    assert "image changes: all 3 pods are drained and replaced, 1 at a time" in found.text
    assert found.ends == ("2",)


@pytest.mark.parametrize("drain", [None, {}, {"timeout": "1m"}, {"timeout": "1m", "onTimeout": "Wait"}])
def test_without_an_end_of_its_patience_a_drain_ends_no_job(drain: Any) -> None:
    (found,) = preflight.nodeset({**OLD, "drain": drain}, {**OLD, "image": "b", "drain": drain}, SEEN, PODS)
    assert found.ends == ()
    assert "2 jobs on its nodes go on to their end first" in found.text


def test_other_changes_of_a_nodeset() -> None:
    assert nodeset() == []
    assert "Nodes that are added: 1." in nodeset(replicas=4)[0].text
    assert "until somebody deletes it" in nodeset(image="b", updateStrategy={"type": "OnDelete"})[0].text
    assert "stays until its jobs have ended" in nodeset(partition={"enabled": False})[0].text
    assert "It is new, with 3 nodes" in preflight.nodeset(None, OLD, SEEN, ())[0].text


def test_changes_of_a_cluster() -> None:
    old = {"partitions": [{"name": "old"}, {"name": "all"}], "controller": {"image": "a"}}
    new = {"partitions": [{"name": "all"}], "controller": {"image": "b"}, "extraConf": "X=1"}
    texts = " ".join(one.text for one in preflight.cluster(old, new, SEEN))
    assert "Partition old goes: it takes no new jobs, and stays until its last job has ended (1 now)" in texts
    assert "extraConf" in texts
    assert "the pod of slurmctld may be replaced" in texts
    assert preflight.cluster(old, old, SEEN) == []
    assert "new" in preflight.cluster(None, new, SEEN)[0].text


def test_names_of_claims_are_part_of_a_pod_and_their_content_is_not() -> None:
    def claim(name: str, size: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"resources": {"requests": {"storage": size}}}}

    old = {**OLD, "volumeClaimTemplates": [claim("scratch", "1Gi")]}
    (found,) = preflight.nodeset(old, {**old, "volumeClaimTemplates": [claim("tmp", "1Gi")]}, SEEN, PODS)
    assert found.ends == ("2",)
    assert "volumeClaimTemplates changes: all 3 pods are drained and replaced" in found.text
    assert preflight.nodeset(old, {**old, "volumeClaimTemplates": [claim("scratch", "9Gi")]}, SEEN, PODS) == []


def test_a_change_of_identity_replaces_the_pods_of_all_nodesets() -> None:
    nodesets = [preflight.Pods("w", OLD, PODS), preflight.Pods("empty", OLD, ())]
    (found,) = preflight.cluster({}, {"identity": {"sssd": {}}}, SEEN, nodesets)
    assert found.ends == ("2",)
    assert "identity, from which NodeSet w makes its pods too, changes: all 3 pods" in found.text


def test_a_shorter_drain_counts_for_nodes_that_are_drained_now() -> None:
    assert nodeset(drain={"timeout": "1s", "onTimeout": "Cancel"}) == []
    draining = replace(SEEN, nodes=(node("w-1", "MIXED+DRAIN"), node("w-2", "MIXED")))
    new = {**OLD, "drain": {"timeout": "1s", "onTimeout": "Cancel"}}
    (found,) = preflight.nodeset(OLD, new, draining, PODS)
    assert found.ends == ("1",)


@pytest.mark.parametrize("field", ["ordinalPadding", "workloadDisruptionProtection", "updateStrategy", "notYetKnown"])
def test_a_field_that_nobody_knows_is_said_to_be_one(field: str) -> None:
    (found,) = nodeset(**{field: "x"})
    assert found.text == f"{field} changes: preflight does not know what follows."
    assert preflight.unsure([found])
    (found,) = preflight.cluster({}, {field: "x"}, SEEN)
    assert preflight.unsure([found])


def test_the_lists_of_known_fields_name_fields_that_there_are() -> None:
    assert {str(one.alias) for one in NodeSetSpec.model_fields.values()} >= preflight.TOLD | preflight.HARMLESS
    known = preflight.TOLD_OF_CLUSTERS | preflight.HARMLESS_OF_CLUSTERS
    # Of these two the fields are below accounting and metrics.
    assert {str(one.alias) for one in ClusterSpec.model_fields.values()} >= known - {"database", "exporter"}


def test_grants_of_tokens_change_no_node_and_keys_do() -> None:
    assert preflight.cluster({}, {"auth": {"tokens": [{}]}, "metrics": {}, "jobs": {}}, SEEN) == []
    assert preflight.unsure(preflight.cluster({}, {"auth": {"slurmKeyRef": {"name": "k"}}}, SEEN))


def test_replicas_that_are_left_out_and_new_nodesets_of_each_kind() -> None:
    assert preflight.unsure(preflight.nodeset({"replicas": 3}, {}, SEEN, PODS))
    for spec, words in (
        ({}, "a node on each Kubernetes Node that it matches."),
        ({"scalingMode": "DaemonSet", "replicas": 4}, "a node on each Kubernetes Node that it matches, and 4 at the"),
        ({"scalingMode": "StatefulSet"}, "1 node."),
        ({"autoscaling": {"minReplicas": 2}}, "2 nodes at first, by autoscaling"),
    ):
        assert f"It is new, with {words}" in preflight.nodeset(None, spec, SEEN, ())[0].text


def test_jobs_that_are_hidden_are_missed() -> None:
    assert preflight.hidden(None, SEEN) == preflight.hidden(3, SEEN) == ""
    assert "has counted 4 running jobs, and Slurm shows 3" in preflight.hidden(4, SEEN)


def manifest(path: Path, *objects: Any) -> str:
    file = path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


NODESET = {"apiVersion": API, "kind": "NodeSet", "metadata": {"name": "w"}}
LIVE: dict[str, Any] = {"clusterName": "slurm", "replicas": 1, "drain": {"timeout": "1m", "onTimeout": "Cancel"}}


@pytest.fixture
def filled(world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> KubernetesWorld:
    """A NodeSet with a node, on which a job without an end runs."""
    world.add("nodesets", "w", LIVE)
    world.add("pods", "w-0", labels={labels.LABEL_NODESET_NAME: "w"})
    fake_slurm.add_node("w-0")
    fake_slurm.add_job(nodes=["w-0"], user="alice")
    return world


def test_a_second_cluster_hides_no_job(run: Run, filled: KubernetesWorld, tmp_path: Path) -> None:
    filled.add("clusters", "other")
    shown = run("preflight", "-f", manifest(tmp_path, {**NODESET, "spec": {**LIVE, "image": "b"}}), code=1)
    assert "1 job may be cancelled" in shown


def test_nodes_that_have_another_name_than_their_pods_are_found(
    run: Run, filled: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    fake_slurm.add_node("rack-7")
    fake_slurm.add_job(nodes=["rack-7"], user="bob")
    own = {labels.LABEL_NODESET_NAME: "w", labels.LABEL_POD_HOSTNAME: "rack-7"}
    filled.add("pods", "w-xyz", {"hostname": "rack-7"}, labels=own)
    shown = run("preflight", "-f", manifest(tmp_path, {**NODESET, "spec": {**LIVE, "image": "b"}}), code=1)
    assert "2 jobs may be cancelled" in shown
    assert "Its pod w-xyz" in run("explain", "node/rack-7")
    filled.logs["w-xyz"] = "slurmd started"
    assert run("logs", "node/rack-7") == "slurmd started\n"


def test_jobs_are_read_as_the_administrator(
    run: Run, filled: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    run("preflight", "-f", manifest(tmp_path, {**NODESET, "spec": {**LIVE, "image": "b"}}), code=1)
    tokens = {one.headers["X-SLURM-USER-TOKEN"] for one in fake_slurm.requests}
    assert {jwt.decode(token, options={"verify_signature": False})["sun"] for token in tokens} == {"slurm"}


def test_fewer_jobs_than_the_operator_counted_are_a_warning(
    run: Run, filled: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    filled.add("clusters", "slurm", status={"jobs": {"running": 3}})
    file = manifest(tmp_path, {**NODESET, "spec": {**LIVE, "drain": {}, "image": "b"}})
    assert "counted 3 running jobs, and Slurm shows 1" in run("preflight", "-f", file)
    for number in list(fake_slurm.jobs):
        fake_slurm.forget_job(number)
    # Who sees none at all knows nothing.
    assert "Slurm shows 0" in run("preflight", "-f", file, code=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: List\nitems: [3]", "has 3 where an object is expected"),
        ("[1, 2]", "has [1, 2] where an object is expected"),
        ("kind: !!set {a, b}", "is no YAML"),
        ("a: &a [*a]", "is no YAML"),
        ("a: [", "is no YAML"),
    ],
)
def test_what_is_no_object_is_an_error_in_one_line(run: Run, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(text)
    assert words in run("preflight", "-f", str(file), code=1)


def test_objects_of_another_form_are_shown_to_the_api_server(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("kind: X\nmetadata: []\n---\nkind: X\nmetadata: {name: y, annotations: {at: 2026-11-27}}\n")
    shown = run("preflight", "-f", str(file))
    assert "X y: not looked at" in shown


def test_what_is_refused_is_shown_with_the_reason() -> None:
    assert "spec.replicas: Invalid value" in text((preflight.section("NodeSet w", "spec.replicas: Invalid value", ()),))
    assert "changes no node and no job" in text((preflight.section("NodeSet w", "", ()),))


@pytest.mark.parametrize(
    ("given", "seconds"), [("90s", 90), ("1h30m", 5400), ("0s", 0), ("", None), ("x", None), (5, None)]
)
def test_lengths_of_time_are_those_of_kubernetes(given: object, seconds: int | None) -> None:
    found = preflight.duration(given)
    assert (found.total_seconds() if found is not None else None) == seconds


def test_every_daemon_is_told_of() -> None:
    """A field of a Cluster that nothing is known of counts as unsure."""
    fields = {daemon.template_field.split(".")[1] for daemon in daemons.DAEMONS}
    assert fields <= {field for field, _ in preflight.DAEMONS}, "a daemon's field has the name of its component"

"""No field of `spec.jobs.sylabs` of a Cluster is accepted and then has no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slinky_api.sylabs import wlm
from slinky_api.v1alpha1.cluster.jobs import Sylabs, SylabsLabel
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs import clusters, plan
from slinky_operator.sylabs.translation.slurmjob import translate
from tests.unit.cluster.world import cluster_object

TENANTS = [{"namespaces": ["team"], "user": "alice"}]
LABEL = {"name": "site/gpu", "value": "10"}
TWO_NODES = {"image": "docker://a", "resources": {"nodes": 2}}
LABELLED = {"image": "docker://a", "nodeSelector": {"site/gpu": 10}}

FIELDS: Mapping[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "labels": ({}, {"labels": [LABEL]}, LABELLED),
    "labels.name": ({"labels": [{**LABEL, "name": "site/other"}]}, {"labels": [LABEL]}, LABELLED),
    "labels.value": ({"labels": [{**LABEL, "value": "11"}]}, {"labels": [LABEL]}, LABELLED),
    "labels.partition": ({"labels": [LABEL]}, {"labels": [{**LABEL, "partition": "gpu"}]}, LABELLED),
    "labels.features": ({"labels": [LABEL]}, {"labels": [{**LABEL, "features": "a100|h100"}]}, LABELLED),
    "runtime": ({}, {"runtime": "Apptainer"}, {"image": "docker://a"}),
    "folder": ({}, {"folder": "/scratch"}, {"image": "docker://a"}),
    "shared_folder": ({}, {"sharedFolder": True}, TWO_NODES),
    "logs": ({}, {"logs": True}, {"image": "docker://a"}),
    "shared_volume": ({}, {"sharedVolume": {"claimName": "data", "mountPath": "/data"}}, {"image": "docker://a"}),
}
"""By field: what is said without it, with it, and a job to which that makes a difference."""


def made(sylabs: dict[str, Any], spec: dict[str, Any]) -> object:
    """The spec of a SlurmJob, or why there is none."""
    cluster = Cluster.parse(cluster_object({"jobs": {"tenants": TENANTS, "sylabs": sylabs}}))
    candidate = clusters.candidate(cluster, ())
    assert candidate is not None
    chosen = clusters.choose([candidate], "team", None, {candidate.title})
    assert isinstance(chosen, clusters.Chosen)
    try:
        found = translate(wlm.WlmJobSpec.model_validate(spec), chosen.site)
    except InvalidJob as error:
        return error.problem
    return found if found.shared_volume is not None or found.logs else found.spec


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_acts(field: str) -> None:
    before, after, spec = FIELDS[field]
    assert made(before, spec) != made(after, spec)


def logs_of(*, sylabs_pods: bool, with_nodes: tuple[str, ...]) -> object:
    """What the SlurmJob of an old object says of its output."""
    said = {"sylabs": {"logs": True}, "virtualNodes": {"host": "site", "sylabsPods": sylabs_pods}}
    cluster = Cluster.parse(cluster_object({"jobs": {"tenants": TENANTS, **said}}))
    candidate = clusters.candidate(cluster, with_nodes)
    assert candidate is not None
    chosen = clusters.choose([candidate], "team", None, {candidate.title})
    assert isinstance(chosen, clusters.Chosen)
    return plan._logs(translate(wlm.SlurmJobSpec(batch="#!/bin/sh\n"), chosen.site))


@pytest.mark.parametrize("with_nodes", ["*", "here/slurm"])
def test_pods_on_virtual_nodes_take_the_place_of_pods_with_the_output(with_nodes: str) -> None:
    assert logs_of(sylabs_pods=True, with_nodes=(with_nodes,)) == {"logs": {"pod": False}}
    assert logs_of(sylabs_pods=False, with_nodes=(with_nodes,)) == {"logs": {}}


@pytest.mark.parametrize("with_nodes", [(), ("here/other",)])
def test_a_cluster_that_may_have_no_virtual_nodes_keeps_the_pods_with_the_output(with_nodes: tuple[str, ...]) -> None:
    assert logs_of(sylabs_pods=True, with_nodes=with_nodes) == {"logs": {}}


def test_every_field_is_tried() -> None:
    assert set(FIELDS) == {*Sylabs.model_fields, *(f"labels.{name}" for name in SylabsLabel.model_fields)}


def test_what_is_said_of_a_label_is_asked_of_slurm() -> None:
    spec = made({"labels": [{**LABEL, "partition": "gpu", "features": "a100|h100"}]}, LABELLED)
    assert (getattr(spec, "partition", None), getattr(spec, "features", None)) == ("gpu", "a100|h100")


@pytest.mark.parametrize("folder", ["scratch", "/a:b", "/a b", "/a\n", "/" + "a" * 200])
def test_only_a_plain_folder_is_taken(folder: str) -> None:
    with pytest.raises(ValueError, match="folder"):
        _ = Sylabs(folder=folder)

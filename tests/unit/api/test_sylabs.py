"""Old job kinds: what people wrote is read in full, and nothing that is misspelt gets lost."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from slinky_api.crd.definition import definition
from slinky_api.errors import InvalidObjectError
from slinky_api.resource import Resource
from slinky_api.sylabs import slurm, wlm
from slinky_api.sylabs.common import JobStatus, OldJob, OldModel, Word
from slinky_api.v1alpha1 import Token
from tests.support.old_job_kinds import KINDS, MANIFESTS, manifest, parsed


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_read_without_a_field_left_over(name: str) -> None:
    job = parsed(MANIFESTS[name])
    spec: OldModel = job.spec
    assert list(spec.unknown_fields("spec")) == []
    read = spec.model_dump(by_alias=True, exclude_unset=True, mode="json")
    selector = {label: str(value) for label, value in read.get("nodeSelector", {}).items()}
    written = dict(MANIFESTS[name]["spec"])
    if "nodeSelector" in written:
        assert selector == {label: str(value) for label, value in written.pop("nodeSelector").items()}
        del read["nodeSelector"]
    assert read == written


@pytest.mark.parametrize(("resource", "model"), KINDS, ids=lambda each: getattr(each, "full_name", ""))
def test_a_crd_keeps_unknown_fields_of_a_spec_and_of_its_parts(resource: Resource, model: type[OldJob]) -> None:
    crd = definition(resource, model)
    version = crd["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    parts = [spec, *(part for part in spec["properties"].values() if part["type"] == "object")]
    assert crd["metadata"]["name"] == f"{resource.plural}.{resource.group}"
    for part in parts:
        assert part.get("x-kubernetes-preserve-unknown-fields") or part.get("additionalProperties")
    assert spec["properties"]["nodeSelector"]["additionalProperties"]["x-kubernetes-int-or-string"]


def test_misspelt_fields_are_found_wherever_they_are() -> None:
    obj = manifest(
        wlm.WLMJOB,
        image="docker://alpine",
        comand=["true"],
        node_selector={"a": "b"},
        options={"cleanenv": True},
        resources={"gpus": 1},
        results={"from": "a", "mount": {}, "too": 1},
    )
    job = wlm.WlmJob.parse(obj)
    assert set(job.spec.unknown_fields("spec")) == {
        "spec.comand",
        "spec.node_selector",
        "spec.options.cleanenv",
        "spec.resources.gpus",
        "spec.results.too",
    }


WRONG: list[tuple[dict[str, Any], str]] = [
    (manifest(wlm.SLURMJOB), "spec.batch"),
    (manifest(wlm.SLURMJOB, batch=""), "spec.batch"),
    (manifest(wlm.SLURMJOB, batch="a", results={"mount": {}}), "spec.results.from"),
    (manifest(wlm.SLURMJOB, batch="a", prepare={"mount": {}}), "spec.prepare.to"),
    (manifest(wlm.SLURMJOB, batch="a", nodeSelector={"a": True}), "spec.nodeSelector.a"),
    (manifest(wlm.SLURMJOB, batch="a", nodeSelector={"a": "b\nc"}), "spec.nodeSelector.a"),
    (manifest(wlm.WLMJOB), "spec.image"),
    (manifest(wlm.WLMJOB, image="a\nb"), "spec.image"),
    (manifest(wlm.WLMJOB, image="a", resources={"nodes": -1}), "spec.resources.nodes"),
    (manifest(wlm.WLMJOB, image="a", options={"binds": ["a\0b"]}), "spec.options.binds[0]"),
    (manifest(slurm.SLURMJOB, batch="a", ssh={}), "spec.ssh.user"),
]


@pytest.mark.parametrize(("obj", "field"), WRONG)
def test_what_cannot_be_is_refused_by_field(obj: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        parsed(obj)
    assert refused.value.field == field


def test_an_object_of_the_other_group_is_refused() -> None:
    with pytest.raises(InvalidObjectError, match=r"is slurm.sylabs.io/v1alpha1 SlurmJob, not wlm.sylabs.io/v1alpha1"):
        wlm.SlurmJob.parse(manifest(slurm.SLURMJOB, batch="a"))
    with pytest.raises(InvalidObjectError, match=r"is wlm.sylabs.io/v1alpha1 Token, not slinky.slurm.net/v1alpha1"):
        Token.parse({"apiVersion": "wlm.sylabs.io/v1alpha1", "kind": "Token", "metadata": {"name": "a"}})


def test_a_status_says_the_phase_of_a_pod() -> None:
    assert get_args(Word) == ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    status = JobStatus(status="Running", job_id=7, observed_generation=1)
    assert status.to_dict() == {
        "status": "Running", "jobId": 7, "reason": "", "message": "", "observedGeneration": 1,
    }  # fmt: skip

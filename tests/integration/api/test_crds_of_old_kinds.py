"""The old job kinds on a real API server: what people wrote is taken, and what is misspelt is kept to be refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from slinky_api.crd.definition import definition
from slinky_api.sylabs import slurm, wlm
from tests.support.control_plane import ControlPlane
from tests.support.old_job_kinds import KINDS, MANIFESTS, manifest

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {(resource.api_version, resource.kind): resource.plural for resource, _ in KINDS}


def path(obj: dict[str, Any]) -> str:
    return f"/apis/{obj['apiVersion']}/namespaces/default/{PLURALS[obj['apiVersion'], obj['kind']]}"


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane, client: httpx.Client) -> Iterator[httpx.Client]:
    """An API server that serves the old kinds while this file runs."""
    crds = [definition(resource, model) for resource, model in KINDS]
    for crd in crds:
        client.post(CRDS, json=crd).raise_for_status()
    deadline = time.monotonic() + 240
    while any(client.get(path(manifest(resource))).status_code != 200 for resource, _ in KINDS):
        assert time.monotonic() < deadline, "the old kinds are not served"
        time.sleep(0.1)
    yield client
    for crd in crds:
        client.delete(f"{CRDS}/{crd['metadata']['name']}").raise_for_status()


def created(client: httpx.Client, obj: dict[str, Any]) -> httpx.Response:
    """Ask for an object with every check, and without keeping it."""
    return client.post(path(obj), json=obj, params={"dryRun": "All", "fieldValidation": "Strict"})


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_people_wrote_is_taken_as_it_is(served: httpx.Client, name: str) -> None:
    answer = created(served, MANIFESTS[name])
    assert answer.status_code == 201, answer.text
    assert answer.json()["spec"] == MANIFESTS[name]["spec"]


def test_a_misspelt_field_is_kept_wherever_it_is(served: httpx.Client) -> None:
    obj = manifest(wlm.WLMJOB, image="docker://a", btach="a", options={"cleanenv": True}, resources={"gpus": 1})
    assert created(served, obj).json()["spec"] == obj["spec"]


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (manifest(wlm.SLURMJOB), "spec.batch"),
        (manifest(wlm.SLURMJOB, batch=""), "spec.batch"),
        (manifest(wlm.SLURMJOB, batch="a", nodeSelector={"a": True}), "spec.nodeSelector.a"),
        (manifest(wlm.SLURMJOB, batch="a", results={"mount": {}}), "spec.results.from"),
        (manifest(wlm.WLMJOB, image="a\nb"), "spec.image"),
        (manifest(wlm.WLMJOB, image="a", resources={"nodes": -1}), "spec.resources.nodes"),
        (manifest(wlm.WLMJOB, image="a", options={"binds": ["a\nb"]}), "spec.options.binds"),
        (manifest(slurm.SLURMJOB, batch="a", ssh={"key": {}}), "spec.ssh.user"),
    ],
)
def test_what_the_models_refuse_is_refused_at_once(served: httpx.Client, obj: dict[str, Any], field: str) -> None:
    answer = created(served, obj)
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["message"]


def test_a_status_is_written_as_its_own_part(served: httpx.Client) -> None:
    obj = manifest(wlm.WLMJOB, image="docker://a")
    served.post(path(obj), json=obj).raise_for_status()
    status = {"status": "Pending", "jobId": 7, "reason": "Queued", "message": "why", "observedGeneration": 1}
    merge = {"Content-Type": "application/merge-patch+json"}
    answer = served.patch(f"{path(obj)}/sample/status", json={"status": status}, headers=merge)
    assert answer.raise_for_status().json()["status"] == status
    wrong = served.patch(f"{path(obj)}/sample/status", json={"status": {"status": "Lost"}}, headers=merge)
    assert wrong.status_code == 422
    served.delete(f"{path(obj)}/sample").raise_for_status()

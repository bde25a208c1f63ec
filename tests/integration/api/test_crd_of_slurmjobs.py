"""The kind SlurmJob on a real API server: its rules cost no more than is allowed, and say which field is wrong."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest
import yaml

from slinky_api.v1alpha1.slurmjob.files import NOT_COVERED, TAKEN
from slinky_api.v1alpha1.slurmjob.kind import MAX_REQUEST
from slinky_api.v1alpha1.slurmjob.submission import MAX_SCRIPT
from tests.integration.api.conftest import ROOT
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_job_crds

FOLDER = ROOT / "config/crd/jobs"
CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}
PATH = "/apis/slinky.slurm.net/v1alpha1/namespaces/{}/slurmjobs"
SPEC: dict[str, Any] = {"clusterName": "slurm", "script": "#!/bin/sh\nhostname\n"}


class Jobs:
    """SlurmJobs of one namespace."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self._client = client
        self._path = PATH.format(namespace)

    def create(self, name: str = "hello", **spec: Any) -> httpx.Response:
        about = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "SlurmJob", "metadata": {"name": name}}
        return self._client.post(self._path, json={**about, "spec": {**SPEC, **spec}}, timeout=60)

    def get(self, name: str = "hello") -> httpx.Response:
        return self._client.get(f"{self._path}/{name}")

    def change(self, name: str = "hello", **spec: Any) -> httpx.Response:
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._client.patch(f"{self._path}/{name}", json={"spec": spec}, headers=headers)

    def show(self, name: str = "hello", **status: Any) -> httpx.Response:
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._client.patch(f"{self._path}/{name}/status", json={"status": status}, headers=headers)


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> None:
    apply_job_crds(control_plane.kubectl)


@pytest.fixture
def jobs(served: None, client: httpx.Client) -> Jobs:
    name = f"jobs-{uuid.uuid4().hex[:10]}"
    client.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    return Jobs(client, name)


def test_a_job_is_taken_with_the_longest_script(jobs: Jobs) -> None:
    script = "#!/bin/sh\n" + "#" * 1_000_000
    assert jobs.create(script=script).status_code == 201
    assert jobs.change(suspend=True).status_code == 200


def test_the_longest_request_of_a_dry_run_is_taken_beside_the_longest_script(jobs: Jobs) -> None:
    env = [{"name": f"A{number}", "value": '"' * 30_000} for number in range(2)]
    jobs.create(script="#!/bin/sh\n" + "#" * 1_000_000, dryRun=True, env=env).raise_for_status()
    body = json.dumps({"job": {"environment": ['"' * (MAX_REQUEST // 2 - 20)]}}, separators=(",", ":"))
    assert MAX_REQUEST - 100 < len(body) <= MAX_REQUEST
    assert jobs.show(request={"method": "POST", "body": body, "size": 1_200_000}).status_code == 200
    answer = jobs.show(request={"body": "a" * (MAX_REQUEST + 1)})
    assert answer.status_code == 422
    assert "status.request.body" in answer.text


def test_a_longer_script_is_refused_by_its_field(jobs: Jobs) -> None:
    answer = jobs.create(script="#!/bin/sh\n" + "#" * MAX_SCRIPT)
    assert answer.status_code == 422
    assert f"spec.script: Too long: may not be more than {MAX_SCRIPT} bytes" in answer.text


def test_a_script_of_5_mb_is_refused_by_its_size(jobs: Jobs) -> None:
    answer = jobs.create(script="#!/bin/sh\n" + "#" * 5_000_000)
    assert answer.status_code == 413
    assert answer.json()["message"] == "Request entity too large: limit is 3145728"
    assert jobs.get().status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("script", "#!/bin/sh\n"),
        ("clusterName", "other"),
        ("partition", "night"),
        ("env", [{"name": "A", "value": "b"}]),
        ("dependsOn", [{"name": "other"}]),
        ("user", "bob"),
        ("array", "0-1"),
        ("parameters", {"nice": 10}),
        ("nodes", 2),
        ("logs", {"volume": {"claimName": "data", "mountPath": "/data"}, "task": 1}),
        ("dryRun", True),
        ("sharedVolume", {"claimName": "data", "mountPath": "/data"}),
        ("prepare", [{"volume": {"secret": {"secretName": "a"}}, "from": "b", "path": "c d"}]),
        ("results", [{"volume": CLAIM, "path": "/a/%j", "to": "b", "when": "Never", "maxSize": "20Gi"}]),
    ],
)
def test_what_was_submitted_does_not_change(jobs: Jobs, field: str, value: Any) -> None:
    jobs.create().raise_for_status()
    answer = jobs.change(**{field: value})
    assert answer.status_code == 422
    assert f"spec.{field}" in answer.text
    assert f"{field} is immutable" in answer.text


@pytest.mark.parametrize(
    "parameters",
    [{"nice": 11}, {"nice": None}, {"oversubscribe": True}, {"wckey": {"deep": [1, {"a": "b"}]}}, None],
    ids=str,
)
def test_parameters_do_not_change_within(jobs: Jobs, parameters: Any) -> None:
    jobs.create(parameters={"nice": 10, "tags": ["a", {"b": "c"}]}).raise_for_status()
    answer = jobs.change(parameters=parameters)
    assert answer.status_code == 422
    assert "spec.parameters" in answer.text
    assert jobs.change(parameters={"nice": 10, "tags": ["a", {"b": "c"}]}, suspend=True).status_code == 200


@pytest.mark.parametrize(
    "spec",
    [{"suspend": True}, {"backoffLimit": 2}, {"ttlSecondsAfterFinished": 5}, {"cancelPolicy": "Keep"}],
    ids=lambda spec: next(iter(spec)),
)
def test_what_may_change_does(jobs: Jobs, spec: dict[str, Any]) -> None:
    jobs.create().raise_for_status()
    assert jobs.change(**spec).status_code == 200


@pytest.mark.parametrize(
    "dependency",
    [{"name": "a"}, {"type": "afterok", "name": "a"}, {"type": "afternotok", "name": "a"}, {"type": "singleton"}],
    ids=str,
)
def test_each_shape_of_a_dependency_is_taken(jobs: Jobs, dependency: dict[str, str]) -> None:
    jobs.create(dependsOn=[dependency]).raise_for_status()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"dependsOn": [{}]}, "spec.dependsOn[0]"),
        ({"clusterName": None}, "spec.clusterName"),
        ({"script": ""}, "spec.script"),
        ({"user": "root"}, "spec.user"),
        ({"user": "0"}, "spec.user"),
        ({"partition": "a\nb"}, "spec.partition"),
        ({"dependsOn": [{"type": "afterok"}]}, "spec.dependsOn[0]"),
        ({"dependsOn": [{"type": "singleton", "name": "a"}]}, "spec.dependsOn[0]"),
        ({"dependsOn": [{"type": "never", "name": "a"}]}, "spec.dependsOn[0].type"),
        ({"backoffLimit": -1}, "spec.backoffLimit"),
        ({"dryRun": "server"}, "spec.dryRun"),
        ({"cancelPolicy": "Perhaps"}, "spec.cancelPolicy"),
        ({"env": [{"name": "A B"}]}, "spec.env[0].name"),
        ({"logs": {"task": -1}}, "spec.logs.task"),
        ({"logs": {"volume": {"claimName": "data", "mountPath": "data"}}}, "spec.logs.volume.mountPath"),
        ({"results": [{"volume": {"emptyDir": {}}}]}, "spec.results[0].volume.persistentVolumeClaim"),
        ({"results": [{"volume": CLAIM, "path": "/a/../b"}]}, "spec.results[0].path"),
        ({"results": [{"volume": CLAIM, "to": "/a"}]}, "spec.results[0].to"),
        ({"results": [{"volume": CLAIM, "to": "a/.."}]}, "spec.results[0].to"),
        ({"results": [{"volume": CLAIM, "when": "Sometimes"}]}, "spec.results[0].when"),
        ({"results": [{"volume": CLAIM, "maxSize": "1"}]}, "spec.results[0].maxSize"),
        ({"results": [{"volume": CLAIM}] * 9}, "spec.results"),
        ({"prepare": [{"volume": {}, "path": "/a"}]}, "spec.prepare[0].volume"),
        ({"prepare": [{"volume": {**CLAIM, "configMap": {"name": "a"}}, "path": "/a"}]}, "spec.prepare[0].volume"),
        ({"prepare": [{"volume": CLAIM}]}, "spec.prepare[0].path"),
        ({"prepare": [{"volume": CLAIM, "path": "a\nb"}]}, "spec.prepare[0].path"),
    ],
)
def test_nonsense_is_refused_by_field(jobs: Jobs, spec: dict[str, Any], field: str) -> None:
    answer = jobs.create(**spec)
    assert answer.status_code == 422
    assert field in answer.text


@pytest.mark.parametrize(
    "path",
    [*TAKEN, *NOT_COVERED, "/usr/lib/python3", "/opt/slurm-operator/lib", "/run/job/x", "/data/../usr/lib", "/data/."],
)
def test_the_volume_of_a_log_pod_does_not_cover_its_program(jobs: Jobs, path: str) -> None:
    answer = jobs.create(logs={"volume": {"claimName": "data", "mountPath": path}})
    assert answer.status_code == 422
    assert "spec.logs.volume.mountPath" in answer.text
    assert "must not cover the log pod's own program and system: not in /bin, " in answer.text


def test_the_volume_of_a_log_pod_may_be_elsewhere(jobs: Jobs) -> None:
    free = ("/data", "/usr/local/data", "/opt/data", "/run/jobs", "/var/lib/a", "/libraries", "/home/..data")
    for number, path in enumerate(free):
        volume = {"claimName": "data", "mountPath": path}
        jobs.create(f"job-{number}", logs={"volume": volume}).raise_for_status()


def test_columns(control_plane: ControlPlane, served: None) -> None:
    crd = yaml.safe_load((FOLDER / "slinky.slurm.net_slurmjobs.yaml").read_text())
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [one["name"] for one in columns if not one.get("priority")] == ["STATE", "JOBID", "REASON", "NODES", "AGE"]


EXTERNAL: dict[str, Any] = {"script": None, "external": {}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("args", ["a"]),
        ("array", "0-1"),
        ("backoffLimit", 1),
        ("command", ["true"]),
        ("env", [{"name": "A"}]),
        ("error", "/err"),
        ("logs", {}),
        ("output", "/out"),
        ("prepare", [{"volume": CLAIM, "path": "/data/in"}]),
        ("requeue", False),
        ("results", [{"volume": CLAIM}]),
        ("script", "#!/bin/sh\n"),
        ("sharedVolume", {"claimName": "data", "mountPath": "/data"}),
        ("workingDirectory", "/data"),
    ],
)
def test_what_serves_a_script_is_refused_beside_external(jobs: Jobs, field: str, value: Any) -> None:
    answer = jobs.create(**{**EXTERNAL, field: value})
    assert answer.status_code == 422
    assert "cannot be set beside external" in answer.text, answer.text
    assert f"spec.{field}" in answer.text


def test_a_job_does_not_become_one_without_a_script_and_its_end_is_said_once(jobs: Jobs) -> None:
    jobs.create("batch").raise_for_status()
    answer = jobs.change("batch", external={})
    assert (answer.status_code, "external cannot be added or taken away" in answer.text) == (422, True)
    jobs.create("pods", **EXTERNAL, tasks=3, parameters={"memory_per_cpu": 100}).raise_for_status()
    answer = jobs.change("pods", external=None)
    assert (answer.status_code, "external cannot be added or taken away" in answer.text) == (422, True)
    for wrong in ({"exitCode": 256}, {"exitCode": 0, "comment": "a\nb"}, {"exitCode": 0, "comment": "a" * 1025}):
        assert jobs.change("pods", external={"ended": wrong}).status_code == 422
    assert jobs.change("pods", external={"ended": {"exitCode": 3, "comment": "pod a"}}).status_code == 200
    for other in ({"exitCode": 0}, {"comment": "pod b"}, None):
        answer = jobs.change("pods", external={"ended": other})
        assert (answer.status_code, "the job ends as was said first" in answer.text) == (422, True)
    assert jobs.change("pods", suspend=True, external={"ended": {"exitCode": 3}}).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"), [("cpusPerTask", 1), ("gres", "gpu:1"), ("memory", "1G"), ("nodes", 2), ("tasks", 2)]
)
def test_what_each_component_asks_for_is_refused_beside_components(jobs: Jobs, field: str, value: Any) -> None:
    answer = jobs.create(script=None, external={"components": [{"tasks": 1}, {"tasks": 2}]}, **{field: value})
    assert (answer.status_code, f"spec.{field}" in answer.text) == (422, True)
    assert "write it into each component" in answer.text, answer.text


def test_components_are_bounded_and_stay_as_they_are(jobs: Jobs) -> None:
    parts: list[dict[str, Any]] = [{"tasks": 1, "parameters": {"memory_per_cpu": 1}}, {"tasks": 2, "features": "a"}]
    refused: list[list[dict[str, Any]]] = [[{}], [{}] * 33, [{}, {"tasks": 0}]]
    for wrong in refused:
        assert jobs.create(script=None, external={"components": wrong}).status_code in {400, 422}
    jobs.create("gang", script=None, external={"components": parts}, features="b").raise_for_status()
    for other in (None, parts[::-1], [parts[0], {**parts[1], "features": "b"}]):
        answer = jobs.change("gang", external={"components": other})
        assert (answer.status_code, "components is immutable" in answer.text) == (422, True), answer.text
    assert jobs.change("gang", external={"ended": {"exitCode": 0}}).status_code == 200


def test_an_allocation_is_bounded(jobs: Jobs) -> None:
    jobs.create(**EXTERNAL).raise_for_status()
    nodes = [{"node": f"k-{number}", "cpus": 1} for number in range(1025)]
    assert jobs.show(allocation=nodes[:1024]).status_code == 200
    assert jobs.show(allocation=nodes).status_code == 422

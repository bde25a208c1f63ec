"""The server for output of jobs in slurmd pods: only where a NodeSet asks for it."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.pod_spec import builder, generated, job_logs
from slinky_operator.nodeset.pod_spec.validation import RefusedTemplate
from slinky_operator.pod_programs.joblogs import command
from slinky_operator.slurm import naming

DEFAULTS = generated.Defaults(image="slurmd:26.05", image_pull_policy="Never", agent="operator:1")
CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": {}})
WITHOUT = Path(__file__).with_name("pod_without_job_logs.json")


def nodeset(**spec: Any) -> NodeSet:
    metadata = {"name": "a", "namespace": "ns", "uid": "12345678-9"}
    return NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 1, **spec}})


def pod(of: Cluster = CLUSTER, **spec: Any) -> dict[str, Any]:
    owner = nodeset(**spec)
    return builder.build(
        owner,
        of,
        place=PodSlot("a-3", "a-3", 3),
        revision=revision.of(owner, of),
        guard_uid="gu",
        defaults=DEFAULTS,
    )


def server(made: dict[str, Any]) -> dict[str, Any]:
    (found,) = (one for one in made["spec"]["initContainers"] if one["name"] == naming.JOB_LOGS_CONTAINER)
    return dict(found)


def test_without_the_field_the_pod_is_byte_for_byte_what_it_was() -> None:
    assert json.dumps(pod(), indent=1) + "\n" == WITHOUT.read_text()


def test_the_server_runs_beside_slurmd_with_two_capabilities_and_its_own_key() -> None:
    made = pod(jobLogs={})
    container = server(made)

    assert (container["image"], container["imagePullPolicy"]) == ("operator:1", "Never")
    assert container["restartPolicy"] == "Always"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SETUID", "SETGID"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [one["mountPath"] for one in container["volumeMounts"]] == [naming.JOB_OUTPUT_FOLDER, "/etc/job-logs"]
    volumes = {one["name"]: one for one in made["spec"]["volumes"]}
    assert volumes[job_logs.KEY_VOLUME]["secret"]["secretName"] == "c-job-logs"
    assert volumes[job_logs.KEY_VOLUME]["secret"]["defaultMode"] == 0o400
    slurmd = made["spec"]["containers"][0]
    mounted = {one["name"] for one in slurmd["volumeMounts"]}
    assert job_logs.OUTPUT_VOLUME in mounted
    assert job_logs.KEY_VOLUME not in mounted
    assert slurmd["args"] == pod()["spec"]["containers"][0]["args"]


def test_its_command_line_is_one_that_it_understands() -> None:
    container = server(pod(jobLogs={"keepFor": "90m"}))
    assert container["command"][:3] == ["python", "-m", "slinky_operator.joblogs"]
    asked: argparse.Namespace = command._parser().parse_args(container["command"][3:])
    assert (asked.role, asked.port, asked.keep) == ("serve", naming.JOB_LOGS_PORT, 5400.0)
    assert asked.own_folder == [naming.JOB_OUTPUT_FOLDER]
    assert str(asked.key) == f"/etc/job-logs/{naming.JOB_LOGS_KEY}"
    assert [one["containerPort"] for one in container["ports"]] == [asked.port]


def test_a_pod_that_is_guaranteed_its_resources_stays_so() -> None:
    resources = server(pod(jobLogs={}))["resources"]
    assert resources["requests"] == resources["limits"]
    own = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    assert server(pod(jobLogs={"resources": own}))["resources"] == own


def test_it_stands_beside_sssd_and_the_users_own_containers() -> None:
    sssd = {"identity": {"sssd": {"confRef": {"name": "directory"}}}}
    of = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": sssd})
    first = {"name": "first", "image": "x"}
    made = pod(of, jobLogs={}, template={"spec": {"initContainers": [first]}})
    assert {one["name"] for one in made["spec"]["initContainers"]} == {"sssd", naming.JOB_LOGS_CONTAINER, "first"}


def test_a_claim_may_not_take_its_volumes() -> None:
    claim = {"metadata": {"name": job_logs.OUTPUT_VOLUME}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    assert pod(volumeClaimTemplates=[claim])
    with pytest.raises(RefusedTemplate, match="job-output is the operator's volume"):
        pod(volumeClaimTemplates=[claim], jobLogs={})


def test_each_change_of_the_field_replaces_pods_and_can_be_taken_back() -> None:
    specs: list[dict[str, Any]] = [
        {},
        {"jobLogs": {}},
        {"jobLogs": {"keepFor": "1h"}},
        {"jobLogs": {"resources": {"limits": {"cpu": "1"}}}},
    ]
    assert len({revision.of(nodeset(**spec), CLUSTER) for spec in specs}) == len(specs)
    assert revision.of(nodeset(jobLogs={"keepFor": "24h"})) == revision.of(nodeset(jobLogs={}))
    for spec in specs:
        recorded = json.loads(json.dumps(revision.content(nodeset(**spec), CLUSTER)))
        assert (
            revision.restored(nodeset(jobLogs={"keepFor": "7h"}), recorded).spec.job_logs
            == nodeset(**spec).spec.job_logs
        )


def test_another_image_of_the_operator_replaces_no_pod() -> None:
    owner = nodeset(jobLogs={})
    before = revision.of(owner, CLUSTER)
    assert replace(DEFAULTS, agent="operator:2") != DEFAULTS
    assert revision.of(owner, CLUSTER) == before

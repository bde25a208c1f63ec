"""Objects of the old kinds as specs of SlurmJobs: each field is acted on, or refused by its old name."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.errors import Problem
from slinky_api.resource import Resource
from slinky_api.sylabs import slurm, wlm
from slinky_api.sylabs.common import OldModel
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.site import Placement, Site
from slinky_operator.sylabs.translation.slurmjob import Translation, translate
from tests.support.old_job_kinds import MANIFESTS, manifest, parsed

SCRIPT = "#!/bin/sh\n#SBATCH --mem=1G\nhostname\n"
CUDA = "wlm.sylabs.io/cuda"
SITE = Site(
    labels={
        f"{CUDA}=10": Placement(features="cuda10"),
        "wlm.sylabs.io/ib=true": Placement(features="hdr|ndr"),
        "wlm.sylabs.io/containers=singularity": Placement(),
        "kubernetes.io/hostname=slurm-a-cpu": Placement(partition="cpu"),
    },
    runtime=Runtime.APPTAINER,
    is_folder_shared=True,
)
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "results"}}
KINDS = {"batch": wlm.SLURMJOB, "image": wlm.WLMJOB, "first": slurm.SLURMJOB}


def translated(resource: Resource, site: Site = SITE, **spec: Any) -> Translation:
    spec = {**({"image": "docker://alpine"} if resource is wlm.WLMJOB else {"batch": SCRIPT}), **spec}
    return translate(parsed(manifest(resource, **spec)).spec, site)


def refusal(resource: Resource, site: Site = SITE, **spec: Any) -> str:
    with pytest.raises(InvalidJob) as refused:
        translated(resource, site, **spec)
    return str(refused.value)


@pytest.mark.parametrize("resource", [wlm.SLURMJOB, slurm.SLURMJOB])
def test_a_batch_script_stays_as_it_is(resource: Resource) -> None:
    found = translated(resource)
    assert found.spec.to_dict() == {**translated(resource).spec.to_dict(), "script": SCRIPT}
    assert found.spec.given == {"script"}
    assert (found.prepare, found.results, found.without_effect) == ((), (), ())


@pytest.mark.parametrize("resource", KINDS.values(), ids=KINDS)
def test_labels_choose_partition_and_features(resource: Resource) -> None:
    chosen = {"wlm.sylabs.io/partition": "night", CUDA: 10, "wlm.sylabs.io/ib": "true"}
    spec = translated(resource, nodeSelector=chosen).spec
    assert (spec.partition, spec.features) == ("night", "cuda10&(hdr|ndr)")
    by_host = translated(resource, nodeSelector={"kubernetes.io/hostname": "slurm-a-cpu"}).spec
    assert (by_host.partition, by_host.features) == ("cpu", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "virtual-kubelet"),
        ("slurm.sylabs.io/workload-manager", "slurm"),
        ("slurm.sylabs.io/integration-type", "local"),
        ("wlm.sylabs.io/containers", "singularity"),
    ],
)
def test_a_label_that_all_nodes_have_changes_nothing_and_is_reported(name: str, value: str) -> None:
    found = translated(wlm.SLURMJOB, nodeSelector={name: value})
    assert found.spec == translated(wlm.SLURMJOB).spec
    assert found.without_effect == (f"spec.nodeSelector[{name}]: all nodes are meant by {value}",)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({CUDA: 11}, "Slurm has no partition 11, and the administrator has not said what 11 means to Slurm"),
        ({"disk": "ssd"}, "spec.nodeSelector[disk]"),
        ({"wlm.sylabs.io/wall-time": 60}, "by its limits"),
        ({"slurm.sylabs.io/integration-type": "ssh"}, "not submitted by ssh"),
        ({"slurm.sylabs.io/workload-manager": "other"}, "has not said"),
        (
            {"wlm.sylabs.io/partition": "night", "kubernetes.io/hostname": "slurm-a-cpu"},
            "chooses the partitions night and cpu",
        ),
    ],
)
def test_a_label_that_means_nothing_here_is_refused(selector: dict[str, Any], words: str) -> None:
    assert words in refusal(wlm.SLURMJOB, nodeSelector=selector)


def test_features_of_labels_do_not_replace_those_of_the_script() -> None:
    script = "#!/bin/sh\n#SBATCH -C a100\nhostname\n"
    assert refusal(wlm.SLURMJOB, batch=script, nodeSelector={CUDA: 10}) == (
        "spec.nodeSelector: requests features in addition to --constraint in the script: list all of them there"
    )
    assert translated(wlm.SLURMJOB, batch=script).spec.features is None
    wrong = "#!/bin/sh\n#SBATCH --no-such-option\n"
    assert refusal(wlm.SLURMJOB, batch=wrong, nodeSelector={CUDA: 10}).startswith("spec.batch: line 2:")


def test_resources_of_an_image_are_those_of_each_node() -> None:
    resources = {"nodes": 2, "cpuPerNode": 4, "memPerNode": 512, "wallTime": 90}
    found = translated(wlm.WLMJOB, resources=resources)
    assert found.spec.to_dict() | {"script": ""} == {
        **translated(wlm.WLMJOB).spec.to_dict(),
        "script": "", "nodes": "2", "tasks": 2, "cpusPerTask": 4, "memory": "512M", "time": "2",
    }  # fmt: skip
    job = submissions.translate(found.spec, name="sample").job
    assert (job.nodes, job.tasks, job.cpus_per_task, job.memory_per_node_mib) == ("2", 2, 4, 512)
    assert job.time_limit is not None
    assert str(job.time_limit) == "0:02:00"
    assert "--cpus-per-task=4" in (job.script or "")


def test_none_of_a_resource_is_the_same_as_zero_of_it() -> None:
    nothing = dict.fromkeys(("nodes", "cpuPerNode", "memPerNode", "wallTime"), 0)
    assert translated(wlm.WLMJOB, resources=nothing) == translated(wlm.WLMJOB)


def test_files_are_copied_between_claims_and_nodes() -> None:
    files: dict[str, Any] = {
        "prepare": {"mount": CLAIM, "to": "/scratch/in"},
        "results": {"mount": CLAIM, "from": "/scratch/out"},
    }
    volume = {"persistentVolumeClaim": {"claimName": "results"}}
    prepare = {"volume": volume, "path": "/scratch/in/data", "maxSize": "1Gi", "maxFiles": 10_000}
    results = {"volume": volume, "path": "/scratch/out", "when": "OnSuccess", "maxSize": "1Gi", "maxFiles": 10_000}
    for resource in (wlm.SLURMJOB, wlm.WLMJOB):
        found = translated(resource, **files)
        assert [one.to_dict() for one in found.prepare] == [prepare]
        assert [one.to_dict() for one in found.results] == [results]
    first = translated(slurm.SLURMJOB, results={"mount": CLAIM})
    assert (first.prepare, [one.path for one in first.results]) == ((), [None])
    assert [one.path for one in translated(slurm.SLURMJOB, results={"mount": CLAIM, "from": "a"}).results] == ["a"]


@pytest.mark.parametrize("resource", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ({"name": "a", "hostPath": {"path": "/"}}, "spec.results.mount.hostPath: write persistentVolumeClaim"),
        ({"name": "a", "nfs": {"server": "a", "path": "/"}}, "spec.results.mount.nfs: write persistentVolumeClaim"),
        ({"name": "a", "secret": {"secretName": "a"}}, "spec.results.mount.secret: write persistentVolumeClaim"),
        ({**CLAIM, "hostPath": {"path": "/"}}, "spec.results.mount.hostPath"),
        ({"name": "a"}, "spec.results.mount.persistentVolumeClaim: must name a claim"),
        ({"persistentVolumeClaim": "a"}, "must name a claim"),
        ({"persistentVolumeClaim": {"claimName": 1}}, "must name a claim"),
        (
            {"persistentVolumeClaim": {"claimName": "a", "subPath": "b"}},
            "persistentVolumeClaim.subPath: is not a field",
        ),
        ({"persistentVolumeClaim": {"claimName": "a", "readOnly": True}}, "results are written there"),
    ],
)
def test_a_volume_that_is_no_claim_is_refused(resource: Resource, mount: dict[str, Any], words: str) -> None:
    assert words in refusal(resource, results={"mount": mount, "from": "a"})


def test_a_claim_to_read_from_may_be_read_only() -> None:
    mount = {"name": "a", "persistentVolumeClaim": {"claimName": "a", "readOnly": True}}
    (found,) = translated(wlm.SLURMJOB, prepare={"mount": mount, "to": "/in"}).prepare
    assert found.volume.to_dict() == {"persistentVolumeClaim": {"claimName": "a"}}
    assert "spec.prepare.mount.hostPath" in refusal(wlm.SLURMJOB, prepare={"mount": {"hostPath": {}}, "to": "/in"})


@pytest.mark.parametrize(
    ("to", "path"), [(".", "data"), ("in", "in/data"), ("./in/", "./in/data"), ("/in", "/in/data")]
)
def test_files_are_copied_into_a_folder_with_the_name_of_the_volume(to: str, path: str) -> None:
    (found,) = translated(wlm.SLURMJOB, prepare={"mount": CLAIM, "to": to}).prepare
    assert found.path == path


@pytest.mark.parametrize("name", [None, "", "..", "a/b", "a" * 64, 5])
def test_a_volume_to_copy_from_has_a_name(name: Any) -> None:
    mount = {**CLAIM, "name": name} if name is not None else {"persistentVolumeClaim": {"claimName": "a"}}
    told = refusal(wlm.SLURMJOB, prepare={"mount": mount, "to": "in"})
    assert told.startswith("spec.prepare.mount.name: must be lower-case letters")


@pytest.mark.parametrize("to", ["in/../../b", "/a/../b", "/" + "a" * 2000])
def test_a_path_that_nothing_can_be_written_to_is_refused(to: str) -> None:
    assert refusal(wlm.SLURMJOB, prepare={"mount": CLAIM, "to": to}).startswith("spec.prepare.to: ")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ssh": {"user": "me"}}, "spec.ssh: jobs are not submitted by ssh: a job belongs to the Slurm user"),
        ({"resources": {"slurm.sylabs.io/cpu": 2}}, "spec.resources: no pod submits the job: ask Slurm"),
        ({"podSecurityContext": {"runAsUser": 0}}, "spec.podSecurityContext: no pod submits the job"),
    ],
)
def test_what_was_about_the_submitting_pod_is_refused(spec: dict[str, Any], words: str) -> None:
    assert refusal(slurm.SLURMJOB, **spec).startswith(words)


@pytest.mark.parametrize("resource", KINDS.values(), ids=KINDS)
def test_a_field_that_the_kind_does_not_have_is_refused_by_name(resource: Resource) -> None:
    assert refusal(resource, btach="a") == "spec.btach: is not a field of this kind"
    words = refusal(resource, results={"mount": CLAIM, "from": "a", "fromm": 1})
    assert words == "spec.results.fromm: is not a field of this kind"
    long: dict[str, Any] = {"x" * 10_000: 1}
    assert len(refusal(resource, **long)) < 300


def test_an_unknown_option_is_refused_by_name() -> None:
    assert refusal(wlm.WLMJOB, options={"nv": True}) == "spec.options.nv: is not a field of this kind"
    assert refusal(wlm.WLMJOB, resources={"gpus": 1}) == "spec.resources.gpus: is not a field of this kind"


def test_what_is_found_later_is_told_with_the_old_field() -> None:
    found = translated(wlm.SLURMJOB, batch="#!/bin/sh\n#SBATCH --uid=0\n")
    with pytest.raises(InvalidJob) as refused:
        submissions.translate(found.spec, name="sample")
    told = found.in_old_words(refused.value.problem)
    assert (told.field, told.reason) == ("spec.batch", refused.value.reason)
    image = translated(wlm.WLMJOB)
    assert image.in_old_words(Problem("spec.cpusPerTask", "why")) == Problem("spec.resources.cpuPerNode", "why")
    assert image.in_old_words(Problem("spec.env", "why")) == Problem("spec.env", "why")


@pytest.mark.parametrize("resource", KINDS.values(), ids=KINDS)
def test_every_field_that_is_set_has_an_old_name(resource: Resource) -> None:
    spec: dict[str, Any] = {"nodeSelector": {"wlm.sylabs.io/partition": "night", CUDA: 10}}
    if resource is wlm.WLMJOB:
        spec["resources"] = {"nodes": 2, "cpuPerNode": 4, "memPerNode": 512, "wallTime": 90}
    if resource is not slurm.SLURMJOB:
        spec["prepare"] = {"mount": CLAIM, "to": "."}
    found = translated(resource, **spec)
    without = set() if "prepare" in spec else {"spec.workingDirectory"}
    assert {f"spec.{name}" for name in found.spec.given} == found.old_fields.keys() - without


def test_a_script_that_grew_too_long_by_its_quotes_is_refused() -> None:
    assert "spec.image: " in refusal(wlm.WLMJOB, options={"binds": ["'" * 4096] * 64})


def test_features_that_are_too_long_together_are_refused() -> None:
    site = Site(labels={f"l{index}=a": Placement(features="f" * 500 + str(index)) for index in range(10)})
    selector = {f"l{index}": "a" for index in range(10)}
    assert refusal(wlm.SLURMJOB, site, nodeSelector=selector).startswith("spec.nodeSelector: ")


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_as_people_wrote_it_becomes_a_job_or_is_refused_by_a_field_of_its_own(name: str) -> None:
    spec = parsed(MANIFESTS[name]).spec
    try:
        found = translate(spec, SITE)
    except InvalidJob as error:
        first = error.field.removeprefix("spec.").split(".")[0].split("[")[0]
        assert first in MANIFESTS[name]["spec"]
    else:
        assert submissions.translate(found.spec, name="sample").job.script


ALL_FIELDS: dict[str, tuple[Resource, dict[str, Any]]] = {
    "wlm.batch": (wlm.SLURMJOB, {"batch": "#!/bin/sh\ntrue\n"}),
    "wlm.nodeSelector": (wlm.SLURMJOB, {"nodeSelector": {"wlm.sylabs.io/partition": "a"}}),
    "wlm.prepare": (wlm.SLURMJOB, {"prepare": {"mount": CLAIM, "to": "/a"}}),
    "wlm.results": (wlm.SLURMJOB, {"results": {"mount": CLAIM, "from": "a"}}),
    "image.image": (wlm.WLMJOB, {"image": "docker://debian"}),
    "image.options": (wlm.WLMJOB, {"options": {"ipc": True}}),
    "image.resources": (wlm.WLMJOB, {"resources": {"nodes": 2}}),
    "image.nodeSelector": (wlm.WLMJOB, {"nodeSelector": {"wlm.sylabs.io/partition": "a"}}),
    "image.prepare": (wlm.WLMJOB, {"prepare": {"mount": CLAIM, "to": "/a"}}),
    "image.results": (wlm.WLMJOB, {"results": {"mount": CLAIM, "from": "a"}}),
    "slurm.batch": (slurm.SLURMJOB, {"batch": "#!/bin/sh\ntrue\n"}),
    "slurm.nodeSelector": (slurm.SLURMJOB, {"nodeSelector": {"wlm.sylabs.io/partition": "a"}}),
    "slurm.resources": (slurm.SLURMJOB, {"resources": {"slurm.sylabs.io/cpu": 1}}),
    "slurm.podSecurityContext": (slurm.SLURMJOB, {"podSecurityContext": {"runAsUser": 1}}),
    "slurm.ssh": (slurm.SLURMJOB, {"ssh": {"user": "me"}}),
    "slurm.results": (slurm.SLURMJOB, {"results": {"mount": CLAIM}}),
    "image.resources.nodes": (wlm.WLMJOB, {"resources": {"nodes": 3}}),
    "image.resources.cpuPerNode": (wlm.WLMJOB, {"resources": {"cpuPerNode": 3}}),
    "image.resources.memPerNode": (wlm.WLMJOB, {"resources": {"memPerNode": 3}}),
    "image.resources.wallTime": (wlm.WLMJOB, {"resources": {"wallTime": 3}}),
    "image.options.allowUnsigned": (
        wlm.WLMJOB, {"image": "library://a", "options": {"allowUnsigned": True}}
    ),
    **{
        f"image.options.{name}": (wlm.WLMJOB, {"options": {name: True}})
        for name in ("cleanEnv", "fakeRoot", "ipc", "pid", "noPrivs", "writable")
    },
    "image.options.app": (wlm.WLMJOB, {"options": {"app": "a"}}),
    "image.options.hostName": (wlm.WLMJOB, {"options": {"hostName": "a"}}),
    "image.options.binds": (wlm.WLMJOB, {"options": {"binds": ["/a"]}}),
}  # fmt: skip
MODELS: dict[str, type[OldModel]] = {
    "wlm": wlm.SlurmJobSpec,
    "image": wlm.WlmJobSpec,
    "slurm": slurm.SlurmJobSpec,
    "image.resources": wlm.ContainerResources,
    "image.options": wlm.ContainerOptions,
}


def test_every_field_is_tried() -> None:
    fields = {f"{kind}.{field.alias}" for kind, model in MODELS.items() for field in model.model_fields.values()}
    assert fields == ALL_FIELDS.keys()


@pytest.mark.parametrize("field", ALL_FIELDS)
def test_every_field_changes_the_job_or_is_refused_by_name(field: str) -> None:
    resource, spec = ALL_FIELDS[field]
    plain = {name: value for name, value in spec.items() if name == "image" and field != "image.image"}
    try:
        found = translated(resource, **spec)
    except InvalidJob as error:
        named = error.field
    else:
        named = f"spec.{field.partition('.')[2]}" if found != translated(resource, **plain) else "no field"
    assert named == f"spec.{field.partition('.')[2]}"

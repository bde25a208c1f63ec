"""What a pod asks for, in the fields of a SlurmJob, and what is refused by its path."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_operator.bridge.pods.model.membership import GroupKind
from slinky_operator.bridge.pods.model.translation.request import Request, check, request_of
from slinky_operator.bridge.pods.model.translation.resources import Share, share_of
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.tenants import Grant
from slinky_operator.kube.objects import Object

GPUS = {"nvidia.com/gpu": "gpu"}
BRIDGE = Bridge.model_validate(
    {
        "nodeLabels": {"bridge": "yes"},
        "name": "k8s",
        "featureLabels": ["topology.kubernetes.io/zone", "disk"],
        "gres": [{"resource": "nvidia.com/gpu", "gres": "gpu:a100"}],
    }
)


def container(**requests: str) -> Object:
    named = {name.replace("_", "-").replace("nvidia", "nvidia.com/gpu"): one for name, one in requests.items()}
    return {"name": "c", "resources": {"requests": named}}


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    given = {"containers": [container(cpu="1", memory="1Gi")], **spec}
    return {"metadata": {"name": "p", "uid": "u", "annotations": annotations or {}}, "spec": given}


@pytest.mark.parametrize(
    ("spec", "share"),
    [
        ({"containers": [container(cpu="500m", memory="1Gi")]}, Share(1, 1024)),
        ({"containers": [container(memory="1")]}, Share(1, 1)),
        ({"containers": [container(cpu="1500m", memory="1G"), container(cpu="600m", memory="1G")]}, Share(3, 1908)),
        (
            {
                "containers": [container(cpu="1", memory="1Gi")],
                "initContainers": [container(cpu="4", memory="2Gi")],
            },
            Share(4, 2048),
        ),
        (
            {
                "containers": [container(cpu="1", memory="1Gi")],
                "initContainers": [
                    {**container(cpu="1", memory="1Gi"), "restartPolicy": "Always"},
                    container(cpu="2", memory="1Gi"),
                ],
            },
            Share(3, 2048),
        ),
        (
            {
                "containers": [container(cpu="3", memory="4Gi")],
                "initContainers": [{**container(cpu="1", memory="1Gi"), "restartPolicy": "Always"}],
            },
            Share(4, 5120),
        ),
        (
            {"containers": [container(cpu="1", memory="1Gi")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
            Share(2, 1088),
        ),
        (
            {
                "containers": [container(cpu="1", memory="1Gi", nvidia="2")],
                "resources": {"requests": {"cpu": "5", "memory": "6Gi"}},
            },
            Share(5, 6144, (("gpu", 2),)),
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]},
            Share(2, 1024),
        ),
        ({"containers": [container(cpu="1", memory="1Gi", ephemeral_storage="1Ti")]}, Share(1, 1024)),
    ],
)
def test_shares_are_counted_as_the_scheduler_counts(spec: Any, share: Share) -> None:
    assert share_of(pod(**spec), GPUS) == share


def test_the_spec_of_a_slurmjob() -> None:
    found = request_of(
        pod(
            {
                f"{labels.BRIDGE_PREFIX}account": "physics",
                f"{labels.BRIDGE_PREFIX}parameters": '{"nice": 10}',
                "slurmjob.slinky.slurm.net/constraints": "ib|roce",
                "slurmjob.slinky.slurm.net/licenses": "matlab:1",
                "slurmjob.slinky.slurm.net/exclusive": "true",
                "slurmjob.slinky.slurm.net/min-nodes": "2",
                "slurmjob.slinky.slurm.net/max-nodes": "3",
                "slurmjob.slinky.slurm.net/priority": "5",
                labels.ANNOTATION_BRIDGE_CLUSTER: "ns/slurm",
            },
            containers=[container(cpu="3", memory="1000Mi", nvidia="1")],
            nodeSelector={"topology.kubernetes.io/zone": "eu-1", "bridge": "yes", "kubernetes.io/os": "linux"},
        ),
        GroupKind.JOB,
        BRIDGE,
        {f"{labels.BRIDGE_PREFIX}qos": "high", f"{labels.BRIDGE_PREFIX}account": "other", "team": "x"},
        90,
    )
    assert found.spec(6) == {
        "account": "physics",
        "cpusPerTask": 3,
        "external": {},
        "features": "k8s&zone.eu-1&(ib|roce)",
        "nodes": "2-3",
        "parameters": {
            "licenses": "matlab:1",
            "memory_per_cpu": 334,
            "nice": 10,
            "shared": ["none"],
            "tres_per_task": "gres/gpu:a100=1",
        },
        "qos": "high",
        "tasks": 6,
        "time": "2",
    }
    assert found.ignored == ("priority",)
    check(found, Grant("alice"))


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"containers": [container(cpu="1")]}, "spec.containers[*].resources.requests[memory]"),
        ({"containers": [{"name": "c"}]}, "spec.containers[*].resources.requests[memory]"),
        ({"containers": [container(cpu="9e12", memory="1Gi")]}, "spec.containers[*].resources.requests[cpu]"),
        ({"containers": [container(cpu="NaN", memory="1Gi")]}, "spec.containers[0].resources.requests[cpu]"),
        ({"containers": [container(cpu="1", memory="1Gi", rdma="1")]}, "spec.containers[*].resources.requests[rdma]"),
        ({"nodeName": "k1"}, "spec.nodeName"),
        ({"resourceClaims": [{"name": "g"}]}, "spec.resourceClaims"),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "spec.topologySpreadConstraints"),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "spec.affinity.podAntiAffinity",
        ),
        ({"nodeSelector": {"arch": "arm"}}, "spec.nodeSelector[arch]"),
        ({"nodeSelector": {"disk": ""}}, "spec.nodeSelector[disk]"),
    ],
)
def test_fields_that_slurm_cannot_keep_are_refused(given: Any, path: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        _ = request_of(pod(**given), GroupKind.JOB, BRIDGE, {}, None)
    assert raised.value.field == path


def required(*terms: dict[str, Any]) -> Any:
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def term(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, values in expressions]}


ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ([term((ZONE, "In", ["a"]))], "k8s&zone.a"),
        ([term((ZONE, "In", ["a", "b"]), ("disk", "In", ["ssd"]))], "k8s&(zone.a|zone.b)&disk.ssd"),
        ([term((ZONE, "In", ["a"])), term((ZONE, "In", ["b", "c"]))], "k8s&(zone.a|zone.b|zone.c)"),
        ([term((ZONE, "In", ["a"]), ("bridge", "In", ["no", "yes"]), ("bridge", "Exists", []))], "k8s&zone.a"),
        ([term((ZONE, "In", ["a"])), term(("kubernetes.io/os", "In", ["linux"]))], "k8s"),
    ],
)
def test_required_node_affinity_is_told_to_slurm(terms: list[dict[str, Any]], words: str) -> None:
    assert request_of(pod(**required(*terms)), GroupKind.POD, BRIDGE, {}, None).spec(1)["features"] == words


@pytest.mark.parametrize(
    ("terms", "path"),
    [
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["k1"]}]}], "[0].matchFields"),
        ([{}], "[0]"),
        ([term(("arch", "In", ["arm"]))], "[0].matchExpressions[0].values"),
        ([term((ZONE, "In", [""]))], "[0].matchExpressions[0].values"),
        ([term((ZONE, "In", ["a"]), (ZONE, "NotIn", ["b"]))], "[0].matchExpressions[1].operator"),
        ([term((ZONE, "In", [f"z{one}" for one in range(33)]))], "[0].matchExpressions[0].values"),
        ([term((ZONE, "In", ["a"]), ("disk", "In", ["ssd"])), term((ZONE, "In", ["b"]))], ""),
    ],
)
def test_node_affinity_that_slurm_cannot_be_told_is_refused(terms: list[dict[str, Any]], path: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        _ = request_of(pod(**required(*terms)), GroupKind.POD, BRIDGE, {}, None)
    field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    assert raised.value.field == field + path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bridge.slinky.slurm.net/tasks", "2"),
        ("bridge.slinky.slurm.net/memory", "2G"),
        ("bridge.slinky.slurm.net/script", "x"),
        ("bridge.slinky.slurm.net/nonsense", "x"),
        ("bridge.slinky.slurm.net/parameters", "[1]"),
        ("bridge.slinky.slurm.net/group", "Gang"),
        ("bridge.slinky.slurm.net/features", "[a|b]"),
        ("bridge.slinky.slurm.net/features", "a)|(b"),
        ("bridge.slinky.slurm.net/features", "(a|b"),
        ("slurmjob.slinky.slurm.net/cpu-per-task", "0"),
        ("slurmjob.slinky.slurm.net/cpu-per-task", "1"),
        ("slurmjob.slinky.slurm.net/mem-per-node", "5"),
        ("slurmjob.slinky.slurm.net/mem-per-node", "x"),
        ("slurmjob.slinky.slurm.net/gres", "gpu:x:y:z"),
        ("slurmjob.slinky.slurm.net/exclusive", "yes"),
        ("slurmjob.slinky.slurm.net/min-nodes", "many"),
    ],
)
def test_annotations_that_make_no_sense_are_refused_by_their_names(name: str, value: str) -> None:
    given = pod({name: value}, containers=[container(cpu="2", memory="1Gi")])
    with pytest.raises(InvalidJob) as raised:
        _ = request_of(given, GroupKind.POD, BRIDGE, {}, None)
    assert raised.value.field == f"metadata.annotations[{name}]"


@pytest.mark.parametrize(
    "key", ["required_nodes", "memory_per_cpu", "tres_per_task", "overcommit", "hold", "tres_per_job"]
)
def test_parameters_that_contradict_pods_are_refused(key: str) -> None:
    given = pod({f"{labels.BRIDGE_PREFIX}parameters": f'{{"{key}": 1}}'})
    with pytest.raises(InvalidJob, match=key):
        _ = request_of(given, GroupKind.POD, BRIDGE, {}, None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('{"parameters": {"nonsense": 1}}', "nonsense"),
        ('{"parameters": {"reboot": true}}', "reboot"),
        ('{"time": ""}', "time"),
        ('{"partition": "other"}', "'other' is not granted"),
    ],
)
def test_what_would_be_refused_later_is_refused_at_once(fields: str, words: str) -> None:
    with pytest.raises(InvalidJob, match=words):
        check(Request(Share(1, 1), fields), Grant("alice", partitions=["main"]))


def test_annotations_may_ask_for_more_than_the_containers() -> None:
    prefix = "slurmjob.slinky.slurm.net/"
    asked = {f"{prefix}cpu-per-task": "4", f"{prefix}mem-per-node": "8Gi", f"{prefix}gres": "shard:2,gpu:h100"}
    found = request_of(pod(asked), GroupKind.POD, BRIDGE, {}, None)
    assert found.share == Share(4, 8192, (("gpu:h100", 1), ("shard", 2)))
    assert found.spec(1)["parameters"]["tres_per_task"] == "gres/gpu:h100=1,gres/shard=2"


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"parameters": {"memory_per_cpu": 2048}}, True),
        ({"parameters": {"memory_per_cpu": 1023}}, False),
        ({"parameters": {"memory_per_cpu": 1024, "tres_per_task": "gres/gpu=1"}}, False),
        ({"parameters": None}, False),
        ({"cpusPerTask": 2}, False),
        ({"external": None}, False),
    ],
)
def test_a_pod_fits_into_a_task_that_has_what_it_asks_for(changes: Any, fits: bool) -> None:
    request = Request(Share(1, 1024))
    assert request.fits({**request.spec(3), **changes}) == fits

"""The CRDs on an API server: it accepts them, accepts valid objects, and rejects invalid ones by field."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slinky_api import v1alpha1
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1 import Cluster, NodeSet, NodeSetStatus
from slinky_api.v1alpha1.common import ApiObject
from tests.integration.api.conftest import Api
from tests.support import served
from tests.support.control_plane import ControlPlane

ROOT = Path(__file__).parents[3]
KINDS: dict[str, type[ApiObject]] = {resource.kind: model for resource, model in (*v1alpha1.KINDS, *v1alpha1.JOB_KINDS)}
SAMPLES = [
    pytest.param(obj, id=f"{path.relative_to(ROOT / 'config/samples')}:{obj['kind']}")
    for path in sorted((ROOT / "config/samples").rglob("*.yaml"))
    for obj in yaml.safe_load_all(path.read_text())
    if obj["kind"] in KINDS
]
EXTERNAL: dict[str, Any] = {"server": "http://a:6820", "token": {"secretRef": "t"}}


SLINKYS_NAME = "a" * 58
"""Longer than names may be here, and one that Slinky's CRD takes."""


def cluster(spec: dict[str, Any] | None = None, name: str = "slurm") -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {} if spec is None else spec,
    }


def nodeset(spec: dict[str, Any] | None = None, name: str = "compute") -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name},
        "spec": {"clusterName": "slurm", **(spec or {})},
    }


def contains(whole: Any, part: Any) -> bool:
    """Whether all of the one is in the other; nulls may have gone."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            value is None or (key in whole and contains(whole[key], value)) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


def test_both_are_established_without_a_complaint(api: Api, crds: dict[str, dict[str, Any]]) -> None:
    for crd in crds.values():
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
        conditions = api.client.get(path).raise_for_status().json()["status"]["conditions"]
        # NonStructuralSchema would be a third one.
        assert {condition["type"]: condition["status"] for condition in conditions} == {
            "NamesAccepted": "True",
            "Established": "True",
        }


@pytest.mark.parametrize("obj", SAMPLES)
def test_every_sample_applies_and_loses_nothing(api: Api, obj: dict[str, Any]) -> None:
    answer = api.create(obj)
    assert answer.status_code == 201, answer.text
    stored = api.get(obj["kind"], obj["metadata"]["name"])
    assert contains(stored["spec"], obj["spec"])
    assert contains(stored["metadata"], obj["metadata"])
    model = KINDS[obj["kind"]]
    assert model.parse(stored).uid == stored["metadata"]["uid"]


def test_kubectl_applies_samples_and_slinky_manifests_as_users_do(api: Api, control_plane: ControlPlane) -> None:
    for folder in ("config/samples", "config/samples/more", "config/samples/slinky"):
        for more in ([], ["--server-side", "--force-conflicts"]):
            control_plane.kubectl("apply", f"--namespace={api.namespace}", *more, f"--filename={ROOT / folder}")
    shown = control_plane.kubectl("get", f"--namespace={api.namespace}", "nss", "legacy-compute", "--output=wide")
    columns = (
        "NAME DESIRED READY STATUS WANTED REPLICAS UPDATED IDLE ALLOCATED DRAINING DRAINED DOWN "
        "MAINTENANCE CLUSTER REASON AGE"
    )
    assert shown.splitlines()[0].split() == columns.split()
    in_category = control_plane.kubectl("get", f"--namespace={api.namespace}", "slurm", "--output=name")
    assert {"cluster.slinky.slurm.net/legacy", "nodeset.slinky.slurm.net/compute"} <= set(in_category.split())


NONSENSE_CLUSTERS = [
    (cluster(name="default.slurm"), "metadata.name"),
    (cluster(name="1slurm"), "metadata.name"),
    (cluster(name="a" * 41), "metadata.name"),
    (cluster(EXTERNAL, name="a" * 64), "metadata.name"),
    (cluster({"server": "a:6820", "token": {"secretRef": "t"}}), "spec.server"),
    (cluster({"server": "http://a"}), "spec.token"),
    (cluster({"server": "http://a", "token": {}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": "a b"}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": "a\nb"}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": 5}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": 0.5}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": True}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": ["a"]}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": []}}), "spec.token.secretRef"),
    (cluster({"server": "http://a", "token": {"secretRef": {}}}), "spec.token.secretRef.name"),
    (cluster({"server": "http://a", "token": {"secretRef": {"key": "k"}}}), "spec.token.secretRef.name"),
    (cluster({"server": "http://a", "token": {"secretRef": {"name": 5}}}), "spec.token.secretRef.name"),
    (cluster({"server": "http://a", "token": {"secretRef": {"name": "a", "key": "/"}}}), "spec.token.secretRef.key"),
    (cluster({"token": {"secretRef": "t"}}), "spec.token"),
    (cluster({"caBundle": "x"}), "spec.caBundle"),
    (cluster({"controller": {"external": {"host": "h"}}}), "spec.controller.external"),
    (cluster({**EXTERNAL, "controller": {"external": {"host": "h", "port": 0}}}), "spec.controller.external.port"),
    (cluster({**EXTERNAL, "partitions": []}), "spec.partitions"),
    (cluster({**EXTERNAL, "controller": {"image": "a:1"}}), "spec.controller.image"),
    (cluster({**EXTERNAL, "controller": {"persistence": {}}}), "spec.controller.persistence"),
    (cluster({**EXTERNAL, "auth": {"keysWhenDeleted": "Retain"}}), "spec.auth.keysWhenDeleted"),
    (cluster({"accounting": {"external": {"host": "h"}, "image": "a:1"}}), "spec.accounting.image"),
    (cluster({"accounting": {"external": {"host": "h"}, "extraConf": "A=1"}}), "spec.accounting.extraConf"),
    (cluster({**EXTERNAL, "accounting": {}}), "spec.accounting"),
    (cluster({**EXTERNAL, "extraConf": "A=1"}), "spec.extraConf"),
    (cluster({"clusterName": "a b"}), "spec.clusterName"),
    (cluster({"clusterName": "a" * 41}), "spec.clusterName"),
    (cluster({"partitions": [{"name": "default"}]}), "spec.partitions[0].name"),
    (cluster({"partitions": [{"name": "ALL"}]}), "spec.partitions[0].name"),
    (cluster({"partitions": [{"name": "a"}, {"name": "a"}]}), "spec.partitions[1]"),
    (cluster({"partitions": [{"name": "a", "config": "X=1\nNodeName=b"}]}), "spec.partitions[0].config"),
    (cluster({"partitions": [{"name": "a", "config": "nodes=ALL"}]}), "spec.partitions[0].config"),
    (cluster({"partitions": [{"name": "a", "nodeSets": ["a b"]}]}), "spec.partitions[0].nodeSets[0]"),
    (cluster({"partitions": [{"name": "a", "nodes": ["a\nb"]}]}), "spec.partitions[0].nodes[0]"),
    (cluster({"nodes": [{"name": "n[1-2]", "config": "CPUs=1\\"}]}), "spec.nodes[0].config"),
    (cluster({"nodes": [{"name": "n 1"}]}), "spec.nodes[0].name"),
    (cluster({"extraConf": "A=1\r\nB=2"}), "spec.extraConf"),
    (cluster({"accounting": {"extraConf": "A=1\x00"}}), "spec.accounting.extraConf"),
    (cluster({"accounting": {"external": {"host": "h"}, "database": {"host": "h"}}}), "spec.accounting"),
    (cluster({"maxNodeCount": 0}), "spec.maxNodeCount"),
    (cluster({"configFiles": {"slurm.conf": ""}}), "spec.configFiles"),
    (cluster({"configFiles": {"../x": ""}}), "spec.configFiles"),
    (cluster({"prologScripts": {"a\nb": ""}}), "spec.prologScripts"),
    (cluster({"restapi": {"replicas": -1}}), "spec.restapi.replicas"),
    (cluster({"auth": {"tokenLifetime": "soon"}}), "spec.auth.tokenLifetime"),
    (cluster({"login": [{"name": "a" * 17}]}), "spec.login[0].name"),
    (cluster({"identity": {"sssd": {"confRef": {"name": "a"}}, "passwd": {"configMapRef": {"name": "b"}}}}),
     "spec.identity"),
    (cluster({"identity": {"homes": {}}}), "spec.identity.homes"),
    (cluster({"identity": {"homes": {"claimName": "a", "volume": {"emptyDir": {}}}}}), "spec.identity.homes"),
    (cluster({"identity": {"homes": {"claimName": "a", "mountPath": "/etc"}}}), "spec.identity.homes.mountPath"),
]  # fmt: skip
NONSENSE_NODESETS = [
    (nodeset(name="default"), "metadata.name"),
    (nodeset(name="all"), "metadata.name"),
    (nodeset(name="a.b"), "metadata.name"),
    (nodeset(name=SLINKYS_NAME), "metadata.name"),
    (nodeset(name="a" * 64), "metadata.name"),
    ({**nodeset(), "spec": None}, "spec"),
    ({**nodeset(), "spec": {}}, "spec.clusterName"),
    (nodeset({"clusterName": ""}), "spec.clusterName"),
    (nodeset({"clusterName": "A b"}), "spec.clusterName"),
    (nodeset({"replicas": -1}), "spec.replicas"),
    (nodeset({"replicas": 65_537}), "spec.replicas"),
    (nodeset({"replicas": "2"}), "spec.replicas"),
    (nodeset({"replicas": 1.5}), "spec.replicas"),
    (nodeset({"scalingMode": "Deployment"}), "spec.scalingMode"),
    (nodeset({"autoscaling": {}}), "spec.autoscaling.maxReplicas"),
    (nodeset({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}), "spec.autoscaling.minReplicas"),
    (nodeset({"autoscaling": {"maxReplicas": 65_537}}), "spec.autoscaling.maxReplicas"),
    (nodeset({"autoscaling": {"maxReplicas": 2, "headroom": -1}}), "spec.autoscaling.headroom"),
    (nodeset({"autoscaling": {"maxReplicas": 2, "idleTime": "soon"}}), "spec.autoscaling.idleTime"),
    (nodeset({"autoscaling": {"maxReplicas": 2}, "scalingMode": "DaemonSet"}), "spec.autoscaling"),
    (nodeset({"jobLogs": {"keepFor": "soon"}}), "spec.jobLogs.keepFor"),
    (nodeset({"jobLogs": True}), "spec.jobLogs"),
    (nodeset({"serviceName": "a.b"}), "spec.serviceName"),
    (nodeset({"image": "a b"}), "spec.image"),
    (nodeset({"partition": {"config": "Default=YES\nPartitionName=evil"}}), "spec.partition.config"),
    (nodeset({"partition": {"config": "Default=YES\u2028x"}}), "spec.partition.config"),
    (nodeset({"partition": {"config": "Default=YES \\ "}}), "spec.partition.config"),
    (nodeset({"partition": {"config": "Nodes=ALL"}}), "spec.partition.config"),
    (nodeset({"partition": {"config": "a" * 4097}}), "spec.partition.config"),
    (nodeset({"extraConf": "A=1\nNodeName=evil"}), "spec.extraConf"),
    (nodeset({"extraConf": "nodename = evil"}), "spec.extraConf"),
    (nodeset({"features": ["a", "b c"]}), "spec.features[1]"),
    (nodeset({"features": ["a\n"]}), "spec.features[0]"),
    (nodeset({"features": ["a", "a"]}), "spec.features[1]"),
    (nodeset({"gres": "gpu:1 Features=x"}), "spec.gres"),
    (nodeset({"gres": "gpu:1\n"}), "spec.gres"),
    (nodeset({"weight": -1}), "spec.weight"),
    (nodeset({"updateStrategy": {"type": "Recreate"}}), "spec.updateStrategy.type"),
    (nodeset({"updateStrategy": {"rollingUpdate": {"maxUnavailable": -1}}}), "rollingUpdate.maxUnavailable"),
    (nodeset({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}), "rollingUpdate.maxUnavailable"),
    (nodeset({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0.5}}}), "rollingUpdate.maxUnavailable"),
    (nodeset({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}}), "whenScaled"),
    (nodeset({"drain": {"timeout": "1d"}}), "spec.drain.timeout"),
    (nodeset({"drain": {"timeout": "87601h"}}), "spec.drain.timeout"),
    (nodeset({"drain": {"timeout": "999999999h"}}), "must be at most 87600h"),
    (cluster({**EXTERNAL, "server": "http://[::1"}), "spec.server"),
    (nodeset({"drain": {"onTimeout": "Kill"}}), "spec.drain.onTimeout"),
    (nodeset({"maxConcurrentStartup": 0}), "spec.maxConcurrentStartup"),
    (nodeset({"health": {"checks": [{"name": "a"}]}}), "spec.health.checks[0].use"),
    (nodeset({"health": {"checks": [{"name": "a", "script": "echo"}]}}), "spec.health.checks[0].script"),
    (nodeset({"health": {"checks": [{"name": "a", "use": "Mounts"}]}}), "needs the parameter PATHS"),
    (nodeset({"health": {"checks": [{"name": "a", "use": "Disk", "parameters": {"COUNT": "1"}}]}}), "parameters"),
    (nodeset({"health": {"checks": [{"name": "a", "use": "Disk", "parameters": {"a b": "1"}}]}}), "parameters"),
    (
        nodeset({"health": {"checks": [{"name": "a", "use": "Disk", "parameters": {"MAX_USED_PERCENT": "95%"}}]}}),
        "other parameters whole numbers",
    ),
    (
        nodeset({"health": {"checks": [{"name": "a", "use": "GPU", "parameters": {"CLOCKS": "yes"}}]}}),
        "must be true or false",
    ),
    (nodeset({"topology": [{"name": "default", "nodeLabels": []}]}), "spec.topology[0].nodeLabels"),
    (nodeset({"topology": [{"name": "default", "nodeLabels": ["rack:1"]}]}), "spec.topology[0].nodeLabels[0]"),
    (nodeset({"topology": [{"name": "default", "nodeLabels": ["rack"], "root": "a:b"}]}), "spec.topology[0].root"),
    (nodeset({"topology": [{"nodeLabels": ["rack"], "name": "a,b"}]}), "spec.topology[0].name"),
    (nodeset({"ordinalPadding": 6}), "spec.ordinalPadding"),
    (nodeset({"template": "text"}), "spec.template"),
    (nodeset({"volumeClaimTemplates": ["text"]}), "spec.volumeClaimTemplates[0]"),
]


NONSENSE = [*NONSENSE_CLUSTERS, *NONSENSE_NODESETS]


@pytest.mark.parametrize(("obj", "field"), NONSENSE)
def test_nonsense_is_refused_with_the_name_of_its_field(api: Api, obj: dict[str, Any], field: str) -> None:
    answer = api.create(obj, dry_run=True)
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["message"]


@pytest.mark.parametrize(("sylabs", "pods", "status"), [(None, True, 422), (None, False, 201), ({}, True, 201)])
def test_pods_of_old_kinds_need_the_old_kinds(api: Api, sylabs: object, pods: bool, status: int) -> None:
    """A Cluster that has none would accept the field, and ignore it."""
    jobs = {"virtualNodes": {"host": "site", "sylabsPods": pods}, **({} if sylabs is None else {"sylabs": sylabs})}
    answer = api.create(cluster({"jobs": jobs}), dry_run=True)
    assert answer.status_code == status, answer.text
    if status == 422:
        assert "spec.jobs.virtualNodes.sylabsPods" in answer.json()["message"]


@pytest.mark.parametrize(
    ("gres", "field"),
    [
        ([{"deviceClass": "c", "driver": "d", "attributes": {"type": "gpu"}, "gres": "gpu"}], ""),
        ([{"deviceClass": "a", "gres": "gpu:a"}, {"deviceClass": "b", "gres": "gpu:b"}], ""),
        ([{"deviceClass": "a", "gres": "gpu"}, {"resource": "x/y", "gres": "fpga"}], ""),
        ([{"gres": "gpu"}], "spec.jobs.bridge.gres[0].resource"),
        ([{"resource": "x/y", "deviceClass": "a", "gres": "gpu"}], "spec.jobs.bridge.gres[0].resource"),
        ([{"resource": "x/y", "driver": "d", "gres": "gpu"}], "spec.jobs.bridge.gres[0].driver"),
        ([{"deviceClass": "a", "gres": "gpu"}, {"deviceClass": "b", "gres": "gpu"}], "spec.jobs.bridge.gres"),
        ([{"deviceClass": "a", "gres": "gpu"}, {"deviceClass": "b", "gres": "gpu:b"}], "spec.jobs.bridge.gres"),
        ([{"deviceClass": "a", "gres": "gpu:a"}, {"resource": "x/y", "gres": "gpu:b"}], "spec.jobs.bridge.gres"),
    ],
)
def test_classes_of_devices_have_generic_resources_of_their_own(api: Api, gres: list[Any], field: str) -> None:
    """An index of Slurm would mean devices of several classes."""
    jobs = {"bridge": {"nodeLabels": {"a": "b"}, "gres": gres}}
    answer = api.create(cluster({"jobs": jobs}), dry_run=True)
    assert answer.status_code == (422 if field else 201), answer.text
    if field:
        assert f"{field}: " in answer.json()["message"]


# Names of Clusters and duplicates are the API server's to refuse, a number in quotes can be read as one, and a NodeSet
# with a long name of Slinky's is drained: no harm comes of reading these.
@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(obj, id=field)
        for obj, field in NONSENSE
        if field != "spec.partitions[1]"
        and obj["spec"] != {"clusterName": "slurm", "features": ["a", "a"]}
        and obj["spec"] != {"clusterName": "slurm", "replicas": "2"}
        and not (field == "metadata.name" and obj["kind"] == "Cluster")
        and obj["metadata"]["name"] != SLINKYS_NAME
    ],
)
def test_the_models_refuse_it_too_should_it_ever_get_in(obj: dict[str, Any]) -> None:
    with pytest.raises(InvalidObjectError):
        (Cluster if obj["kind"] == "Cluster" else NodeSet).parse(obj)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    text=st.text(st.characters(codec="utf-8"), max_size=12)
    | st.text("Nodes=aA1 -_.\"'#\\\t\n\r\v\f\x00\x1c\x85\u2028\u2029\u00a0\u017f", max_size=12)
)
def test_the_api_server_and_the_models_agree_on_text(api: Api, text: str) -> None:
    specs: dict[str, dict[str, Any]] = {
        "config": {"partition": {"config": text}},
        "extraConf": {"extraConf": text},
        "feature": {"features": [text]},
        "gres": {"gres": text},
        "image": {"image": text},
    }
    for what, spec in specs.items():
        try:
            NodeSet.parse(nodeset(spec))
            read = True
        except InvalidObjectError:
            read = False
        answer = api.create(nodeset(spec), dry_run=True)
        assert answer.status_code in {201, 422}, answer.text
        # What the API server lets in must be readable, and must be one line to everybody.
        assert read or answer.status_code == 422, (what, text, answer.text)
        if answer.status_code == 201:
            assert len(f"{text}.".splitlines()) == 1
        if read and answer.status_code == 422:
            # RE2 folds a long s into an s, so the API server may refuse more than Slurm would mind.
            assert "\u017f" in text or "\u212a" in text, (what, text, answer.text)


@pytest.mark.parametrize(
    ("obj", "change", "field"),
    [
        (nodeset(), {"clusterName": "other"}, "spec.clusterName"),
        (nodeset({"serviceName": "a"}), {"serviceName": "b"}, "spec.serviceName"),
        (nodeset({"serviceName": "a"}), {"serviceName": None}, "spec.serviceName"),
        (nodeset(), {"serviceName": "a"}, "spec.serviceName"),
        (nodeset({"scalingMode": "DaemonSet"}), {"scalingMode": "StatefulSet"}, "spec.scalingMode"),
        (nodeset({"scalingMode": "DaemonSet"}), {"scalingMode": None}, "spec.scalingMode"),
        (cluster({"clusterName": "a"}), {"clusterName": "b"}, "spec.clusterName"),
        (cluster({"clusterName": "a"}), {"clusterName": None}, "spec.clusterName"),
        (cluster(), {"clusterName": "a"}, "spec.clusterName"),
        (cluster(), EXTERNAL, "spec.server"),
        (cluster(EXTERNAL), {"server": None, "token": None}, "spec.server"),
    ],
)
def test_what_is_immutable_stays(api: Api, obj: dict[str, Any], change: dict[str, Any], field: str) -> None:
    assert api.create(obj).status_code == 201
    answer = api.patch(obj["kind"], obj["metadata"]["name"], {"spec": change})
    assert answer.status_code == 422
    assert field in answer.json()["message"]


@pytest.mark.parametrize("name", [SLINKYS_NAME, "a" * 63, "a" * 64, "a.b", "all"])
def test_an_object_with_a_name_from_before_our_crd_can_be_changed_and_let_go(
    api: Api, control_plane: ControlPlane, name: str
) -> None:
    finalizer = "nodeset.slinky.slurm.net/drain"
    with served.any_name(control_plane.kubectl, SLINKYS_NAME):
        theirs = nodeset({"replicas": 3}, name)
        theirs["metadata"]["finalizers"] = [finalizer]
        assert api.create(theirs).status_code == 201
        assert api.patch("NodeSet", name, {"status": {"nodeSetHash": "x"}}, "status").status_code == 200

    assert api.create(nodeset({"replicas": 3}, f"b{name}"), dry_run=True).status_code == (201 if name == "all" else 422)
    for change in ({"metadata": {"annotations": {"a": "b"}}}, {"spec": {"replicas": 2}}):
        answer = api.patch("NodeSet", name, change)
        assert answer.status_code == 200, answer.text
    assert api.patch("NodeSet", name, {"spec": {"replicas": 0}}, "scale").status_code == 200
    assert api.patch("NodeSet", name, {"status": {"replicas": 0}}, "status").status_code == 200
    api.client.delete(api.path("NodeSet", name)).raise_for_status()
    assert api.get("NodeSet", name)["metadata"]["deletionTimestamp"]
    assert api.patch("NodeSet", name, {"metadata": {"finalizers": None}}).status_code == 200
    assert api.client.get(api.path("NodeSet", name)).status_code == 404


def test_one_that_has_no_status_yet_gets_it_first(api: Api, control_plane: ControlPlane) -> None:
    with served.any_name(control_plane.kubectl, SLINKYS_NAME):
        assert api.create(nodeset(name=SLINKYS_NAME)).status_code == 201

    assert api.patch("NodeSet", SLINKYS_NAME, {"status": {"replicas": 0}}, "status").status_code == 200
    assert api.patch("NodeSet", SLINKYS_NAME, {"spec": {"replicas": 0}}).status_code == 200


def test_what_is_mutable_changes(api: Api) -> None:
    assert api.create(nodeset({"replicas": 1})).status_code == 201
    change = {"replicas": 5, "scalingMode": "StatefulSet", "image": "b", "volumeClaimTemplates": [{"metadata": {}}]}
    assert api.patch("NodeSet", "compute", {"spec": change}).status_code == 200
    assert api.create(cluster(EXTERNAL)).status_code == 201
    assert api.patch("Cluster", "slurm", {"spec": {"server": "https://b"}}).status_code == 200


def test_the_token_may_change_between_its_forms(api: Api) -> None:
    for reference in ("a", {"name": "b", "key": "k"}, {"name": "c"}, "d"):
        answer = api.apply(cluster({"server": "http://a", "token": {"secretRef": reference}}))
        assert answer.status_code in {200, 201}, answer.text
        assert answer.json()["spec"]["token"]["secretRef"] == reference


def test_unknown_fields_of_fragments_survive_and_others_do_not(api: Api) -> None:
    fragment = {"metadata": {"labels": {"a": "b"}, "x": 1}, "spec": {"containers": [{"name": "a", "new": {"y": [1]}}]}}
    claim = {"metadata": {"name": "c"}, "spec": {"new": True}, "status": {"x": 1}}
    spec = {
        "template": {**fragment, "beside": 1},
        "volumeClaimTemplates": [claim],
        "resources": {"limits": {"cpu": 0.5, "example.com/gpu": 1}, "claims": [{"name": "x"}]},
    }
    assert api.create(nodeset({**spec, "unknown": 1})).status_code == 201
    stored = api.get("NodeSet", "compute")["spec"]
    assert stored == {"clusterName": "slurm", **spec}

    assert (
        api.create(cluster({"controller": {"template": fragment, "service": {"spec": {"new": 1}}}})).status_code == 201
    )
    controller = api.get("Cluster", "slurm")["spec"]["controller"]
    assert controller == {"template": fragment, "service": {"spec": {"new": 1}}}


def test_a_cluster_may_have_no_spec(api: Api) -> None:
    bare = cluster()
    del bare["spec"]
    assert api.create(bare).status_code == 201
    assert api.get("Cluster", "slurm")["spec"] == {}


def test_a_status_of_both_generations_is_stored_and_the_scale_subresource_shows_it(api: Api) -> None:
    assert api.create(nodeset({"replicas": 3})).status_code == 201
    status = NodeSetStatus.counted(
        desired=3, replicas=2, updated=2, ready=1, available=1, idle=1, down=1, selector="a=b", node_set_hash="x"
    ).to_dict()
    assert api.patch("NodeSet", "compute", {"status": status}, "status").status_code == 200
    assert api.get("NodeSet", "compute")["status"] == status

    scale = api.client.get(api.path("NodeSet", "compute") + "/scale").raise_for_status().json()
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "a=b"}
    assert api.patch("NodeSet", "compute", {"spec": {"replicas": 4}}, "scale").status_code == 200
    assert api.get("NodeSet", "compute")["spec"]["replicas"] == 4


def test_scaling_from_no_number_and_below_zero(api: Api) -> None:
    assert api.create(nodeset()).status_code == 201
    assert api.patch("NodeSet", "compute", {"spec": {"replicas": -1}}, "scale").status_code == 422
    assert api.patch("NodeSet", "compute", {"spec": {"replicas": 2}}, "scale").status_code == 200
    assert api.get("NodeSet", "compute")["spec"]["replicas"] == 2


def test_columns_show_the_status(api: Api, control_plane: ControlPlane) -> None:
    assert api.create(cluster()).status_code == 201
    status = {
        "isReady": True,
        "summary": "Running, 1 node down",
        "slurmVersion": "26.05.5",
        "nodes": {"total": 4, "down": 1, "drain": 2},
        "jobs": {"running": 7, "pending": 3},
    }
    assert api.patch("Cluster", "slurm", {"status": status}, "status").status_code == 200
    shown = control_plane.kubectl("get", f"--namespace={api.namespace}", "clusters").splitlines()
    columns = "NAME READY STATUS NODES DOWN DRAINED RUNNING PENDING VERSION AGE"
    assert shown[0].split() == columns.split()
    assert shown[1].split()[:11] == ["slurm", "true", *["Running,", "1", "node", "down"], "4", "1", "2", "7", "3"]


@pytest.mark.parametrize(
    "obj",
    [
        cluster({"server": "", "token": {"secretRef": ""}}, "of-go"),
        nodeset({"serviceName": ""}, "of-go"),
    ],
    ids=["Cluster", "NodeSet"],
)
def test_texts_that_clients_in_go_leave_empty_are_taken_as_absent(api: Api, obj: dict[str, Any]) -> None:
    answer = api.create(obj)
    assert answer.status_code == 201, answer.text
    stored = api.get(obj["kind"], "of-go")
    parsed = KINDS[obj["kind"]].parse(stored)
    assert isinstance(parsed, Cluster | NodeSet)
    assert (parsed.spec.service_name if isinstance(parsed, NodeSet) else parsed.spec.server) is None
    # A client that leaves the texts out changes nothing that is immutable.
    answer = api.patch(obj["kind"], "of-go", {"spec": {"server": None, "token": None, "serviceName": None}})
    assert answer.status_code == 200, answer.text

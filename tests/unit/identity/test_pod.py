"""What pods get to resolve users, and what of it a slurmd pod is replaced for."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.identity import homes, pod
from slinky_operator.identity.pod import SssdImage
from tests.unit.cluster.world import cluster_object

IMAGE = SssdImage("sssd:1", "Always")
SPEC: dict[str, Any] = {
    "containers": [{"name": "daemon", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}, {"name": "other"}],
    "volumes": [{"name": "x", "emptyDir": {}}],
}


def cluster(**identity: Any) -> Cluster:
    return Cluster.parse(cluster_object({"identity": identity} if identity else {}))


def sssd(**more: Any) -> Cluster:
    return cluster(sssd={"confRef": {"name": "directory"}, **more})


@pytest.mark.parametrize("of", [cluster(), Cluster.parse(cluster_object({"identity": {}}))])
def test_without_a_source_a_pod_is_as_before(of: Cluster) -> None:
    assert pod.attached(SPEC, of, ("daemon",), IMAGE) == SPEC
    assert pod.on_node(SPEC, of, "daemon", IMAGE) == SPEC
    assert pod.of_nodes(of) == {}


def test_users_from_files_are_mounted_read_only_and_may_be_missing() -> None:
    made = pod.attached(SPEC, cluster(passwd={"configMapRef": {"name": "people"}}), ("daemon",), IMAGE)
    daemon, other = made["containers"]
    assert daemon["volumeMounts"][1:] == [
        {"name": "identity-users", "mountPath": "/var/lib/extrausers", "readOnly": True}
    ]
    assert "volumeMounts" not in other
    assert made["volumes"][1:] == [
        {"name": "identity-users", "configMap": {"name": "slurm-users", "defaultMode": 0o444, "optional": True}}
    ]
    assert "initContainers" not in made


def test_sssd_is_a_sidecar_without_capabilities_and_alone_sees_its_configuration() -> None:
    made = pod.attached(SPEC, sssd(), ("daemon",), IMAGE)
    (sidecar,) = made["initContainers"]
    assert (sidecar["image"], sidecar["imagePullPolicy"], sidecar["restartPolicy"]) == ("sssd:1", "Always", "Always")
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True
    assert sidecar["env"] == [{"name": "SSSD_CONF", "value": "/config/sssd.conf"}]
    mounted = {one["name"] for one in made["containers"][0]["volumeMounts"]}
    assert mounted == {"x", "identity-users", "identity-sockets"}
    assert {one["name"] for one in made["volumes"]} - {"x"} == pod.VOLUMES
    assert all(one["mountPath"] != "/config" for one in made["containers"][0]["volumeMounts"])


def test_what_the_cluster_says_of_sssd_wins() -> None:
    conf = {"name": "directory", "key": "mine.conf"}
    wanted = sssd(confRef=conf, image="mine:1", resources={"limits": {"memory": "1Gi"}})
    (sidecar,) = pod.attached(SPEC, wanted, ("daemon",), IMAGE)["initContainers"]
    assert sidecar["image"] == "mine:1"
    assert "imagePullPolicy" not in sidecar
    assert sidecar["resources"]["limits"] == {"memory": "1Gi"}
    assert sidecar["env"][0]["value"] == "/config/mine.conf"


def test_homes_are_mounted_and_hide_no_working_directory() -> None:
    made = homes.attached(SPEC, cluster(homes={"claimName": "homes"}), ("daemon",))
    daemon, other = made["containers"]
    assert daemon["workingDir"] == "/"
    assert daemon["volumeMounts"][-1] == {"name": homes.VOLUME, "mountPath": "/home"}
    assert other == {"name": "other"}
    assert made["volumes"][-1] == {"name": homes.VOLUME, "persistentVolumeClaim": {"claimName": "homes"}}
    nfs = {"nfs": {"server": "files", "path": "/export"}}
    made = homes.attached(SPEC, cluster(homes={"volume": {**nfs, "name": "x"}, "mountPath": "/people"}), ("daemon",))
    assert made["volumes"][-1] == {**nfs, "name": homes.VOLUME}
    assert made["containers"][0]["volumeMounts"][-1]["mountPath"] == "/people"


def test_nothing_given_is_changed() -> None:
    before = str(SPEC)
    everything = cluster(sssd={"confRef": {"name": "a"}}, homes={"claimName": "homes"})
    _ = pod.on_node(SPEC, everything, "daemon", IMAGE)
    assert str(SPEC) == before


def test_a_node_is_replaced_for_another_source_but_not_for_another_config_map() -> None:
    one, other = ({"configMapRef": {"name": name}} for name in ("a", "b"))
    assert pod.of_nodes(cluster(passwd=one)) == pod.of_nodes(cluster(passwd=other)) != {}
    found = [
        pod.of_nodes(of)
        for of in (
            cluster(),
            cluster(passwd=one),
            sssd(),
            sssd(image="mine:1"),
            sssd(confRef={"name": "other"}),
            cluster(passwd=one, homes={"claimName": "a"}),
            cluster(passwd=one, homes={"claimName": "b"}),
        )
    ]
    assert all(left != right for place, left in enumerate(found) for right in found[:place])
    # A prolog makes homes, which reaches running nodes.
    made, not_made = ({"claimName": "a", "create": create} for create in (True, False))
    assert pod.of_nodes(cluster(passwd=one, homes=made)) == pod.of_nodes(cluster(passwd=one, homes=not_made))


@pytest.mark.parametrize(
    "of", [cluster(passwd={"configMapRef": {"name": "a"}}, homes={"claimName": "h"}), sssd(image="mine:1")]
)
def test_a_pod_of_an_earlier_revision_is_made_as_it_was(of: Cluster) -> None:
    recorded = pod.of_nodes(of)
    for now in (cluster(), sssd(), of):
        restored = pod.with_nodes(now, recorded)
        assert pod.on_node(SPEC, restored, "daemon", IMAGE) == pod.on_node(SPEC, of, "daemon", IMAGE)
        assert pod.on_node(SPEC, pod.with_nodes(now, {}), "daemon", IMAGE) == SPEC

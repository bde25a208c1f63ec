"""The copy of passwd and group that daemons mount, and daemons with a source of users."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, StartPreflight, Write
from slinky_operator.cluster.daemons import default_images
from slinky_operator.cluster.parts import daemons
from slinky_operator.identity import pod
from slinky_operator.slurm.conf import TextSource
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import ENVIRONMENT, World, cluster_object

PASSWD = {"identity": {"passwd": {"configMapRef": {"name": "people"}}}}
SSSD = {"identity": {"sssd": {"confRef": {"name": "directory"}}}}
COPY = ("ConfigMap", "slurm-users")
DAEMONS = (("StatefulSet", "slurm-controller"), ("Deployment", "slurm-restapi"))
ALICE = "alice:x:1000:1000::/home/alice:/bin/bash\n"
WRITTEN = "alice:*:1000:1000::/home/alice:/bin/bash\n"


def with_users(passwd: str = ALICE) -> World:
    world = World(cluster_object(PASSWD))
    world.texts["people"] = people(passwd)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    return world


def people(passwd: str) -> TextSource:
    return TextSource("people", exists=True, texts={"passwd": passwd})


def pod_spec(world: World, key: tuple[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = world.children[key]["spec"]["template"]["spec"]
    return found


def test_both_daemons_mount_the_checked_copy() -> None:
    world = with_users()
    assert world.children[COPY]["data"] == {"passwd": WRITTEN, "group": ""}
    for key in DAEMONS:
        assert "identity-users" in {one["name"] for one in pod_spec(world, key)["volumes"]}


def test_a_cluster_without_a_source_has_neither_copy_nor_volumes() -> None:
    for world in (settled(), settled({"identity": {}}), settled({"identity": {"homes": {"claimName": "homes"}}})):
        assert COPY not in world.children
        for key in DAEMONS:
            spec = pod_spec(world, key)
            assert "initContainers" not in spec
            assert pod.VOLUMES.isdisjoint(one["name"] for one in spec["volumes"])


def test_a_bad_line_changes_nothing_and_is_told_once() -> None:
    world = with_users()
    world.texts["people"] = people(f"{ALICE}mallory:x:0:0::/root:/bin/sh\n")
    log = world.settle()
    assert world.children[COPY]["data"]["passwd"] == WRITTEN
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "IdentityRefused")
    assert "passwd line 2: uid 0 is not from" in degraded["message"]
    assert [one.reason for one in log if isinstance(one, EmitEvent)] == ["IdentityRefused"]
    assert not any(isinstance(one, Write) for one in log)
    assert world.raw["status"]["isReady"] is True
    world.texts["people"] = people(f"{ALICE}bob:x:1001:1000::/home/bob:\n")
    _ = world.settle()
    assert world.children[COPY]["data"]["passwd"] == f"{WRITTEN}bob:*:1001:1000::/home/bob:\n"
    assert world.condition("Degraded")["status"] == "False"


def test_a_config_map_that_goes_takes_nobody_away() -> None:
    world = with_users()
    world.texts.clear()
    world.settle()
    assert world.children[COPY]["data"]["passwd"] == WRITTEN
    assert world.condition("Degraded")["reason"] == "ConfigSourceNotFound"


def test_the_copy_of_a_new_cluster_with_a_bad_line_is_not_written_and_the_daemons_start() -> None:
    world = with_users("x")
    assert COPY not in world.children
    assert world.condition("Degraded")["reason"] == "IdentityRefused"


@pytest.mark.parametrize("where", ["running", "login_pods"])
def test_the_copy_goes_when_no_pod_mounts_it(where: str) -> None:
    world = with_users()
    mounting = {"metadata": {"name": "a-0"}, "spec": {"volumes": [{"configMap": {"name": "slurm-users"}}]}}
    setattr(world, where, [mounting])
    world.raw = {**world.raw, "spec": {}}
    for key in DAEMONS:
        # Written again: this world knows no field managers, by which the API server removes a volume.
        del world.children[key]
    world.settle()
    assert all("identity-users" not in str(pod_spec(world, key)) for key in DAEMONS)
    assert COPY in world.children
    setattr(world, where, [])
    world.settle()
    assert COPY not in world.children


def test_a_secret_that_is_missing_is_told_and_stops_nothing() -> None:
    world = World(cluster_object(SSSD))
    world.secrets["directory"] = {}
    world.settle()
    assert world.condition("Degraded")["reason"] == "SecretKeyNotFound"
    assert world.raw["status"]["isReady"] is True
    world.secrets["directory"] = {"sssd.conf": b"[sssd]\nservices = nss\n[domain/a]\nmax_id = 60000\n"}
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


def test_a_preflight_does_not_need_the_source() -> None:
    world = settled(SSSD)
    world.raw["spec"] = {**SSSD, "extraConf": "MaxArraySize=5"}
    started = [one for one in world.settle() if isinstance(one, StartPreflight)]
    assert started
    for one in started:
        body = one.preflight.pod.body["spec"]
        assert pod.VOLUMES.isdisjoint(volume["name"] for volume in body["volumes"])
        assert "initContainers" not in body


def test_sssd_keeps_its_image_when_the_default_changes() -> None:
    world = settled(SSSD)
    snapshot = world.snapshot()
    changed = ENVIRONMENT.images.with_image("sssd", "sssd:2")
    assert default_images.kept(snapshot, changed, daemons.wanted(snapshot.cluster)).of("sssd") == "sssd:1"
    snapshot = settled().snapshot()
    assert default_images.kept(snapshot, changed, daemons.wanted(snapshot.cluster)).of("sssd") == "sssd:2"

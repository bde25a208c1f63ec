"""An administrator of nodes outside Kubernetes finds what these need in a ConfigMap, without any key."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.parts.external_nodes.manifests import ADDRESS, address_of
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

NAME = "slurm-controller-outside"
HOST = "slurm-controller-0.slurm-controller.here.svc"


def with_service(spec: dict[str, Any], **more: Any) -> World:
    return settled({"controller": {"service": {"spec": spec}}, **more})


def texts(world: World) -> dict[str, str]:
    found: dict[str, str] = world.children["ConfigMap", NAME]["data"]
    return found


def test_it_has_the_name_of_slurmctld_the_command_and_where_the_key_is() -> None:
    said = texts(with_service({"type": "ClusterIP", "externalIPs": ["192.0.2.1", "192.0.2.2"]}))
    assert said["hosts"] == f"192.0.2.1 {HOST}\n"
    assert said["slurmd"] == f'slurmd -D -N "$(hostname -s)" --conf-server {HOST}:6817\n'
    assert said["key"] == (
        "kubectl -n here get secret slurm-auth-accepted -o jsonpath='{.data.slurm\\.jwks}' | base64 -d > slurm.jwks\n"
    )
    assert said["version"] == "26.05.5"
    assert ADDRESS not in said["steps"]


def test_it_names_the_secret_and_file_of_a_key_set() -> None:
    key_set = {"auth": {"slurmKeyRef": {"name": "keys", "key": "slurm.jwks"}}}
    world = World(secrets={"keys": {"slurm.jwks": b"{}"}})
    world.raw["spec"] = {"controller": {"service": {"spec": {"type": "NodePort"}}}, **key_set}
    world.settle()
    assert texts(world)["key"] == (
        "kubectl -n here get secret slurm-auth-accepted -o jsonpath='{.data.slurm\\.jwks}' | base64 -d > slurm.jwks\n"
    )
    assert "/etc/slurm/slurm.jwks" in texts(world)["steps"]


@pytest.mark.parametrize(
    ("spec", "ports", "words"),
    [
        ({"type": "LoadBalancer"}, {}, "the load balancer has no address yet"),
        ({"type": "ClusterIP"}, {}, "no address outside Kubernetes"),
        ({"type": "NodePort"}, {"nodePort": 30817}, "slurmctld at port 30817. slurmd always calls port 6817"),
    ],
)
def test_an_address_that_nobody_knows_is_explained(spec: dict[str, Any], ports: dict[str, Any], words: str) -> None:
    world = with_service(spec)
    world.children["Service", NAME]["spec"]["ports"][0] |= ports
    world.settle()
    assert texts(world)["hosts"] == f"{ADDRESS} {HOST}\n"
    assert words in texts(world)["steps"]


def test_the_address_of_a_load_balancer_is_written_once_it_is_known() -> None:
    world = with_service({"type": "LoadBalancer"})
    for ingress in ({"ip": "192.0.2.7"}, {"hostname": "slurm.example.org"}):
        world.children["Service", NAME]["status"] = {"loadBalancer": {"ingress": [ingress]}}
        world.settle()
        assert texts(world)["address"] == next(iter(ingress.values()))


def test_a_name_is_not_put_where_only_addresses_may_be() -> None:
    world = with_service({"type": "LoadBalancer"})
    service = world.children["Service", NAME]
    service["status"] = {"loadBalancer": {"ingress": [{"hostname": "slurm.example.org"}]}}
    world.settle()
    assert texts(world)["hosts"] == f"{ADDRESS} {HOST}\n"
    assert "ADDRESS: what slurm.example.org resolves to" in texts(world)["steps"]
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "2001:db8::7"}]}}
    world.settle()
    assert texts(world)["hosts"] == f"2001:db8::7 {HOST}\n"
    assert ADDRESS not in texts(world)["steps"]


def test_a_balancer_wins_over_external_addresses() -> None:
    balancer = {"loadBalancer": {"ingress": [{}, {"ip": "192.0.2.7"}]}}
    assert address_of({"status": balancer, "spec": {"externalIPs": ["192.0.2.1"]}}) == "192.0.2.7"
    assert address_of({}) == ""


def test_it_goes_with_the_service() -> None:
    world = with_service({"type": "NodePort"})
    world.raw["spec"] = {}
    world.settle()
    assert not [key for key in world.children if key[1] == NAME]

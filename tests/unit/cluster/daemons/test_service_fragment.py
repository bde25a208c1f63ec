"""What a user adds to the Services of daemons, and the Service by which slurmctld is reached from outside."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.common import ServiceFragment
from slinky_operator.cluster.actions import Remove
from slinky_operator.cluster.daemons.service_fragment import exposed
from slinky_operator.slurm import naming
from tests.unit.cluster.rollout_stories import settled

OUTSIDE = ("Service", "slurm-controller-outside")
TEXTS = ("ConfigMap", OUTSIDE[1])
INSIDE = ("Service", "slurm-controller")


@pytest.mark.parametrize(
    ("ports", "taken"),
    [
        ([{"port": 6820, "nodePort": 30020}], {"nodePort": 30020}),
        ([{"name": "rest", "nodePort": 30020, "appProtocol": "http"}], {"nodePort": 30020, "appProtocol": "http"}),
        ([{"port": 1, "nodePort": 1}, {"port": 6820, "nodePort": 2}], {"nodePort": 2}),
        ([{"port": 1, "nodePort": 1}, {"port": 2, "nodePort": 2}], {}),
        ([{"port": 6820, "targetPort": 22, "protocol": "UDP"}], {}),
        ("x", {}),
        (["x", None], {}),
    ],
)
def test_of_the_users_ports_only_what_concerns_no_other_pod_is_taken(ports: Any, taken: dict[str, Any]) -> None:
    fragment = ServiceFragment(spec={"type": "NodePort", "selector": {"app": "other"}, "ports": ports})
    spec = exposed(fragment, {"app": "slurm"}, "rest", 6820)
    port = {"name": "rest", "port": 6820, "protocol": "TCP", **taken}
    assert spec == {"type": "NodePort", "selector": {"app": "slurm"}, "ports": [port]}


def test_a_spec_for_the_service_of_slurmctld_makes_a_second_one() -> None:
    fragment = {"annotations": {"lb": "internal"}, "labels": {"a": "b"}, "spec": {"type": "LoadBalancer"}}
    world = settled({"controller": {"service": fragment}})
    outside, inside = world.children[OUTSIDE], world.children[INSIDE]
    assert outside["spec"]["type"] == "LoadBalancer"
    assert outside["spec"]["selector"] == inside["spec"]["selector"]
    assert inside["spec"]["clusterIP"] == "None"
    assert "type" not in inside["spec"]
    assert all(one["metadata"]["annotations"]["lb"] == "internal" for one in (outside, inside))
    assert world.condition("Degraded")["status"] == "False"


def test_it_goes_with_the_spec_and_nothing_else_does() -> None:
    world = settled({"controller": {"service": {"spec": {"type": "NodePort"}}}})
    before = set(world.children)
    world.raw = {**world.raw, "spec": {}}
    removed = {(one.resource.kind, one.name) for one in world.settle() if isinstance(one, Remove)}
    assert removed == {OUTSIDE, TEXTS}
    assert set(world.children) == before - {OUTSIDE, TEXTS}


def test_labels_of_the_operator_cannot_be_taken() -> None:
    world = settled({"controller": {"service": {"labels": {"cluster.slinky.slurm.net/uid": "x"}}}})
    assert world.children[INSIDE]["metadata"]["labels"]["cluster.slinky.slurm.net/uid"] != "x"


def test_every_object_of_a_cluster_has_a_name_by_which_it_is_observed() -> None:
    # One that is not observed would be written at each pass, and never deleted.
    world = settled({"controller": {"service": {"spec": {"type": "NodePort"}}}})
    assert OUTSIDE in world.children
    assert [name for _, name in world.children if not naming.is_child("slurm", name)] == []

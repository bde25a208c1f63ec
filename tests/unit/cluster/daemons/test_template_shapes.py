"""A template of the wrong shape is named in a condition; the daemons and all else of the Cluster go on."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.parts.daemons import DAEMONS
from slinky_operator.cluster.parts.exporter.manifests import EXPORTER
from tests.unit.cluster.world import World, cluster_object

SHAPES: tuple[dict[str, Any], ...] = (
    {"spec": "none"},
    {"spec": {"containers": "none"}},
    {"spec": {"containers": ["a"]}},
    {"metadata": {"labels": "none"}},
)

FIELDS = [one.template_field.removeprefix("spec.").removesuffix(".template") for one in (*DAEMONS, EXPORTER)]


@pytest.mark.parametrize("template", SHAPES, ids=str)
@pytest.mark.parametrize("field", FIELDS)
def test_a_template_of_the_wrong_shape_is_named_and_holds_up_nothing_else(field: str, template: dict[str, Any]) -> None:
    base: dict[str, Any] = {"accounting": {}, "metrics": {"exporter": {"enabled": True}}}
    world = World(cluster_object(base))
    world.settle()
    for name in ("slurm-database", "slurm-accounting"):
        world.children["StatefulSet", name]["status"] = {"readyReplicas": 1}
        world.settle()
    world.children["Token", "slurm-exporter"]["status"] = {"secretName": "a", "issuedAt": "2026-01-01T00:00:00Z"}
    first, _, second = field.partition(".")
    part = {**base.get(first, {}), **({} if second else {"template": template})}
    if second:
        part[second] = {**part.get(second, {}), "template": template}
    world.raw["spec"] = {**base, first: part, "extraConf": "KillWait=7"}
    world.settle(60)
    assert f"spec.{field}.template." in world.condition("Degraded")["message"]
    assert "KillWait=7" in world.slurm_conf

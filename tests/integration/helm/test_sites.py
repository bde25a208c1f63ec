"""The API server takes what values of public sites are converted to, and what the chart's maps become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hack.packaging.render import ROOT, SLURM_CHART, render
from slinky_operator.conversion.command import convert
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_crds

SITES: Final = sorted((ROOT / "tests" / "unit" / "conversion" / "sites").glob("*.yaml"))
MAPS: Final[dict[str, Any]] = {
    "accounting": {"enabled": True},
    "nodesetDefaults": {"replicas": 1, "template": {"spec": {"nodeSelector": {"a": "b"}}}},
    "nodesets": {"gpu": {"gres": "gpu:8"}, "cpu": {}},
    "partitions": {"batch": {"nodeSets": ["gpu", "cpu"], "config": "Default=YES"}},
    "loginsets": {"front": {"replicas": 2}},
    "tokens": {"portal": {"username": "nobody", "lifetime": "15m"}},
}


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> ControlPlane:
    apply_crds(control_plane.kubectl)
    return control_plane


@pytest.mark.parametrize("site", SITES, ids=lambda path: path.stem)
def test_a_converted_site_is_taken(served: ControlPlane, site: Path) -> None:
    (draft,), _ = convert([str(site)])
    _taken(served, render(SLURM_CHART, draft.values(), release="slurm", namespace="default"))
    _taken(served, draft.objects("slurm"))


def test_maps_of_the_chart_are_taken(served: ControlPlane) -> None:
    objects = render(SLURM_CHART, MAPS, release="slurm", namespace="default")
    kinds = ("Cluster", "LoginSet", "NodeSet", "NodeSet", "Token")
    assert tuple(sorted(one["kind"] for one in objects if one["kind"] != "NetworkPolicy")) == kinds
    _taken(served, objects)


def _taken(served: ControlPlane, objects: list[dict[str, Any]]) -> None:
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    arguments = ("--dry-run=server", "--validate=strict", "--namespace=default", "--filename=-")
    assert served.kubectl("apply", *arguments, stdin=whole).count("(server dry run)") == len(objects)

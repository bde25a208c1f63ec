"""Values as public sites have them become values that our chart takes, and objects that the CRDs take."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hack.packaging.render import SLURM_CHART, render
from slinky_operator.conversion.command import convert
from slinky_operator.conversion.documents import dump
from slinky_operator.conversion.report import Fate, Report
from tests.unit.conversion.completeness import assert_each_key_is_told_once
from tests.unit.conversion.schemas import errors

SITES: Final = sorted((Path(__file__).parent / "sites").glob("*.yaml"))
LOST: Final[dict[str, set[str]]] = {
    "aks": {"vendor.nvidia.dcgm.enabled"},
    "doks": set(),
    "gcp-toolkit": set(),
    "gke": {"vendor.google.a3mega"},
    "hyperpod": {"control", "mariadb.primary.configuration"},
    "oke": {"nodesets.gpu-b4.useResourceLimits"},
}


def missing(report: Report) -> set[str]:
    """What had an effect and is not there any more."""
    return {entry.key.split(".nodeAffinity")[0] for entry in report.entries if entry.fate is Fate.LOST or entry.missed}


@pytest.mark.parametrize("site", SITES, ids=lambda path: path.stem)
def test_values_of_a_site(site: Path) -> None:
    (draft,), report = convert([str(site)])
    ours = yaml.safe_load(dump([draft.values()]))
    assert missing(report) == LOST[site.stem]
    assert report.lossless is not bool(LOST[site.stem])
    objects = [one for one in render(SLURM_CHART, ours) if one["kind"] in {"Cluster", "NodeSet"}]
    assert [one["kind"] for one in objects].count("NodeSet") == len(ours["nodesets"])
    assert [found for one in objects for found in errors(one)] == []
    assert_each_key_is_told_once(yaml.safe_load(site.read_text(encoding="utf-8")), report)


@pytest.mark.parametrize("site", SITES, ids=lambda path: path.stem)
def test_manifests_of_a_site(site: Path) -> None:
    (draft,), _ = convert([str(site)])
    objects: list[Any] = yaml.safe_load(yaml.safe_dump(draft.objects("slurm")))
    assert [found for one in objects for found in errors(one)] == []
    assert all(one["spec"]["clusterName"] == "slurm" for one in objects if one["kind"] == "NodeSet")


def test_what_becomes_of_hyperpods_node_set() -> None:
    (draft,), _ = convert([str(SITES[0].parent / "hyperpod.yaml")])
    nodeset = draft.nodesets["hp-node"]
    assert nodeset["image"] == "registry.example.com/dlc-slurmd:25.05.0-ubuntu24.04"
    assert nodeset["partition"] == {"enabled": True, "config": "State=UP MaxTime=UNLIMITED"}
    (container,) = nodeset["template"]["spec"]["containers"]
    assert container["name"] == "slurmd"
    assert container["imagePullPolicy"] == "Always"
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/fsx", "/dev/shm"]
    assert draft.partitions == {"all-nodes": {"nodeSets": ["ALL"], "config": "State=UP Default=YES MaxTime=UNLIMITED"}}
    assert draft.logins["login"]["extraSshdConfig"] == "PasswordAuthentication no\nUseDNS no"
    assert draft.cluster["accounting"]["mariadb"]["persistence"]["size"] == "8Gi"

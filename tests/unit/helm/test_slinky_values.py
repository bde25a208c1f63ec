"""Values of Slinky's charts are refused by the charts of the same names, each key with its new name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.errors import RenderFailed
from hack.packaging.render import OPERATOR_CHART, SLURM_CHART, render
from hack.packaging.values_schema import ANY, WHOLE
from hack.packaging.values_table import values as documented

OLDEST: dict[str, Any] = {
    "jwt": {"hs256": {"secretName": "slurm-jwt"}},
    "slurm": {"extraSlurmConf": {"SlurmctldDebug": "debug"}, "prologScripts": {"00-empty.sh": "exit 0"}},
    "controller": {
        "image": {"repository": "r", "tag": "24.05"},
        "persistence": {"storageClass": "fast", "size": "4Gi"},
    },
    "compute": {
        "image": {"repository": "r", "tag": "24.05"},
        "nodesets": [{"name": "debug", "enabled": True, "replicas": 1, "nodeGres": "gpu:1", "nodeFeatures": ["a"]}],
        "partitions": [{"name": "all", "nodesets": ["ALL"], "config": "State=UP"}],
    },
    "accounting": {"enabled": True, "external": {"enabled": False}},
    "mariadb": {"enabled": True},
    "restapi": {"replicas": 1},
}
NEWEST: dict[str, Any] = {
    "clusterName": None,
    "slurmKey": {"create": True},
    "configFiles": {"gres.conf": "AutoDetect=nvidia"},
    "controller": {"extraConfMap": {"SlurmctldDebug": "debug"}, "slurmctld": {"image": {"tag": "26.05"}}},
    "accounting": {"enabled": True, "storageConfig": {"host": "mariadb", "passwordKeyRef": {"name": "a", "key": "b"}}},
    "loginsets": {"slinky": {"enabled": True}},
    "partitions": {"all": {"nodesets": ["ALL"], "configMap": {"Default": "YES"}}},
    "nodesets": {
        "slinky": {
            "enabled": True,
            "replicas": 3,
            "slurmd": {"image": {"tag": "26.05"}, "resources": {"limits": {"nvidia.com/gpu": 1}}},
            "podSpec": {"nodeSelector": {"gpu": "true"}},
            "partition": {"enabled": True, "configMap": {"MaxTime": "UNLIMITED"}},
        }
    },
}


def refused(chart: Path, values: Mapping[str, Any]) -> dict[str, str]:
    """The lines of the refusal: new names by Slinky's."""
    with pytest.raises(RenderFailed, match="these are values of Slinky's chart") as refusal:
        render(chart, values)
    return dict(line.strip().split(": ", 1) for line in str(refusal.value).splitlines() if line.startswith("  "))


def test_values_of_0_1_to_0_3() -> None:
    lines = refused(SLURM_CHART, {**OLDEST, "login": {"enabled": True}, "slurm-exporter": {"enabled": True}})
    assert set(lines) == {
        *("jwt", "login", "mariadb", "slurm-exporter", "slurm.extraSlurmConf", "slurm.prologScripts"),
        *("compute.image", "compute.nodesets", "compute.partitions", "accounting.enabled", "accounting.external"),
        *("controller.image", "controller.persistence.size", "controller.persistence.storageClass"),
        "restapi.replicas",
    }
    assert lines["controller.persistence.storageClass"] == "cluster.controller.persistence.storageClassName"
    assert "nodeGres, nodeFeatures and nodeWeight are gres, features and weight" in lines["compute.nodesets"]


@pytest.mark.parametrize("more", [{}, {"slurmKeyRef": {"name": "a"}, "jwtHs256KeyRef": {"name": "b"}}, {"vendor": {}}])
def test_values_of_1_0_to_1_3(more: dict[str, Any]) -> None:
    lines = refused(SLURM_CHART, {**NEWEST, **more})
    assert set(lines) == {
        *("configFiles", "controller.extraConfMap", "controller.slurmctld.image", "loginsets", "partitions"),
        *("accounting.enabled", "accounting.storageConfig.host", "accounting.storageConfig.passwordKeyRef"),
        *("slurmKey.create", "nodesets.slinky.slurmd.image", "nodesets.slinky.slurmd.resources"),
        *("nodesets.slinky.podSpec", "nodesets.slinky.partition.configMap", *more),
    }
    assert lines["nodesets.slinky.slurmd.image"] == "image of this NodeSet, one text"
    assert lines["accounting.storageConfig.passwordKeyRef"] == "cluster.accounting.database.passwordRef"


def names(chart: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((chart / "files" / "slinky-values.yaml").read_text(encoding="utf-8"))
    return found


def samples(known: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each of Slinky's names alone: its path, and values that have nothing else."""
    for key, below in known.items():
        if key == WHOLE:
            continue
        name = "gpu" if key == ANY else key
        if isinstance(below, str) or WHOLE in below:
            yield name, {name: {}}
        if not isinstance(below, str):
            for path, value in samples(below):
                yield f"{name}.{path}", {name: value}


@pytest.mark.parametrize("chart", [SLURM_CHART, OPERATOR_CHART], ids=lambda chart: chart.name)
def test_each_key_alone_is_recognized(chart: Path) -> None:
    """What the schema lets pass, the template refuses: nothing is installed unchecked."""
    for path, values in samples(names(chart)):
        if "." not in path or path.startswith("nodesets"):
            assert path in refused(chart, values)


@pytest.mark.parametrize(
    "values", [{"operator": {"image": {"tag": "1.2"}, "namespaces": ["a"]}, "webhook": {"enabled": True}}]
)
def test_values_of_the_operators_chart(values: dict[str, Any]) -> None:
    lines = refused(OPERATOR_CHART, values)
    assert lines == {
        "operator.image.tag": "image.tag",
        "operator.namespaces": "watchNamespaces",
        "webhook": "nothing here, since this operator has no webhook; remove it",
    }


def words(known: Mapping[str, Any]) -> Iterator[str]:
    for below in known.values():
        if isinstance(below, str):
            yield below
        else:
            yield from words(below)


def test_the_new_names_exist() -> None:
    schema = json.loads((SLURM_CHART / "values.schema.json").read_text(encoding="utf-8"))
    found = {path for text in words(names(SLURM_CHART)) for path in re.findall(r"\bcluster(?:\.\w+)+", text)}
    assert len(found) > 40
    for path in found:
        at = schema["definitions"]["cluster"]
        for part in path.split(".")[1:]:
            if part in {"template", "spec"} and part in at["properties"]:
                break
            assert part in at["properties"], path
            at = at["properties"][part]
    table = {value.path for value in documented(OPERATOR_CHART / "values.yaml")}
    for text in words(names(OPERATOR_CHART)):
        if re.fullmatch(r"[a-zA-Z.]+", text):
            assert any(one == text or one.startswith(f"{text}.") for one in table), text

"""Values of Slinky's charts are refused by the charts of the same names, each key with its new name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.errors import RenderFailed
from hack.packaging.render import OPERATOR_CHART, SLURM_CHART, render
from hack.packaging.slinky_table import RELEASES, keys_of
from hack.packaging.values_schema import ANY, WHOLE
from hack.packaging.values_table import values as documented
from tests.support.documents import blocks

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
        *("jwt", "mariadb", "slurm-exporter", "slurm.extraSlurmConf", "slurm.prologScripts"),
        *("compute.image", "accounting.external.enabled", "login.enabled"),
        *(f"compute.nodesets[0].{key}" for key in ("name", "enabled", "replicas", "nodeGres", "nodeFeatures")),
        *(f"compute.partitions[0].{key}" for key in ("name", "nodesets", "config")),
        *("controller.image", "controller.persistence.size", "controller.persistence.storageClass"),
        "restapi.replicas",
    }
    assert lines["controller.persistence.storageClass"] == "cluster.controller.persistence.storageClassName"
    assert lines["compute.nodesets[0].name"] == "nodesets: a NodeSet by its name, not in a list"
    assert lines["compute.nodesets[0].nodeGres"] == "gres of the NodeSet"


@pytest.mark.parametrize("more", [{}, {"slurmKeyRef": {"name": "a"}, "jwtHs256KeyRef": {"name": "b"}}, {"vendor": {}}])
def test_values_of_1_0_to_1_3(more: dict[str, Any]) -> None:
    lines = refused(SLURM_CHART, {**NEWEST, **more})
    assert set(lines) == {
        *("configFiles", "controller.extraConfMap", "controller.slurmctld.image"),
        *("partitions.all.nodesets", "partitions.all.configMap"),
        *("accounting.storageConfig.host", "accounting.storageConfig.passwordKeyRef"),
        *("slurmKey.create", "nodesets.slinky.slurmd.image", "nodesets.slinky.slurmd.resources"),
        *("nodesets.slinky.podSpec", "nodesets.slinky.partition.configMap", *more),
    }
    assert lines["nodesets.slinky.slurmd.image"] == "image of the NodeSet, one text"
    assert lines["accounting.storageConfig.passwordKeyRef"] == "cluster.accounting.database.passwordRef"


def test_the_example_of_the_page() -> None:
    """What the page has of Slinky is refused with what it becomes there, and that renders."""
    theirs, ours = (
        yaml.safe_load(block.text)
        for block in blocks("docs/from-slinky.md")
        if block.heading == "Values of Slinky's charts" and block.language == "yaml"
    )
    assert "controller.slurmctld.image" in refused(SLURM_CHART, theirs)
    cluster, nodeset = [one for one in render(SLURM_CHART, ours) if one["kind"] in {"Cluster", "NodeSet"}]
    assert cluster["spec"] == ours["cluster"]
    assert {"clusterName": "slurm-operator", **ours["nodesets"]["gpu"]} == nodeset["spec"]


def names(chart: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((chart / "files" / "slinky-values.yaml").read_text(encoding="utf-8"))
    return found


def known_here(chart: Path, key: str) -> bool:
    """Whether the chart itself has a value of this name."""
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    at = schema["else"]
    for part in key.split("."):
        below = at.get("properties", {}).get(part, at.get("additionalProperties", {}))
        if below is False:
            return False
        at = schema["definitions"][below["$ref"].rpartition("/")[2]] if "$ref" in below else below
    return True


def values_of(keys: Sequence[str]) -> dict[str, Any]:
    """Values with all of these names."""
    made: dict[str, Any] = {}
    for key in keys:
        at = made
        *above, last = key.split(".")
        for part in above:
            name, brackets, _ = part.partition("[]")
            inner = at.setdefault(name, [{}] if brackets else {})
            at = inner[0] if brackets else inner
        at[last] = "x"
    return made


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chart", [SLURM_CHART, OPERATOR_CHART], ids=lambda chart: chart.name)
def test_each_value_of_a_release_has_its_new_name(chart: Path, release: str) -> None:
    keys = keys_of(chart.name, release)
    assert len(keys) > 20
    lines = refused(chart, values_of(keys))
    unnamed = set()
    for key in keys:
        path = key.replace("[]", "[0]")
        above = [path[: at.start()] for at in re.finditer(r"[.\[]", path)]
        if not any(one in lines for one in (path, *above)):
            unnamed.add(key)
    assert {key for key in unnamed if not known_here(chart, key)} == set()


def fields(*path: str) -> dict[str, Any]:
    """The fields of an object in the schema of the chart's values."""
    schema = json.loads((SLURM_CHART / "values.schema.json").read_text(encoding="utf-8"))
    at = schema["definitions"][path[0]]
    for part in path[1:]:
        at = at["items"] if part == "[]" else at["properties"][part]
    found: dict[str, Any] = at["properties"]
    return found


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("compute.nodesets[0].", ("nodeset",)),
        ("nodesetDefaults.", ("nodeset",)),
        ("nodesets.slinky.", ("nodeset",)),
        ("loginsetDefaults.", ("loginset",)),
        ("loginsets.slinky.", ("loginset",)),
        ("compute.partitions[0].", ("cluster", "partitions", "[]")),
    ],
)
def test_what_keeps_its_name_is_there(place: str, kind: tuple[str, ...]) -> None:
    known = fields(*kind)
    for release in RELEASES:
        keys = keys_of(SLURM_CHART.name, release)
        lines = refused(SLURM_CHART, values_of(keys))
        for path in (key.replace("[]", "[0]") for key in keys):
            name = path.removeprefix(place).split(".")[0]
            text = next((line for at, line in lines.items() if path == at or path.startswith(f"{at}.")), "the same")
            if path.startswith(place) and text.startswith("the same"):
                assert name in known, path


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
    ("place", "kind"),
    [
        (("nodesets", ANY), "nodeset"),
        (("nodesetDefaults",), "nodeset"),
        (("loginsets", ANY), "loginset"),
        (("loginsetDefaults",), "loginset"),
        (("partitions", ANY), "partition"),
        (("tokens", ANY), "token"),
        (("accounting",), "accounting"),
    ],
)
def test_no_field_of_a_kind_is_taken_for_one_of_slinkys(place: tuple[str, ...], kind: str) -> None:
    """Where both have a field of one name, only what is in Slinky's tells them apart."""
    known: Any = names(SLURM_CHART)
    for part in place:
        known = known.get(part, {})
    assert [name for name in fields(kind) if isinstance(known.get(name), str) or WHOLE in known.get(name, ())] == []


@pytest.mark.parametrize("ssh", [{}, {"port": 2222, "authorizedKeysRef": {"name": "keys"}}])
def test_ssh_to_nodes_is_no_value_of_slinkys_unless_it_has_its_names(ssh: dict[str, Any]) -> None:
    ours = {"confinement": "Constrain", "ssh": ssh}
    (nodeset,) = [one for one in render(SLURM_CHART, {"nodesets": {"gpu": ours}}) if one["kind"] == "NodeSet"]
    assert nodeset["spec"]["ssh"] == ssh
    lines = refused(SLURM_CHART, {"nodesets": {"gpu": {**ours, "ssh": {"enabled": True}}}})
    assert lines.keys() == {"nodesets.gpu.ssh.enabled"}


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

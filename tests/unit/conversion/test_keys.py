"""Each key of Slinky's values files, of each release, is reported once, and as the chart's refusal names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hack.packaging.slinky_table import KEYS, PAGE, RELEASES, TABLES, keys_of, row, with_tables
from slinky_operator.conversion import values
from slinky_operator.conversion.report import Fate
from slinky_operator.conversion.walk import UNKNOWN
from tests.unit.conversion.completeness import assert_each_key_is_told_once, told

ROOT: Final = Path(__file__).parents[3]
CHARTS: Final = ("slurm", "slurm-operator")

LISTS: Final = (
    *("imagePullSecrets", "tolerations", "accessModes", "volumeClaimTemplates", "args", "env", "volumeMounts"),
    *("extraVolumes", "extraVolumeMounts", "endpoints", "extraObjects", "a3mega", "a3ultra", "nodeFeatures"),
    *("topologySpreadConstraints", "propagatedNodeConditions", "volumes"),
)
FLAGS: Final = (
    *("enabled", "create", "external", "pinToNode", "oversubscribeNode", "workloadDisruptionProtection", "paused"),
    *("useResourceLimits", "taintKubeNodes", "localOperator", "asciiArt", "inplaceReconfigure"),
)
NUMBERS: Final = (
    *("replicas", "port", "servicePort", "serviceNodePort", "ordinalPadding", "nodeWeight", "minReadySeconds"),
    *("partition", "healthPort", "metricsPort", "timeoutSeconds", "backups", "minAvailable", "priority"),
)
MAPS: Final = (
    *("affinity", "nodeSelector", "resources", "podSpec", "labels", "annotations", "configFiles", "extraSlurmConf"),
    *("extraConfMap", "extraSlurmdbdConf", "nodeConfig", "configMap", "mariadb", "slurm-exporter", "authcred"),
    *("service", "spec", "serviceAccount", "securityContext", "podSecurityContext", "strategy", "scheduledUpdate"),
)


def sample(key: str) -> Any:  # noqa: PLR0911 one for each type
    """A value of the type that Slinky's charts read."""
    last = key.rpartition(".")[2]
    if last in {"nodesets", "nodeSets"}:
        return ["ALL"]
    if last in {"secretRef", "configMapRef", "passwordKeyRef", "slurmKeyRef", "jwtHs256KeyRef"}:
        return {"name": "a", "key": "b"}
    if last.endswith("ScriptRefs"):
        return [{"name": "a"}]
    if last in LISTS:
        return [{"name": "a"}]
    if last == "metadata":
        return {"labels": {"a": "b"}}
    if last in FLAGS:
        return True
    if last in NUMBERS or last.endswith("Workers"):
        return 3
    if last.endswith("Scripts") or last in MAPS:
        return {"a": "b"}
    return "INFO" if last == "logLevel" else "a"


def values_of(keys: list[str]) -> dict[str, Any]:
    """Values with all of these names; the longer ones win over those that have them."""
    made: dict[str, Any] = {}
    for key in sorted(keys, key=len, reverse=True):
        at = made
        *above, last = key.split(".")
        for part in above:
            name, brackets, _ = part.partition("[]")
            inner = at.setdefault(name, [{"name": "a"}] if brackets else {})
            at = inner[0] if brackets else inner
        at.setdefault(last, sample(key))
    return made


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chart", CHARTS)
def test_each_key_of_a_release_is_in_exactly_one_list(chart: str, release: str) -> None:
    keys = keys_of(chart, release)
    given = values_of(keys)
    _, report = values.convert(given, chart, "values.yaml")
    assert_each_key_is_told_once(given, report)
    for key in keys:
        assert any(entry.key.replace("[0]", "[]").startswith(key) for entry in report.entries) or told(
            key.replace("[]", "[0]"), report
        ), key
    assert [entry.key for entry in report.entries if entry.why == UNKNOWN] == []


@pytest.mark.parametrize("chart", CHARTS)
def test_a_key_that_no_release_has_is_lost(chart: str) -> None:
    given = {
        "imagePullSecrets": [],
        "nonsense": {"a": 1},
        ("nodesets" if chart == "slurm" else "operator"): {"x": {"typo": 1}},
    }
    _, report = values.convert(given, chart, "values.yaml")
    lost = {entry.key: entry.why for entry in report.of(Fate.LOST)}
    assert lost["nonsense"] == UNKNOWN
    assert len(lost) == 2
    assert not report.lossless


def refusals(known: Any, key: str) -> str:
    """What the chart's refusal says of a key: `_` of a whole map, `*` of any name."""
    text = ""
    for part in re.split(r"\.|(?=\[\])", key):
        if not isinstance(known, dict):
            break
        text = known.get("_", text)
        known = known.get("*" if part == "[]" else part, known.get("*", ""))
    if isinstance(known, dict):
        return str(known.get("_", text))
    return known or text


@pytest.mark.parametrize(("chart", "table"), TABLES.items(), ids=CHARTS)
def test_the_chart_refuses_a_key_with_the_name_that_the_table_has(chart: str, table: Any) -> None:
    """One source: what goes to `cluster.…` here is named so there, and what goes nowhere here has no new name there."""
    names = yaml.safe_load((ROOT / "helm" / chart / "files" / "slinky-values.yaml").read_text(encoding="utf-8"))
    compared = 0
    for key in {key for keys in KEYS[chart].values() for key in keys}:
        found, said = row(table, key), refusals(names, key)
        if found is None or not found[1].to or not said:
            continue
        rule = found[1]
        scope, _, path = rule.to.partition(".")
        if scope == "cluster" and (named := re.findall(r"\bcluster(?:\.\w+)+", said)):
            ours = rule.to.replace("container", "template.spec.containers")
            assert any(ours.startswith(one) or one.startswith(ours) for one in named), (key, rule.to, said)
            compared += 1
        elif scope == "chart" and re.fullmatch(r"[a-zA-Z.]+", said):
            assert path.startswith(said) or said.startswith(path), (key, rule.to, said)
            compared += 1
        elif scope in {"nodeset", "login", "partition"}:
            first = path.split(".")[0].replace("container", "template") or "extraConf"
            words = said.replace("container", "template")
            same = f"{first}" in words or "same name" in words or key.split(".")[-1] == first
            assert same or first == "extraConf", (key, rule.to, said)
            compared += 1
    assert compared > (80 if chart == "slurm" else 15)


def test_what_the_chart_says_has_no_counterpart_goes_nowhere() -> None:
    for chart, table in TABLES.items():
        names = yaml.safe_load((ROOT / "helm" / chart / "files" / "slinky-values.yaml").read_text(encoding="utf-8"))
        for key in {key for keys in KEYS[chart].values() for key in keys}:
            said, found = refusals(names, key), row(table, key)
            if found is not None and said.startswith("nothing here; remove it"):
                assert not found[1].to, (key, found[1].to)


def test_the_page_has_each_key_with_what_becomes_of_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "python -m hack.packaging write"
    rows = dict(re.findall(r"^\| `([^`]+)` \| [0-9. to]+ \| (.+) \|$", page, re.MULTILINE))
    for chart in CHARTS:
        for key in keys_of(chart, "1.3") + keys_of(chart, "0.1"):
            named = key.replace(".slinky", ".NAME")
            assert any(f"{named}.".startswith(f"{one}.") or one.startswith(f"{named}.") for one in rows), key
    assert rows["controller.slurmctld.image"] == "`cluster.controller.image`"
    assert rows["webhook"] == "not needed: this operator has no webhook"

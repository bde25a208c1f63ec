"""The committed CRDs: generated, small, and consistent with what they refer to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from slinky_api.crd.__main__ import generated, main
from slinky_api.crd.definition import definition, to_yaml
from slinky_api.v1alpha1 import CLUSTER, KINDS, NODESET, Cluster, NodeSet

ROOT = Path(__file__).parents[3]
CRDS = sorted((ROOT / "config" / "crd").glob("slinky*.yaml"))
GENERATED = generated()

# Field tables of the three releases of Slinky that had these kinds.
CLUSTER_FIELDS = ["spec.server", "spec.token.secretRef", "status.isReady", "status.conditions"]
NODESET_SPEC = [
    "clusterName",
    "replicas",
    "selector",
    "serviceName",
    "template",
    "volumeClaimTemplates",
    "updateStrategy.type",
    "updateStrategy.rollingUpdate.maxUnavailable",
    "updateStrategy.rollingUpdate.partition",
    "updateStrategy.rollingUpdate.paused",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy.whenDeleted",
    "persistentVolumeClaimRetentionPolicy.whenScaled",
    "minReadySeconds",
]
NODESET_STATUS_0_1 = (
    "desiredNumberScheduled currentNumberScheduled numberMisscheduled numberReady updatedNumberScheduled"
    " numberAvailable numberUnavailable numberIdle numberAllocated numberDown numberDrain observedGeneration"
    " nodeSetHash collisionCount conditions selector"
)
NODESET_STATUS_0_3 = (
    "replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas slurmIdle slurmAllocated slurmDown"
    " slurmDrain observedGeneration nodeSetHash collisionCount conditions selector"
)


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.strip(".").split("."):
        schema = schema["properties"][name]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword], f"{path}.{keyword}")


@pytest.fixture(params=CRDS, ids=lambda path: path.stem)
def crd(request: pytest.FixtureRequest) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(request.param.read_text())
    return loaded


def test_there_is_one_for_each_kind() -> None:
    assert {path.name for path in CRDS} == {f"{kind.group}_{kind.plural}.yaml" for kind, _ in KINDS}


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_committed_is_what_is_generated(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[name], "run: python -m slinky_api.crd write"


def test_check_tells_a_difference_and_write_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--root", str(tmp_path)]
    assert main(["write", *arguments]) == 0
    assert main(["check", *arguments]) == 0
    assert capsys.readouterr().out == ""

    changed = tmp_path / "config/crd/slinky.slurm.net_nodesets.yaml"
    changed.write_text(changed.read_text().replace("maximum: 65536", "maximum: 65537"))
    (tmp_path / "docs/api-reference.md").unlink()
    assert main(["check", *arguments]) == 1
    out = capsys.readouterr().out
    assert "-                maximum: 65537\n" in out
    assert "+# API reference\n" in out

    assert main(["write", *arguments]) == 0
    assert main(["check", *arguments]) == 0


def test_generating_twice_gives_the_same() -> None:
    assert generated() == GENERATED


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_each_fits_into_the_annotation_of_a_client_side_apply(path: Path) -> None:
    assert path.stat().st_size < 200_000


def test_yaml_has_no_anchors() -> None:
    assert "&id" not in to_yaml(definition(CLUSTER, Cluster)) + to_yaml(definition(NODESET, NodeSet))


def test_every_node_has_a_type_or_says_why_not(crd: dict[str, Any]) -> None:
    untyped = {
        path
        for path, node in nodes(schema_of(crd))
        if "type" not in node and not node.get("x-kubernetes-int-or-string")
    }
    assert untyped <= {".spec.token.secretRef"}
    assert all("$ref" not in node and "title" not in node for _, node in nodes(schema_of(crd)) if "type" in node)


def test_every_field_of_ours_is_described(crd: dict[str, Any]) -> None:
    bare = [
        path
        for path, node in nodes(schema_of(crd))
        if not path.endswith((".items", ".additionalProperties")) and "description" not in node
    ]
    assert [path for path in bare if "template.metadata" not in path and not path.endswith("template.spec")] == [
        ".metadata",
        ".metadata.name",
    ]


def test_no_default_rewrites_a_stored_object(crd: dict[str, Any]) -> None:
    # One adds an empty spec, so that rules need not ask for it; the other is what the scale subresource reads.
    assert [(path, node["default"]) for path, node in nodes(schema_of(crd)) if "default" in node] in (
        [],
        [(".spec", {})],
        [(".spec.replicas", 1)],
    )


def test_text_that_rules_look_at_is_bounded(crd: dict[str, Any]) -> None:
    unbounded = [
        path
        for path, node in nodes(schema_of(crd))
        if node.get("type") == "string" and "x-kubernetes-validations" in node and "maxLength" not in node
    ]
    assert unbounded == []


def test_columns_and_the_scale_subresource_point_at_fields(crd: dict[str, Any]) -> None:
    version = crd["spec"]["versions"][0]
    paths = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
    scale = version["subresources"].get("scale", {})
    for path in [*paths, *scale.values()]:
        if not path.startswith(".metadata"):
            at(schema_of(crd), path.split("[")[0])


def test_every_field_of_slinky_is_there() -> None:
    cluster, nodeset = schema_of(definition(CLUSTER, Cluster)), schema_of(definition(NODESET, NodeSet))
    for path in CLUSTER_FIELDS:
        at(cluster, path)
    for path in NODESET_SPEC:
        at(nodeset, f"spec.{path}")
    for path in f"{NODESET_STATUS_0_1} {NODESET_STATUS_0_3}".split():
        at(nodeset, f"status.{path}")


def test_pod_fragments_keep_unknown_fields() -> None:
    spec = schema_of(definition(NODESET, NodeSet))["properties"]["spec"]
    for path in ("template", "template.metadata", "template.spec", "resources"):
        assert at(spec, path)["x-kubernetes-preserve-unknown-fields"]
    assert at(spec, "volumeClaimTemplates")["items"]["x-kubernetes-preserve-unknown-fields"]

"""Labels and extended resources of Nodes on a real API server: one patch of the status, and a watched ConfigMap."""

from __future__ import annotations

import asyncio

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, NODES
from tests.integration.node_labels.conftest import PREFIX, Site


def text(site: Site, **counts: int) -> str:
    """One Node with a label, and with resources."""
    return f"{site.nodes[0]}:\n  labels: {{rack: r1}}\n  resources: {counts}\n"


SLURM = {"workload-manager": "slurm"}


async def test_labels_and_resources_come_and_go_with_the_config_map(site: Site) -> None:
    await site.config_map(text(site, gpu=4, licence=1000))
    await site.until({"rack": "r1", **SLURM}, {"gpu": "4", "licence": "1k"})
    obj = await site.node()
    assert obj["metadata"]["labels"]["zone"] == "here"
    assert labels.ANNOTATION_NODE_RECORD in obj["metadata"]["annotations"]

    await site.config_map(text(site, gpu=8))
    await site.until({"rack": "r1", **SLURM}, {"gpu": "8"})
    assert await site.has(1) == ({}, {})

    await site.config_map(f"{site.nodes[1]}: {{}}")
    await site.until({}, {})
    await site.until(SLURM, {}, 1)
    assert labels.ANNOTATION_NODE_RECORD not in (await site.node())["metadata"].get("annotations", {})

    _ = await site.kube.delete(CONFIGMAPS, "slurm-config", site.namespace, uid=None)
    await site.until({}, {}, 1)
    assert site.told == []


async def test_a_bad_config_map_changes_nothing_and_is_told_with_field_and_reason(site: Site) -> None:
    await site.config_map(text(site, gpu=4))
    await site.until({"rack": "r1", **SLURM}, {"gpu": "4"})
    await site.config_map(f"{site.nodes[0]}:\n  resources: {{gpu: many}}\n")
    where, reason, message = await site.until_told(lambda told: told[1] == "NodeLabelsInvalid")
    assert where == "ConfigMap slurm-config"
    assert f"data.config: {site.nodes[0]}.resources.gpu (line 2): is not a count" in message
    assert reason == "NodeLabelsInvalid"
    assert await site.has() == ({"rack": "r1", **SLURM}, {"gpu": "4"})

    await site.config_map(text(site, gpu=2))
    await site.until({"rack": "r1", **SLURM}, {"gpu": "2"})
    assert len(site.told) == 1


async def test_what_a_person_has_written_stays_and_is_told(site: Site) -> None:
    theirs = {"metadata": {"labels": {f"{PREFIX}rack": "theirs", f"{PREFIX}note": "theirs"}}}
    _ = await site.kube.merge_patch(NODES, site.nodes[0], theirs)
    await site.config_map(text(site, gpu=4))
    await site.until({"rack": "theirs", "note": "theirs", **SLURM}, {"gpu": "4"})
    _, reason, message = await site.until_told(lambda told: told[0] == f"Node {site.nodes[0]}")
    assert reason == "NodeLabelsKept"
    assert f"label {PREFIX}rack" in message
    _ = await site.kube.delete(CONFIGMAPS, "slurm-config", site.namespace, uid=None)
    await site.until({"rack": "theirs", "note": "theirs"}, {})


async def test_resources_that_a_kubelet_has_reset_and_a_node_that_is_made_again_are_written_again(site: Site) -> None:
    await site.config_map(text(site, gpu=4))
    wanted = {"rack": "r1", **SLURM}, {"gpu": "4"}
    await site.until(*wanted)
    reset = {"capacity": {f"{PREFIX}gpu": "0"}}
    _ = await site.kube.patch_status(NODES, site.nodes[0], reset)
    await site.until(*wanted)
    _ = await site.kube.delete(NODES, site.nodes[0], uid=None)
    _ = await site.kube.create(NODES, {"metadata": {"name": site.nodes[0]}})
    await site.until(*wanted)


async def test_a_label_that_somebody_writes_right_before_the_operator_is_seen_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = site.kube.merge_patch
    first = asyncio.Event()

    async def overtaken(*arguments: object, **options: object) -> Object:
        if not first.is_set() and options.get("subresource") == "status":
            first.set()
            _ = await send(NODES, site.nodes[0], {"metadata": {"labels": {f"{PREFIX}rack": "theirs"}}})
            with pytest.raises(errors.Conflict):
                _ = await send(*arguments, **options)  # type: ignore[arg-type]
        return await send(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(site.kube, "merge_patch", overtaken)
    await site.config_map(text(site))
    await site.until({"rack": "theirs", **SLURM}, {})

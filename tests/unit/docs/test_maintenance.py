"""What maintenance.md shows is what the operator makes of the windows on that page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import yaml

from hack.localkube.paths import PROJECT
from slinky_operator.cluster.parts.maintenance.windows import announced
from slinky_operator.kube.resources import CLUSTERS
from tests.support.documents import blocks
from tests.unit.cluster.parts.maintenance.worlds import NODES, node, world
from tests.unit.cluster.world import World, node_set_object

PAGE = "docs/maintenance.md"
WHILE_ON = datetime.fromisoformat("2026-12-01T08:00:00+00:00")


def windows() -> list[dict[str, Any]]:
    """The windows of the first block."""
    (found,) = [block for block in blocks(PAGE) if block.language == "yaml"]
    listed: list[dict[str, Any]] = yaml.safe_load(found.text)["spec"]["maintenance"]["windows"]
    # The API server gets times as they are written.
    return [one | {"start": one["start"].isoformat()} if "start" in one else one for one in listed]


def shown() -> dict[str, str]:
    """What the page shows of `kubectl get`, by column."""
    (found,) = [block for block in blocks(PAGE) if block.language == "console"]
    command, heads, values = found.text.splitlines()
    assert command == f"$ kubectl get {CLUSTERS.kind.lower()} slurm"
    starts = [heads.index(word) for word in heads.split()]
    return {
        word: values[start:end].strip()
        for word, start, end in zip(heads.split(), starts, [*starts[1:], None], strict=True)
    }


def site(now: datetime) -> World:
    found = world(*windows(), now=now, nodes=(*NODES, node("c-0", "compute")))
    # It has not been updated yet: the window is not released early.
    found.add(node_set_object("compute"))
    found.settle()
    return found


def test_the_status_of_the_page_is_that_of_its_windows() -> None:
    one = site(WHILE_ON)
    summary = shown()["STATUS"]
    assert one.raw["status"]["summary"] == summary
    assert one.condition("InMaintenance")["status"] == "True"
    # Until, and not including, the end that it names.
    end = datetime.fromisoformat(summary.rpartition(" ")[2])
    one.wall = end - timedelta(seconds=1)
    one.settle()
    assert one.raw["status"]["summary"] == summary
    one.wall = end
    one.settle()
    assert one.raw["status"]["summary"] != summary


def test_the_columns_of_the_page_are_those_of_the_kind() -> None:
    crd = yaml.safe_load((PROJECT / "config/crd/slinky.slurm.net_clusters.yaml").read_text())
    (version,) = [one for one in crd["spec"]["versions"] if one["name"] == "v1alpha1"]
    columns = [one["name"].upper() for one in version["additionalPrinterColumns"] if not one.get("priority")]
    assert list(shown()) == ["NAME", *columns]


def test_each_window_is_reserved_from_when_the_page_says() -> None:
    """The default is a week; of `power` ten days."""
    cluster = site(WHILE_ON).snapshot().cluster
    (weekly, power), hour = cluster.spec.maintenance.windows, timedelta(hours=1)

    def reserved(now: datetime) -> set[str]:
        return {window.name for window, _ in announced(cluster, now)}

    start = datetime.fromisoformat("2026-12-01T05:00:00+00:00")
    before = start - timedelta(days=7)
    assert weekly.name in reserved(before) & reserved(before - hour)
    assert {period.start for _, period in announced(cluster, before)} >= {start}
    assert start not in {period.start for _, period in announced(cluster, before - hour)}
    assert power.start is not None
    assert power.name in reserved(power.start - timedelta(days=10))
    assert power.name not in reserved(power.start - timedelta(days=10) - hour)

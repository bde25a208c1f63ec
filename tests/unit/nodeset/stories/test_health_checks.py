"""Health checks through the whole controller: one node tries them, then all run them, and the budget holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.slurm.health_checks import reports, tables
from slurm_client.models import Node
from tests.unit.nodeset.health.checked import own
from tests.unit.nodeset.simulation import settling
from tests.unit.nodeset.simulation.doors import KubeDoor
from tests.unit.nodeset.simulation.harness import OWN_KEY, Run
from tests.unit.nodeset.simulation.objects import clone
from tests.unit.nodeset.simulation.world import World

DISK, CHANGED = own("disk"), own("disk", "exit 1")


class Site:
    """The simulated world with comments of nodes, and a ConfigMap for checks."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self.world, self.comments = world, dict[str, str]()
        self.map: dict[str, Any] | None = None
        real_show, real_create, real_get, real_patch = World.show, KubeDoor.create, KubeDoor.get, KubeDoor.merge_patch
        prefix = "nodeset-checks-"

        def show(one: World, record: Any) -> Node:
            return replace(real_show(one, record), comment=self.comments.get(record.name, ""))

        async def create(door: KubeDoor, resource: Any, body: Any, namespace: Any = None) -> Any:
            if not body["metadata"]["name"].startswith(prefix):
                return await real_create(door, resource, body, namespace)
            assert self.map is None
            about = {**body["metadata"], "uid": "cm", "resourceVersion": "1"}
            self.map = {**body, "metadata": about}
            return self.map

        async def get(door: KubeDoor, resource: Any, name: str, namespace: Any = None) -> Any:
            if not name.startswith(prefix):
                return await real_get(door, resource, name, namespace)
            if self.map is None:
                raise errors.NotFound(Target("get", "configmaps", namespace, name), "not found")
            return self.map

        async def merge(
            door: KubeDoor, resource: Any, name: str, body: Any, namespace: Any = None, **given: Any
        ) -> Any:
            if not name.startswith(prefix):
                return await real_patch(door, resource, name, body, namespace, **given)
            assert self.map is not None
            data = {**self.map["data"], **body["data"]}
            self.map = {**self.map, "data": {key: text for key, text in data.items() if text is not None}}
            return self.map

        patch.setattr(World, "show", show)
        patch.setattr(KubeDoor, "create", create)
        patch.setattr(KubeDoor, "get", get)
        patch.setattr(KubeDoor, "merge_patch", merge)
        self.run = Run(world)

    def apply(self, *checks: dict[str, Any], **health: Any) -> None:
        """Change the spec, as the caches see it at once."""
        assert self.world.nodeset is not None
        self.world.nodeset["spec"]["health"] = {"checks": list(checks), "clearSeconds": 0, **health}
        self.world.nodeset["metadata"]["resourceVersion"] += "0"
        self.run.nodesets.put(clone(self.world.nodeset))

    def says(self, node: str, check: dict[str, Any], *results: str) -> None:
        """A node reports."""
        table, _ = tables.table([Check.model_validate(check)])
        since = int(self.world.now.timestamp()) - 1000
        self.comments[node] = "|".join((f"{reports.PREFIX}{table.revision} {since}", *results))
        self.world.do_poll(0)

    async def settle(self) -> None:
        """Let the controller come until it has nothing to do; what it writes is seen at once."""
        for _ in range(25):
            await self.run.controller.reconcile(OWN_KEY)
            # The world knows rules for Nodes only.
            self.world.violations[:] = [one for one in self.world.violations if "although no rule says so" not in one]
            await self.run.history([("kubelet_ends", 0), ("come_up", 0), ("see_all", 0), ("poll", 0), ("time", 1)])

    @property
    def stored(self) -> StoredChecks:
        """The ConfigMap."""
        assert self.map is not None
        return check_tables.read(self.map)

    def drained(self) -> dict[str, str]:
        """Reasons of drained nodes."""
        return {name: record.reason for name, record in self.world.records.items() if record.drain}

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        assert self.world.nodeset is not None
        conditions = self.world.nodeset["status"]["conditions"]
        return next(((one["status"], one["reason"]) for one in conditions if one["type"] == kind), ("", ""))


async def test_a_check_is_tried_on_one_node_and_one_that_fails_everywhere_drains_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(await settling.begin(keeps_instance=False), monkeypatch)
    site.apply(DISK, maxUnhealthy=1)
    await site.settle()
    nodes = [pod["spec"]["hostname"] for pod in site.world.pods.values() if site.world.is_ours(pod)]
    first = site.stored.node
    assert first in nodes
    assert site.stored.approved.lines == {}
    assert site.condition("HealthChecksRun") == ("False", "ChecksOnTrial")

    site.says(first, DISK)
    await site.settle()
    assert list(site.stored.approved.lines) == ["disk"]
    assert site.stored.trial is None
    assert site.condition("HealthChecksRun") == ("True", "AsExpected")

    for node in nodes:
        site.says(node, DISK, "disk failed full")
    await site.settle()
    assert list(site.drained().values()) == ["slurm-operator: health (ns/a): check disk: full"]
    assert site.condition("HealthBudgetReached") == ("True", "HealthBudgetReached")

    # A controller that starts reads who runs what.
    site.run.restart()
    for node in nodes:
        site.says(node, DISK)
    await site.settle()
    assert site.drained() == {}

    pods = {pod["metadata"]["uid"] for pod in site.world.pods.values()}
    site.apply(CHANGED, maxUnhealthy=1)
    await site.settle()
    tried = site.stored.node
    assert site.stored.approved.lines == tables.table([Check.model_validate(DISK)])[0].lines
    site.says(tried, CHANGED, "disk failed wrong everywhere")
    await site.settle()
    assert site.condition("HealthChecksRun") == ("False", "CheckFailedOnTrial")
    assert site.drained() == {}
    assert {pod["metadata"]["uid"] for pod in site.world.pods.values()} == pods
    assert site.world.violations == []

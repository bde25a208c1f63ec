"""Health checks through the whole controller: one node tries them, then all run them, and the budget holds."""

from __future__ import annotations

from typing import Any

from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.slurm.health_checks import reports, tables
from tests.unit.nodeset.health.checked import own
from tests.unit.nodeset.simulation import settling
from tests.unit.nodeset.simulation.harness import Run
from tests.unit.nodeset.simulation.objects import clone
from tests.unit.nodeset.simulation.world import World

DISK, CHANGED = own("disk"), own("disk", "exit 1")


class Site:
    """The simulated world, with reports of nodes as a test wants them."""

    def __init__(self, world: World) -> None:
        self.world = world
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
        self.world.records[node].comment = "|".join((f"{reports.PREFIX}{table.revision} {since}", *results))
        self.world.do_poll(0)

    async def settle(self) -> None:
        """Let the controller come until it has nothing to do; what it writes is seen at once."""
        for _ in range(25):
            await self.run.one_pass()
            await self.run.history([("kubelet_ends", 0), ("come_up", 0), ("see_all", 0), ("poll", 0), ("time", 1)])

    @property
    def stored(self) -> StoredChecks:
        """The ConfigMap."""
        assert self.world.checks is not None
        return check_tables.read(self.world.checks)

    def drained(self) -> dict[str, str]:
        """Reasons of drained nodes."""
        return {name: record.reason for name, record in self.world.records.items() if record.drain}

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        assert self.world.nodeset is not None
        conditions = self.world.nodeset["status"]["conditions"]
        return next(((one["status"], one["reason"]) for one in conditions if one["type"] == kind), ("", ""))


async def test_a_check_is_tried_on_one_node_and_one_that_fails_everywhere_drains_the_budget() -> None:
    site = Site(await settling.begin(keeps_instance=False))
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

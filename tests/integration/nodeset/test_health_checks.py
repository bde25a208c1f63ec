"""Health checks on a real API server: one node tries them, all run them then, and the budget holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.checks import Check
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.slurm.health_checks import reports, tables
from slurm_client.testing import FakeSlurmrestd
from tests.integration.nodeset.conftest import Site, reason, site_over
from tests.integration.nodeset.machines import Machines
from tests.support.control_plane import ControlPlane

DISK: dict[str, Any] = {"name": "disk", "script": "#!/bin/sh\nexit 0\n"}
CHANGED: dict[str, Any] = {"name": "disk", "script": "#!/bin/sh\nexit 1\n"}
NODES = ("a-0", "a-1", "a-2")


@pytest.fixture
async def site(control_plane: ControlPlane, crds: None) -> AsyncIterator[Site]:
    """A site whose Cluster the operator runs: others have no checks."""
    async with FakeSlurmrestd() as slurm, site_over(control_plane, slurm, spec={}) as made:
        yield made


async def stored(site: Site) -> StoredChecks:
    """The ConfigMap, which pods mount."""
    name = check_tables.name(NodeSet.parse(await site.nodeset()))
    return check_tables.read(await site.kube.get(CONFIGMAPS, name, site.namespace))


def says(site: Site, node: str, check: dict[str, Any], *results: str) -> None:
    """A node has run a check, and reports what has not passed."""
    table, _ = tables.table([Check.model_validate(check)])
    site.slurm.update_node(node, comment="|".join((f"{reports.PREFIX}{table.revision} 1", *results)))


async def is_told(site: Site, kind: str, *words: str) -> bool:
    found = await site.condition(kind)
    return all(word in f"{found.get('status')} {found.get('reason')}: {found.get('message')}" for word in words)


async def test_a_check_that_fails_everywhere_is_stopped_by_its_trial_or_by_the_budget(
    site: Site, machines: Machines
) -> None:
    async def trying() -> str:
        """The node that tries a table: at first the one that was ready first."""
        found = await stored(site)
        return found.node if found.trial is not None else ""

    def drained() -> list[str]:
        return [node for node in NODES if reason(site, node)]

    await site.apply(3, health={"checks": [DISK], "maxUnhealthy": 1, "clearSeconds": 0})
    await site.until(lambda: site.ready(3), "three nodes are ready")
    await site.until(trying, "one node tries the check")
    says(site, await trying(), DISK)
    await site.until(lambda: is_told(site, "HealthChecksRun", "True"), "all nodes run it")

    # It was well in its trial, and is wrong everywhere now: also for an operator that has just started.
    await site.crash()
    for node in NODES:
        says(site, node, DISK, "disk failed full")
    await site.start()
    await site.until(
        lambda: is_told(site, "HealthBudgetReached", "True", "2 nodes are not drained"), "the budget holds"
    )
    assert [reason(site, node) for node in drained()] == [
        f"slurm-operator: health ({site.namespace}/a): check disk: full"
    ]
    for node in NODES:
        says(site, node, DISK)
    await site.until(lambda: not drained(), "it is well again")

    before = {pod["metadata"]["uid"] for pod in (await site.kube.list(PODS, site.namespace)).items}
    await site.apply(3, health={"checks": [CHANGED], "maxUnhealthy": 1, "clearSeconds": 0})
    await site.until(trying, "one node tries the changed check")
    node = await trying()
    says(site, node, CHANGED, "disk failed wrong everywhere")
    await site.until(
        lambda: is_told(site, "HealthChecksRun", "CheckFailedOnTrial", f"on {node}"), "the NodeSet says so"
    )
    assert (await stored(site)).approved.lines == tables.table([Check.model_validate(DISK)])[0].lines
    assert drained() == []
    assert {pod["metadata"]["uid"] for pod in (await site.kube.list(PODS, site.namespace)).items} == before

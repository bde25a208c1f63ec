"""Many pods at once: the number of requests to Slurm does not grow with them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines

MANY = 60
"""More than are asked for one by one, anywhere."""


@pytest.mark.timeout(300)
async def test_many_go_with_few_calls(site: Site, machines: Machines) -> None:
    # Records are settled together once all pods are gone, or late: those of a busy machine have their time.
    await site.apply(MANY, template={"spec": {"terminationGracePeriodSeconds": 300}})
    await site.until(lambda: site.ready(MANY), "all are ready", 120)
    site.slurm.requests.clear()
    site.requests.clear()

    await site.scale(0)
    await site.until(lambda: not site.slurm.nodes, "all records are gone", 120)

    asked = [call for call in site.slurm.requests if "update_time" not in call.query]
    assert len(asked) < 20, Counter(call.operation for call in asked)
    writes = Counter(call.method for call in asked if call.method != "GET")
    assert writes["POST"] <= 2
    assert writes["DELETE"] <= 2
    lists = [verb for verb, resource, _ in site.requests if (verb, resource) == ("list", "pods")]
    assert len(lists) <= 2, "pods are listed before records are deleted, and not for each"

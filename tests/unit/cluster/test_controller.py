"""Where the Cluster controller runs its rules."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster import controller
from slinky_operator.runtime.controller import Result
from slurm_client.models import Node
from tests.unit.cluster.stories.site import KEY, Site

LONG = "# a comment of a user\n" * 2000


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kinds of objects whose rules have run in a thread."""
    found: list[str] = []

    async def run_in_thread(key: tuple[str, str, str], rules: Any, *arguments: Any) -> Any:
        found.append(key[1])
        return rules(*arguments)

    monkeypatch.setattr(controller, "run_in_thread", run_in_thread)
    # Otherwise nothing that takes next to no time would rest.
    monkeypatch.setattr(controller, "rest_after", lambda seconds: 9.0 if seconds else 0.0)
    return found


async def passed(site: Site, nodes: int) -> Result:
    """A pass over a Cluster that is up, whose Slurm has so many nodes."""
    await site.runs()
    (connection,) = site.connections.entries.values()
    connection.nodes = {f"a-{number}": Node(name=f"a-{number}") for number in range(nodes)}
    return await site.operator.reconcile(KEY)


@pytest.mark.parametrize(("nodes", "threads"), [(controller.MANY_NODES, []), (controller.MANY_NODES + 1, ["Cluster"])])
async def test_thousands_of_nodes_are_counted_in_a_thread_and_their_changes_gathered(
    in_threads: list[str], nodes: int, threads: list[str]
) -> None:
    result = await passed(Site({}), nodes)
    assert (in_threads, result.rest) == (threads, controller.GATHERING * nodes)


async def test_a_cluster_with_long_texts_rests_for_them(in_threads: list[str]) -> None:
    result = await passed(Site({"extraConf": LONG}), 0)
    assert set(in_threads) == {"Cluster"}
    assert result.rest == 9.0

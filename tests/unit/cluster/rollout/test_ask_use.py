"""What a job uses and names, from Slurm's answer about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_operator.cluster.rollout.in_use.removals import JobUse
from slinky_operator.cluster.rollout.slurm_questions import ask_use
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client.models import Job, JobState


async def used_by(state: str, **shown: Any) -> JobUse:
    async def nothing(**_: object) -> tuple[()]:
        return ()

    async def jobs() -> tuple[Job, ...]:
        return (Job(id=7, name="", state=JobState(base=state), **shown),)

    client = SimpleNamespace(partitions=nothing, reservations=nothing)
    asked = cast("ClusterClient", SimpleNamespace(client=client, fresh_jobs=jobs))
    (found,) = (await ask_use(asked, "", lambda: 0.0)).jobs
    return found


@pytest.mark.parametrize(
    "shown",
    [
        {"tres_per_job": "gres/tape:1"},
        {"tres_per_node": "gres:tape:lto:2"},
        {"tres_per_socket": "gres/tape=1"},
        {"tres_per_task": "cpu=1,gres/tape:1"},
        {"tres_requested": "cpu=1,gres/tape=1"},
        {"gres_detail": ("tape:1(IDX:0)",)},
    ],
)
async def test_a_kind_of_gres_is_seen_wherever_slurm_shows_it(shown: dict[str, Any]) -> None:
    assert (await used_by("PENDING", **shown)).gres == {"tape"}


async def test_nodes_are_named_whatever_the_state_and_wishes_only_while_it_is_pending() -> None:
    shown = {"required_nodes": "c-[0-3]", "excluded_nodes": "d", "features": "fast", "licenses": "a:1"}
    pending, running = await used_by("PENDING", **shown), await used_by("RUNNING", **shown)
    assert (pending.named, pending.features, pending.licenses) == ("c-[0-3],d", "fast", "a:1")
    assert (running.named, running.features, running.licenses) == ("c-[0-3],d", "", "")

"""A maintenance window over real daemons: what its reservation lets start, and when pods are replaced.

The API server is real as well; the operator's pods are played, and in each runs a real slurmd.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.images.rootfs import ensure
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.maintenance import condition
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.maintenance.windows import mark, wanted
from slinky_operator.cluster.question import Answers
from slinky_operator.kube.resources import CLUSTERS
from slurm_client import MintedToken, SlurmClient
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.real_slurm import Host, real_site
from tests.integration.nodeset.test_updates import images, whole
from tests.support.control_plane import ControlPlane

pytestmark = pytest.mark.timeout(600)

LONG, SHORT = "--time=3:00:00", "--time=0:01:00"


def window(start: datetime, **fields: Any) -> dict[str, Any]:
    return {"windows": [{"name": "once", "start": start.isoformat(), "duration": "1h", **fields}]}


async def keep(slurm: SlurmClient, cluster: Cluster) -> Reserved:
    """What the Cluster controller does about windows, once."""
    nodes = {one.name: one for one in await slurm.nodes()}
    seen: Any = SimpleNamespace(cluster=cluster, slurm=SimpleNamespace(nodes=nodes), node_sets=(), invalid_node_sets=())
    now = datetime.now(UTC)
    context: Any = SimpleNamespace(
        clients={cluster.uid: SimpleNamespace(client=slurm, namespace="here", name="c")},
        recorder=SimpleNamespace(event=lambda *_: None),
        clock=lambda: 0.0,
    )
    question = ReservationsQuestion(wanted(cast("Snapshot", seen), now), mark(cluster), now)
    return await question.ask(cluster, Answers(), cast("PassContext", context))


@asynccontextmanager
async def keeping(site: Site, host: Host) -> AsyncIterator[None]:
    """The same, again and again, for the Cluster as it is."""

    async def run() -> None:
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "slurm")) as slurm:
            while True:
                answer = await keep(slurm, Cluster.parse(await site.kube.get(CLUSTERS, "c", site.namespace)))
                assert (answer.why, answer.refused, answer.taken) == ("", {}, ())
                await asyncio.sleep(0.2)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert not [one for one in results if isinstance(one, Exception)]


def waits_for_maintenance(host: Host, job: int) -> bool:
    told = host.run("squeue", "--noheader", f"--jobs={job}", "--format=%T %r").stdout
    return "PENDING" in told and "maintenance" in told


async def test_updates_happen_in_the_window_and_jobs_do_not(control_plane: ControlPlane, crds: None) -> None:
    with Host(ensure("26.05")) as host:
        later = datetime.now(UTC) + timedelta(hours=1)
        spec = {"maintenance": window(later, holdUpdates=True)}
        async with real_site(control_plane, host, spec=spec) as site, keeping(site, host):
            await site.apply(2, image="one")
            await site.until(lambda: site.ready(2), "both nodes are ready")
            reservation = host.run
            await site.until(
                lambda: "Nodes=a-[0-1] " in reservation("scontrol", "--oneliner", "show", "reservation").stdout,
                "Slurm has the reservation, with both nodes",
            )
            long, short = host.sbatch("true", LONG), host.sbatch("true", SHORT)
            await site.until(lambda: host.job_state(short) == "COMPLETED", "a job that ends before it runs")
            await site.until(lambda: waits_for_maintenance(host, long), "one that reaches into it waits")

            before = await images(site)
            await site.apply(2, image="two")
            await site.until(lambda: held(site), "the update waits for the window")
            assert await images(site) == before
            assert (await site.nodeset())["status"]["maintenance"].startswith("once 20")

            host.run("scancel", str(long))
            begun = {"spec": {"maintenance": window(datetime.now(UTC), holdUpdates=True)}}
            await site.kube.merge_patch(CLUSTERS, "c", begun, site.namespace)
            await site.until(lambda: whole(site, 2), "the window is on, and both pods are replaced")
            await site.until(
                lambda: host.run("sinfo", "-h", "-o%T").stdout.split() == ["maint"], "both are in it again"
            )
            waiting = host.sbatch("true", SHORT)
            await site.until(lambda: waits_for_maintenance(host, waiting), "no job starts in the window")

            await site.kube.merge_patch(CLUSTERS, "c", {"spec": {"maintenance": None}}, site.namespace)
            await site.until(lambda: host.job_state(waiting) == "COMPLETED", "it starts once the window is gone")


async def held(site: Site) -> bool:
    return (await site.condition("Progressing")).get("reason") == "UpdateWaitsForMaintenance"


async def test_a_reservation_is_made_by_hand_for_a_release_that_cannot() -> None:
    with Host(ensure("24.11")) as host:
        host.add_node("a-0")
        start = datetime.now(UTC) + timedelta(hours=1)
        cluster = Cluster.parse(
            {
                "metadata": {"name": "c", "namespace": "here", "uid": "c"},
                "spec": {"maintenance": window(start)},
            }
        )
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "slurm")) as slurm:
            answer = await keep(slurm, cluster)
            assert (answer.not_supported, answer.there) == (True, frozenset())
            command = condition.by_hand(answer.wanted[0])
            _, _, told = command.rpartition("TZ=UTC ")
            host.run("env", "TZ=UTC", *shlex.split(told.replace("Nodes=...", "Nodes=a-0")))
            answer = await keep(slurm, cluster)
            assert (answer.not_supported, answer.there) == (False, frozenset({answer.wanted[0].name}))
        long, short = host.sbatch("true", LONG), host.sbatch("true", SHORT)
        host.wait_for(lambda: host.job_state(short) == "COMPLETED", "a job that ends before it runs")
        host.wait_for(lambda: waits_for_maintenance(host, long), "one that reaches into it waits")

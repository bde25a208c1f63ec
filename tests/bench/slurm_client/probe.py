"""
One measurement, in a separate process so that memory and imports are its own. Prints one JSON object.

``python probe.py WHAT URL [ARGUMENT]``; run by test_bench.py, with this project on the path.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tests.bench.slurm_client.turns import ROUNDS, best_of, collections, resident_mib, stalls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sized

TOKEN = "token"
ROOM = 512 * 2**20
"""Bytes that an answer may have: 20,000 jobs with line breaks are more than usual."""


async def ours(url: str, what: str = "nodes", also: str = "") -> dict[str, Any]:
    """List everything with this library; with the entries as they were written (``raw``), or with ``details``."""
    from slurm_client import Intake, SlurmClient

    async with SlurmClient(url, TOKEN, keep_raw=also == "raw", intake=Intake(ROOM), timeout=300) as slurm:
        await slurm.connect()
        listed = getattr(slurm, what)
        return await best_of(functools.partial(listed, details=True) if also == "details" else listed)


async def fetched(url: str, what: str, read: Callable[[bytes], Awaitable[Sized]]) -> dict[str, Any]:
    """Fetch with httpx and hand over the body."""
    import httpx

    async with httpx.AsyncClient(trust_env=False, headers={"X-SLURM-USER-TOKEN": TOKEN}, timeout=300) as http:

        async def fetch() -> Sized:
            return await read((await http.get(f"{url}/slurm/v0.0.45/{what}/")).content)

        return await best_of(fetch)


async def body(url: str, what: str = "nodes") -> dict[str, Any]:
    """Fetch the same bytes and read nothing."""

    async def nothing(content: bytes) -> Sized:
        return content

    return await fetched(url, what, nothing)


async def loads(url: str, what: str = "nodes") -> dict[str, Any]:
    """Fetch and parse with json.loads, on the loop."""

    async def on_the_loop(content: bytes) -> Sized:
        found: Sized = json.loads(content)[what]
        return found

    return await fetched(url, what, on_the_loop)


async def threaded(url: str, what: str = "nodes") -> dict[str, Any]:
    """Fetch and parse with json.loads in a thread, which holds the interpreter all the same."""

    async def in_a_thread(content: bytes) -> Sized:
        found: Sized = (await asyncio.to_thread(json.loads, content))[what]
        return found

    return await fetched(url, what, in_a_thread)


async def generated(url: str, folder: str, what: str = "nodes") -> dict[str, Any]:
    """Fetch with the client that openapi-python-client makes with its own templates."""
    sys.path.insert(0, folder)
    get, client_class = import_module(f"stock.api.slurm.get_{what}"), import_module("stock.client").Client
    client = client_class(base_url=f"{url}/slurm/v0.0.45", headers={"X-SLURM-USER-TOKEN": TOKEN}, timeout=300)

    async def fetch() -> Sized:
        found: Sized = getattr(await get.asyncio(client=client), what)
        return found

    return await best_of(fetch)


async def jobs_polled(url: str, changed: str) -> dict[str, Any]:
    """Watch jobs of which some change before each poll; CPU seconds, beside one read of all and json.loads alone."""
    import httpx

    from slurm_client import SlurmClient
    from slurm_client.models import JobSpec
    from slurm_client.watch import Pace

    headers = {"X-SLURM-USER-TOKEN": TOKEN, "X-SLURM-USER-NAME": "root"}
    first, polls, parsed = [], [], []
    async with (
        httpx.AsyncClient(trust_env=False, headers=headers, timeout=60) as http,
        SlurmClient(url, TOKEN, pace=Pace(interval=3600), user_name="root") as slurm,
        slurm.watch_jobs() as events,
    ):
        there = list(await events.initial())
        some, sizes = there[:: len(there) // int(changed)], []
        for turn in range(ROUNDS):
            await asyncio.gather(*(slurm.update_job(int(key), JobSpec(comment=str(turn))) for key in some))
            used = time.process_time()
            slurm.job_watch.poke()
            for _ in some:
                await anext(events)
            polls.append(time.process_time() - used)
            content = (await http.get(f"{url}/slurm/v0.0.45/jobs/")).content
            sizes.append(len(content))
            used = time.process_time()
            json.loads(content)
            parsed.append(time.process_time() - used)
            async with SlurmClient(url, TOKEN) as fresh:
                await fresh.connect()
                used = time.process_time()
                await fresh.jobs()
                first.append(time.process_time() - used)
        return {
            "objects": len(there),
            "events": len(some),
            "bytes": max(sizes),
            "poll": min(polls),
            "all": min(first),
            "loads": min(parsed),
        }


async def idle(url: str, seconds: str) -> dict[str, Any]:
    """Watch nodes on which nothing happens."""
    from slurm_client import SlurmClient

    async with SlurmClient(url, TOKEN) as slurm, slurm.watch_nodes() as events:
        await slurm.node_watch.wait_synced()
        calls, received, used = slurm.calls, slurm.bytes_received, time.process_time()
        first = events.pending()
        await asyncio.sleep(float(seconds))
        factor = 60 / float(seconds)
        return {
            "objects": first,
            "requests": (slurm.calls - calls) * factor,
            "bytes": (slurm.bytes_received - received) * factor,
            "cpu": (time.process_time() - used) * factor,
            "status": str(slurm.node_watch.status),
        }


async def drain(url: str, how: str) -> dict[str, Any]:
    """Drain and undrain a thousand nodes, in one call or one by one."""
    from slurm_client import SlurmClient

    names = [f"node-{number:05d}" for number in range(1000)]
    async with SlurmClient(url, TOKEN) as slurm:
        await slurm.connect()
        calls, started = slurm.calls, time.perf_counter()
        if how == "bulk":
            await slurm.drain_nodes(names, "bench")
        else:
            await asyncio.gather(*(slurm.drain_nodes([name], "bench") for name in names))
        seconds = time.perf_counter() - started
        counted = slurm.calls - calls
        await slurm.undrain_nodes(names)
        return {"calls": counted, "seconds": seconds}


def peer(url: str) -> dict[str, Any]:
    """List all nodes with the PyPI package slurmrestapi, which is synchronous: its stall is its time."""
    before = resident_mib("VmHWM")
    slurmrestapi = import_module("slurmrestapi")
    configuration = slurmrestapi.Configuration(host=url, api_key={"token": TOKEN})
    api = slurmrestapi.SlurmApi(slurmrestapi.ApiClient(configuration, "X-SLURM-USER-TOKEN", TOKEN))
    seconds, objects = [], 0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        objects = len(api.slurm_v0044_get_nodes().nodes)
        seconds.append(time.perf_counter() - started)
    least = min(seconds)
    return {"objects": objects, "seconds": least, "stall": least, "own": least, "mib": resident_mib("VmHWM") - before}


async def history(url: str) -> dict[str, Any]:
    """Read job history of slurmdbd."""
    from datetime import UTC, datetime

    from slurm_client import Intake, SlurmClient

    async with SlurmClient(url, TOKEN, intake=Intake(ROOM), timeout=300) as slurm:
        await slurm.connect()
        return await best_of(lambda: slurm.db.jobs(datetime.fromtimestamp(1, UTC)))


async def history_loads(url: str) -> dict[str, Any]:
    """Fetch the same and parse with json.loads, on the loop."""
    import httpx

    async with httpx.AsyncClient(trust_env=False, headers={"X-SLURM-USER-TOKEN": TOKEN}, timeout=300) as http:

        async def fetch() -> Sized:
            found: Sized = json.loads((await http.get(f"{url}/slurmdb/v0.0.45/jobs/?start_time=1")).content)["jobs"]
            return found

        return await best_of(fetch)


async def watched(url: str, polls: str) -> dict[str, Any]:
    """Watch jobs: the first list and some polls; of each the longest turn of the loop and the CPU time."""
    from slurm_client import Intake, SlurmClient
    from slurm_client.watch import Pace

    rows = []
    async with (
        SlurmClient(url, TOKEN, intake=Intake(ROOM), timeout=300, pace=Pace(interval=3600)) as slurm,
        slurm.watch_jobs() as events,
    ):
        changed = objects = 0
        for turn in range(1 + int(polls)):
            used = time.process_time()
            async with stalls() as late:
                with collections() as took:
                    if turn == 0:
                        objects = len(await events.initial())
                    else:
                        slurm.job_watch.poke()
                        while slurm.job_watch.status.full_answers <= turn:  # noqa: ASYNC110 - no event may come
                            await asyncio.sleep(0.005)
                        changed = events.pending()
                        for _ in range(changed):
                            await anext(events)
            rows.append(
                {
                    "own": max(cpu for _, cpu in late),
                    "garbage": max(took, default=0.0),
                    "cpu": time.process_time() - used,
                }
            )
    return {"objects": objects, "changed": changed, "first": rows[0], "polls": rows[1:]}


def main() -> None:
    """Run the measurement that is asked for."""
    what, *arguments = sys.argv[1:]
    found = globals()[what](*arguments)
    sys.stdout.write(json.dumps(asyncio.run(found) if asyncio.iscoroutine(found) else found))


if __name__ == "__main__":
    main()

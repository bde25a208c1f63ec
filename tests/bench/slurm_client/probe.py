"""
One measurement, in a separate process so that memory and imports are its own. Prints one JSON object.

``python probe.py WHAT URL [ARGUMENT]``; run by test_bench.py, with this project on the path.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sized

TOKEN = "token"
ROUNDS = 3
ROOM = 512 * 2**20
"""Bytes that an answer may have: 20,000 jobs with line breaks are more than usual."""


def resident_mib(word: str) -> float:
    """
    Return the resident size of this program: ``VmRSS`` now, ``VmHWM`` the largest so far.

    getrusage would tell that of its parent as well.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[word].split()[0]) / 1024


@contextlib.asynccontextmanager
async def stalls() -> AsyncIterator[list[tuple[float, float]]]:
    """
    Collect by how much a task that wants to run every millisecond runs late, in seconds.

    Beside it the CPU time that this thread used in between: on a busy machine the rest is other programs.
    """
    late: list[tuple[float, float]] = [(0.0, 0.0)]

    async def tick() -> None:
        last, used = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now, using = time.perf_counter(), time.thread_time()
            late.append((now - last - 0.001, using - used))
            last, used = now, using

    task = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    try:
        yield late
    finally:
        await asyncio.sleep(0.01)
        task.cancel()


async def best_of(measured: Callable[[], Awaitable[Sized]]) -> dict[str, Any]:
    """
    Run a few times; return the fastest, the smallest of the longest stalls, the most CPU in one, and the memory.

    That is the peak, and what is held while the last result is; the result of the round before has gone by then.
    """
    before, held_before = resident_mib("VmHWM"), resident_mib("VmRSS")
    seconds, stall, own = [], [], []
    objects: Sized = ()
    for _ in range(ROUNDS):
        objects = ()
        async with stalls() as late:
            started = time.perf_counter()
            objects = await measured()
            seconds.append(time.perf_counter() - started)
        stall.append(max(wall for wall, _ in late))
        own.append(max(cpu for _, cpu in late))
    gc.collect()
    # What is free inside the allocator's heap is not held by anybody.
    ctypes.CDLL(None).malloc_trim(0)
    return {
        "objects": len(objects),
        "seconds": min(seconds),
        "stall": min(stall),
        "own": max(own),
        "mib": resident_mib("VmHWM") - before,
        "held": resident_mib("VmRSS") - held_before,
    }


async def ours(url: str, what: str = "nodes", keep_raw: str = "") -> dict[str, Any]:
    """List everything with this library; with the entries as they were written if ``keep_raw`` says anything."""
    from slurm_client import Intake, SlurmClient

    async with SlurmClient(url, TOKEN, keep_raw=bool(keep_raw), intake=Intake(ROOM), timeout=300) as slurm:
        await slurm.connect()
        return await best_of(getattr(slurm, what))


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


async def served_jobs(count: str) -> None:
    """
    Serve one list of many jobs that differ in number, name, user and node; print the URL and run until it is ended.

    The list is one text, written once: a fake that holds each of the jobs takes minutes to have them.
    """
    import httpx

    from slurm_client.testing import FakeSlurmrestd

    async with FakeSlurmrestd(pretty=True) as fake, httpx.AsyncClient(trust_env=False) as http:
        fake.add_node("node-0")
        fake.add_job(name="job-0", user="user-0", nodes=["node-0"])
        url = f"{fake.url}/slurm/v0.0.45/jobs/"
        whole = (await http.get(url, headers={"X-SLURM-USER-TOKEN": TOKEN})).json()
        job = whole["jobs"][0]
        whole["jobs"] = [
            job
            | {
                "job_id": number,
                "name": f"job-{number}",
                "user_name": f"user-{number % 97}",
                "nodes": f"node-{number % 1000}",
            }
            for number in range(1, int(count) + 1)
        ]
        fake.faults.add("/jobs/", body=json.dumps(whole, indent=2).encode(), times=None)
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Run the measurement that is asked for."""
    what, *arguments = sys.argv[1:]
    found = globals()[what](*arguments)
    sys.stdout.write(json.dumps(asyncio.run(found) if asyncio.iscoroutine(found) else found))


if __name__ == "__main__":
    main()

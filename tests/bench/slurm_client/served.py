"""
Servers of long answers, each in a process of its own: ``python served.py WHAT COUNT`` prints the URL and runs on.

The answers are texts that are written once: a fake that holds each of the objects takes minutes to have them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx

from slurm_client.testing import FakeSlurmrestd

HEADERS = {"X-SLURM-USER-TOKEN": "token"}
PARSER = "v0.0.45"
POLLS = 40
"""How many answers of another text there are, before the last one stays."""

_SAMPLED = ("cpu", "mem", "vmem", "fs", "energy", "pages")


async def _first(fake: FakeSlurmrestd, path: str, **query: int) -> dict[str, Any]:
    """Return what the fake says of one job."""
    async with httpx.AsyncClient(trust_env=False, headers=HEADERS) as http:
        found: dict[str, Any] = (await http.get(f"{fake.url}{path}", params=query)).json()
    return found


async def _jobs(fake: FakeSlurmrestd, count: int) -> dict[str, Any]:
    """Return a list of jobs that differ in number, name, user and node."""
    fake.add_node("node-0")
    fake.add_job(name="job-0", user="user-0", nodes=["node-0"])
    whole = await _first(fake, f"/slurm/{PARSER}/jobs/")
    (job,) = whole["jobs"]
    whole["jobs"] = [
        job
        | {
            "job_id": number,
            "name": f"job-{number}",
            "user_name": f"user-{number % 97}",
            "nodes": f"node-{number % 1000}",
        }
        for number in range(1, count + 1)
    ]
    return whole


async def jobs(fake: FakeSlurmrestd, count: int) -> None:
    """Serve one list of jobs again and again."""
    fake.faults.add("/jobs/", body=_written(await _jobs(fake, count)), times=None)


async def changing_jobs(fake: FakeSlurmrestd, count: int) -> None:
    """Serve two lists in turn; one job of a hundred differs in its comment."""
    whole = await _jobs(fake, count)
    texts = []
    for comment in ("one", "other"):
        for job in whole["jobs"][::100]:
            job["comment"] = comment
        texts.append(_written(whole))
    _in_turn(fake, texts)


async def rewritten_jobs(fake: FakeSlurmrestd, count: int) -> None:
    """Serve two lists in turn; each job differs in when Slurm last looked at it, which is no change."""
    whole = await _jobs(fake, count)
    texts = []
    for second in (1_800_000_000, 1_800_000_030):
        for job in whole["jobs"]:
            job["last_sched_evaluation"] = {"set": True, "infinite": False, "number": second}
        texts.append(_written(whole))
    _in_turn(fake, texts)


async def history(fake: FakeSlurmrestd, count: int) -> None:
    """Serve records of ended jobs with two steps each, one of them sampled."""
    fake.add_node("node-0")
    fake.finish_job(fake.add_job(name="job-0", user="user-0", nodes=["node-0"]).id)
    whole = await _first(fake, f"/slurmdb/{PARSER}/jobs/", start_time=1)
    (job,) = whole["jobs"]
    (batch,) = job["steps"]
    whole["jobs"] = [
        job
        | {
            "job_id": number,
            "name": f"job-{number}",
            "nodes": f"node-{number % 1000}",
            "steps": [_step(batch, f"{number}.batch", number), _step(batch, f"{number}.0", number + 7)],
        }
        for number in range(1, count + 1)
    ]
    fake.faults.add("/slurmdb/\\S+/jobs/", body=_written(whole), times=None)


def _step(batch: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    sampled = [{"type": kind, "name": "", "id": 1, "count": number * 1024} for kind in _SAMPLED]
    most = [each | {"node": f"node-{number % 1000}", "task": 0} for each in sampled]
    usage = {"max": most, "min": most, "average": sampled, "total": sampled}
    return batch | {
        "step": batch["step"] | {"id": name, "name": name.partition(".")[2]},
        "tres": batch["tres"] | {"requested": usage, "consumed": usage},
    }


def _written(whole: dict[str, Any]) -> bytes:
    return json.dumps(whole, indent=2).encode()


def _in_turn(fake: FakeSlurmrestd, texts: list[bytes]) -> None:
    for number in range(POLLS):
        fake.faults.add("/jobs/", body=texts[number % len(texts)])
    fake.faults.add("/jobs/", body=texts[-1], times=None)


async def main(what: str, count: str) -> None:
    """Serve until this program is ended."""
    async with FakeSlurmrestd(pretty=True) as fake:
        await globals()[what](fake, int(count))
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""Queries to the agent and to Slurm: what is mounted, resolved, running and in use. Answers are data for the next plan.

A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx

from slinky_operator.cluster.in_use.parameters import tasks_in
from slinky_operator.cluster.in_use.removals import JobUse, ReservationUse, Use
from slinky_operator.cluster.memory import Directory, Jobs, Mounted, Names, PartitionStates
from slinky_operator.cluster.report.job_counts import count_jobs
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors
from slurm_client.models import Job, Partition

logger = logging.getLogger(__name__)

Clock = Callable[[], float]

AGENT_TIMEOUT: Final = 2.0
"""Seconds for one query to the agent."""

USE_TIMEOUT: Final = 20.0
"""Seconds for the query of what is in use."""

LONGEST_ANSWER: Final = 8 * 2**20
"""Maximum bytes of an agent's answer: names of more nodes than Slurm can have."""


MOST_DOMAINS: Final = 64
"""Maximum number of domains of a directory that are read from an agent's answer."""

LONGEST_DOMAIN: Final = 255
"""Characters of a domain's name that are read."""

LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: later ones cannot be shown."""


def agent_url(pod: Object) -> str:
    """URL of the agent in a pod."""
    address = str(pod["status"]["podIP"])
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.AGENT_PORT}/files"


async def ask_agent(http: httpx.AsyncClient, url: str, pod_uid: str, clock: Clock) -> Mounted:
    """Query which files are mounted."""
    files: Mapping[str, str] | None = None
    why = ""
    try:
        answer = await http.get(url, timeout=AGENT_TIMEOUT)
        told: Any = answer.raise_for_status().json()
        found = told.get("files") if isinstance(told, dict) else None
        if isinstance(found, dict):
            files = {str(name): str(digest) for name, digest in found.items()}
        else:
            why = "the agent says nothing of files"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = f"the agent beside slurmctld cannot be asked: {str(error) or type(error).__name__}"
    return Mounted(pod_uid, clock(), files, why)


async def ask_names(http: httpx.AsyncClient, url: str, pod_uid: str, before: Names | None, clock: Clock) -> Names:
    """Query which node names have an address; without an answer the known ones stay."""
    known = before if before is not None and before.pod_uid == pod_uid else Names(pod_uid, 0.0)
    try:
        told = json.loads(await _read(http, f"{url.removesuffix('/files')}/names"))
        names = told["names"]
        found, missing = (frozenset(map(str, names[key])) for key in ("found", "missing"))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError) as error:
        why = f"the agent beside slurmctld cannot be asked for addresses: {str(error) or type(error).__name__}"
        return replace(known, asked_at=clock(), why=why)
    return Names(pod_uid, clock(), found, missing)


async def ask_directory(http: httpx.AsyncClient, url: str, pod_uid: str, clock: Clock) -> Directory:
    """Query which domains of the directory SSSD cannot reach."""
    try:
        told = json.loads(await _read(http, f"{url.removesuffix('/files')}/directory"))
        domains = list(told["offline"].items())[:MOST_DOMAINS]
        offline = {str(name)[:LONGEST_DOMAIN]: min(max(int(since), 0), LAST_SECOND) for name, since in domains}
    except httpx.HTTPStatusError:
        # Without the file: SSSD does not run, or an image of the site's own does not keep it.
        return Directory(pod_uid, clock(), why="SSSD's container does not say whether it reaches the directory")
    except (
        httpx.HTTPError,
        httpx.InvalidURL,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        why = f"the agent beside slurmctld cannot be asked for the directory: {str(error) or type(error).__name__}"
        return Directory(pod_uid, clock(), why=why)
    return Directory(pod_uid, clock(), offline)


async def _read(http: httpx.AsyncClient, url: str) -> bytes:
    read = b""
    async with http.stream("GET", url, timeout=AGENT_TIMEOUT) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            read += chunk
            if len(read) > LONGEST_ANSWER:
                raise ValueError("its answer is too long")
    return read


async def count(client: ClusterClient | None, before: Jobs | None, clock: Clock) -> Jobs | None:
    """Count jobs; the old counts stay if Slurm does not answer."""
    if client is None:
        return None
    began = clock()
    counts = before.counts if before is not None else None
    try:
        counts = count_jobs(await client.client.job_states())
    except errors.SlurmError as error:
        # The poll of nodes shows whether Slurm answers; a count can wait.
        logger.info("jobs of %s/%s cannot be counted: %s", client.namespace, client.name, error)
    now = clock()
    return Jobs(now, now - began, counts)


async def ask_use(client: ClusterClient | None, digest: str, clock: Clock) -> Use:
    """Query which jobs and reservations there are, and what they use."""
    if client is None:
        return Use(clock(), digest, why="there is no connection with Slurm")
    began = clock()
    try:
        # States first: a partition that is closed by then gets no job that the list would not show.
        partitions = await client.client.partitions(timeout=USE_TIMEOUT)
        jobs = await client.fresh_jobs()
        reservations = await client.client.reservations(timeout=USE_TIMEOUT)
    except errors.SlurmError as error:
        now = clock()
        return Use(now, digest, why=str(error) or type(error).__name__, cost=now - began)
    tasks = [tasks_in(job.array_tasks) if job.is_pending and job.array_tasks else 1 for job in jobs]
    now = clock()
    return Use(
        # The first answers are as old as the query.
        began,
        digest,
        tuple(_used_by(job) for job in jobs if not job.state.is_finished),
        tuple(ReservationUse(one.name, one.partition, frozenset(one.nodes), one.licenses) for one in reservations),
        states=_states(partitions),
        records=sum(1 if one is None else one for one in tasks),
        shortened=tasks.count(None),
        cost=now - began,
    )


async def ask_states(client: ClusterClient | None, digest: str, clock: Clock) -> PartitionStates:
    """Query the states of all partitions."""
    if client is None:
        return PartitionStates(clock(), digest, why="there is no connection with Slurm")
    try:
        partitions = await client.client.partitions(timeout=USE_TIMEOUT)
    except errors.SlurmError as error:
        return PartitionStates(clock(), digest, why=str(error) or type(error).__name__)
    return PartitionStates(clock(), digest, _states(partitions))


def _states(partitions: Iterable[Partition]) -> dict[str, str]:
    return {one.name: one.state.base for one in partitions}


def _used_by(job: Job) -> JobUse:
    # What slurmdbd does not count is in none of the totals: a pending job has it only as it was asked for.
    asked = (job.tres_per_job, job.tres_per_node, job.tres_per_socket, job.tres_per_task)
    tres = ",".join((job.tres_requested, job.tres_allocated, *asked, *job.gres_detail))
    kinds = frozenset(_gres(tres.split(",")))
    waits = not job.holds_nodes
    return JobUse(
        job.id,
        frozenset(job.partition.split(",")),
        frozenset(job.nodes),
        kinds,
        job.holds_nodes,
        named=",".join(filter(None, (job.required_nodes, job.excluded_nodes))),
        features=job.features if waits else "",
        licenses=job.licenses if waits else "",
    )


def _gres(items: Iterable[str]) -> Iterable[str]:
    """Kinds in `gres/gpu:a100=2` (as TRES), `gres:gpu:2` (as asked for) or `gpu:a100:2(IDX:0-1)` (as detail)."""
    for item in items:
        if item.startswith(("gres/", "gres:")):
            yield item[len("gres/") :].split("=")[0].split(":")[0]
        elif ":" in item and "=" not in item:
            yield item.split(":")[0]

"""Questions to the agent and to Slurm: what is mounted, loaded, running and in use. Answers are data for the next plan.

An answer that does not come is an answer too, and says why; nothing here raises for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import httpx

from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.in_use import JobUse, ReservationUse, Use
from slinky_operator.cluster.memory import Jobs, Loaded, Mounted
from slinky_operator.cluster.status import count_jobs
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ClusterClient
from slurm_client import SlurmClient, errors
from slurm_client.models import Job, Partition

logger = logging.getLogger(__name__)

Clock = Callable[[], float]

AGENT_TIMEOUT: Final = 2.0
"""Seconds for one question to the agent."""

ATTEMPTS: Final = 2
"""How often slurmctld must refuse its files, and answer other questions in between, until that is believed."""

RELOAD_TIMEOUT: Final = 20.0
"""Seconds for a reconfigure, and for the look at its outcome."""


def agent_url(pod: Object) -> str:
    """Where the agent in a pod answers."""
    address = str(pod["status"]["podIP"])
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.AGENT_PORT}/files"


async def ask_agent(http: httpx.AsyncClient, url: str, pod_uid: str, clock: Clock) -> Mounted:
    """Ask which files are mounted."""
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


async def reload(client: ClusterClient | None, action: Reload, clock: Clock) -> Loaded:
    """Reconfigure, then look whether the files were read: an answer alone proves nothing.

    slurmctld says with each list of partitions when it answered, and gives none for a question whether they have
    changed since, unless they have; reading the configuration counts as a change (Slurm 24.11 and 26.05).
    """

    def ended(why: str, *, lost: bool = False, answered: int | None = None) -> Loaded:
        return Loaded(action.pod_uid, action.change, clock(), proven=not why, why=why, lost=lost, answered=answered)

    if client is None:
        return ended("there is no connection with Slurm", lost=True, answered=action.since)
    slurm = client.client
    refusal, attempts, since = "", 0, action.since
    found: Iterable[Partition] | None = None
    try:
        if since is not None:
            # It has answered an earlier one: told again, it would only begin anew.
            found = await slurm.partitions(since, timeout=RELOAD_TIMEOUT)
        while (found is None or refusal) and attempts < ATTEMPTS:
            attempts += 1
            since = None
            before = (await slurm.partitions(timeout=RELOAD_TIMEOUT)).last_update
            refusal = await _reconfigure(slurm)
            since = None if refusal else before
            found = await slurm.partitions(before, timeout=RELOAD_TIMEOUT)
            if not refusal:
                break
    except errors.SlurmError as error:
        # A slurmctld that has ended says nothing about the files: whoever asks slurmrestd gets an error of any kind.
        # One that has just read them looks up the names of its nodes, ten seconds for each that it does not find.
        return ended(str(error), lost=True, answered=since)
    if refusal:
        return ended(refusal)
    if found is None:
        return ended("slurmctld has answered the reconfigure, but has not read its files", lost=True)
    shown = {one.name: one.node_sets for one in found}
    missing = sorted(name for name in action.partitions if name not in shown)
    if missing:
        return ended(f"slurmctld does not show partition {', '.join(missing)} after a reconfigure")
    other = sorted(name for name, nodes in action.partitions.items() if shown[name] and nodes and shown[name] != nodes)
    client.hurry()
    return ended(f"slurmctld shows other nodes for partition {', '.join(other)}" if other else "")


async def _reconfigure(slurm: SlurmClient) -> str:
    """Tell slurmctld to read its files; returns why it has not."""
    try:
        await slurm.reconfigure(timeout=RELOAD_TIMEOUT)
    except errors.Unreachable:
        raise
    except errors.SlurmError as error:
        return str(error) or type(error).__name__
    return ""


async def count(client: ClusterClient | None, before: Jobs | None, clock: Clock) -> Jobs | None:
    """Count jobs; the old counts stay where Slurm does not answer."""
    if client is None:
        return None
    began = clock()
    counts = before.counts if before is not None else None
    try:
        counts = count_jobs(await client.client.job_states())
    except errors.SlurmError as error:
        # The poll over nodes says whether Slurm answers; a count can wait.
        logger.info("jobs of %s/%s cannot be counted: %s", client.namespace, client.name, error)
    now = clock()
    return Jobs(now, now - began, counts)


async def ask_use(client: ClusterClient | None, digest: str, clock: Clock) -> Use:
    """Ask which jobs and reservations there are, and what they use."""
    if client is None:
        return Use(clock(), digest, why="there is no connection with Slurm")
    try:
        jobs = await client.client.jobs(timeout=RELOAD_TIMEOUT)
        reservations = await client.client.reservations(timeout=RELOAD_TIMEOUT)
    except errors.SlurmError as error:
        return Use(clock(), digest, why=str(error) or type(error).__name__)
    return Use(
        clock(),
        digest,
        tuple(_used_by(job) for job in jobs if not job.state.is_finished),
        tuple(ReservationUse(one.name, one.partition, frozenset(one.nodes)) for one in reservations),
    )


def _used_by(job: Job) -> JobUse:
    tres = ",".join((job.tres_requested, job.tres_allocated, *job.gres_detail))
    return JobUse(job.id, frozenset(job.partition.split(",")), frozenset(job.nodes), frozenset(_gres(tres.split(","))))


def _gres(items: Iterable[str]) -> Iterable[str]:
    """Kinds in `gres/gpu:a100=2` (as TRES) or `gpu:a100:2(IDX:0-1)` (as detail)."""
    for item in items:
        if item.startswith("gres/"):
            yield item.removeprefix("gres/").split("=")[0].split(":")[0]
        elif ":" in item and "=" not in item:
            yield item.split(":")[0]

"""Asks what a survey needs to know before anything is decided: pods that seem to be gone, jobs, and late nodes.

Each answer is a new snapshot, which is surveyed again. Whatever is not answered here is checked again before anything
is deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.model.pods import lost_labels, pod_facts, pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.reconcile.batches import gather_limited
from slurm_client import errors as slurm_errors

logger = logging.getLogger(__name__)

ANSWERS_WITHIN: Final = 3.0
"""Seconds for fresh records of late nodes: the pass has other things to do, and goes on with what is cached."""


async def find_pods(kube: Kube, snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
    """The snapshot, with the API server's answer about the pods of nodes that seem to have none."""
    nodeset = snapshot.nodeset
    pods = [pod_names.pod_name(nodeset, name) for name in nodes]
    answers = await gather_limited(kube.get(PODS, pod, nodeset.namespace) for pod in pods)
    found = dict(snapshot.stripped)
    for name, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, BaseException):
            if not isinstance(answer, kube_errors.KubeError):
                raise answer
            continue
        lost = lost_labels.words(nodeset, answer, snapshot.revision.current or snapshot.revision.hash)
        if lost is not None and pod_facts.read(answer, nodeset.name).slurmd is not Slurmd.ENDED:
            found[name] = lost
    return replace(snapshot, stripped=found) if found else snapshot


async def ask_for_nodes(slurm: Slurm, snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """The snapshot with fresh records of nodes; without an answer, with those that are cached."""
    try:
        async with asyncio.timeout(ANSWERS_WITHIN):
            found = await slurm_queries.nodes(slurm, names)
    except (slurm_errors.SlurmError, TimeoutError) as error:
        logger.debug("nodes %s are not read again: %s", ", ".join(names), error)
        return snapshot
    fresh = {name: node for name, node in found.items() if node is not None}
    return replace(snapshot, slurm=replace(snapshot.slurm, nodes={**snapshot.slurm.nodes, **fresh}))


async def query_jobs(slurm: Slurm, snapshot: Snapshot, *, since: float) -> Snapshot:
    """The snapshot with the jobs and what names the nodes; without an answer, Slurm is not readable in this pass.

    Parameters
    ----------
    since
        Monotonic seconds: an answer to an earlier query is not used.
    """
    try:
        jobs, named = await slurm_queries.jobs(slurm, snapshot.slurm.nodes.keys(), since=since)
    except slurm_errors.SlurmError as error:
        return snapshot.blinded(slurm_queries.reason_of(error), str(error))
    return snapshot.with_jobs(jobs, named)

"""
External jobs as slurmctld keeps them: they have no script, and nothing runs on their nodes (measured with 26.05).

They are RUNNING without any step, end at their time limit or when they are cancelled, and leave their nodes at once.
They alone get nodes with the state EXTERNAL, and others as well. Nobody answers for such a node, so a signal that does
not end the job makes it NOT_RESPONDING. Which jobs start when is left to :mod:`slurm_client.testing.slurmctld.queue`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slurm_client.models import Job, JobDetails, JobNode, JobResources, JobSocket, Node
from slurm_client.testing.refusals import EXTERNAL_JOB_INVALID, INVALID_ARRAY, TOO_MUCH_OF_A_NODE, Refusal
from slurm_client.testing.slurmctld import gres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FLAG = "EXTERNAL_JOB"
STATE = "EXTERNAL"
"""The state of a node that has no slurmd."""


def is_wished(wishes: Mapping[str, Any]) -> bool:
    """Whether a submission is of an external job."""
    return FLAG in (wishes.get("flags") or ())


def is_external(job: Job) -> bool:
    """Whether a job is external."""
    return FLAG in job.flags


def check(wishes: Mapping[str, Any], nodes: Iterable[Node], *, has_script: bool) -> None:
    """
    Refuse what an external job has not, and a batch job where there are external nodes alone.

    Raises
    ------
    Refusal
        With slurmctld's numbers.
    """
    words = "Batch job submission failed"
    if is_wished(wishes):
        if has_script:
            raise Refusal(EXTERNAL_JOB_INVALID, words)
        if wishes.get("array"):
            raise Refusal(INVALID_ARRAY, words)
        return
    known = list(nodes)
    if known and all(STATE in node.state for node in known):
        raise Refusal(TOO_MUCH_OF_A_NODE, words)


def is_for(node: Node, job: Job) -> bool:
    """Whether a job may have a node."""
    return STATE not in node.state or is_external(job)


def packed(job: Job, nodes: Iterable[Node], holding: Callable[[str], list[Job]]) -> dict[str, tuple[int, str]] | None:
    """
    Place the tasks of a job that names no number of nodes, as many on each as there is room for.

    Returns
    -------
    dict
        Tasks and devices by node, in the order of the nodes; ``None`` if there is no room for all of them.
    """
    left, cpus, on_each = job.tasks or 1, job.cpus_per_task or 1, gres.wished(job.tres_per_task)
    found: dict[str, tuple[int, str]] = {}
    for node in nodes:
        if not node.is_usable or not is_for(node, job):
            continue
        for tasks in range(min(left, (node.cpus - node.alloc_cpus) // cpus), 0, -1):
            devices = {key: count * tasks for key, count in on_each.items()}
            given = gres.given(node, devices, holding(node.name)) if devices else ""
            if given is not None:
                found[node.name] = tasks, given
                left -= tasks
                break
        if not left:
            return found
    return None


def resources(job: Job, tasks: Mapping[str, int], nodes: Mapping[str, Node]) -> JobResources:
    """Return what a job is given: CPUs and memory by its tasks on each node, cores from the first that is free."""
    cpus = job.cpus_per_task or 1
    given = []
    for name, count in tasks.items():
        first = nodes[name].alloc_cpus
        cores = tuple(range(first, first + count * cpus))
        memory = job.memory_per_node_mib or (job.memory_per_cpu_mib or 0) * count * cpus
        sockets = (JobSocket(index=0, cores=cores),)
        given.append(JobNode(name=name, cpus=count * cpus, memory_mib=memory, sockets=sockets))
    return JobResources(
        node_list=",".join(tasks),
        node_count=len(tasks),
        cpus=sum(node.cpus or 0 for node in given),
        nodes=tuple(given),
        select_type=frozenset({"CORE"}),
        node_select_type=frozenset({"ONE_ROW"}),
    )


def spread(job: Job, names: Iterable[str]) -> dict[str, int]:
    """Return the tasks on each of a number of nodes that was asked for: about as many on each."""
    places = list(names)
    count = Counter(dict.fromkeys(places, (job.tasks or 1) // len(places)))
    for name in places[: (job.tasks or 1) % len(places)]:
        count[name] += 1
    return dict(count)


def known_resources(job: Job) -> JobResources | None:
    """Return what an external job was given; ``None`` for others, and before it has started."""
    details = job.details if is_external(job) and hasattr(job, "details") else None
    return details.resources if details is not None else None


def with_resources(job: Job, found: JobResources) -> JobDetails:
    """Return the details of a job with what it was given."""
    return replace(job.details, resources=found) if hasattr(job, "details") else JobDetails(resources=found)


def cpus_on(job: Job, name: str) -> int:
    """Return the CPUs that a job has on one of its nodes."""
    found = known_resources(job)
    if found is not None:
        return sum(node.cpus or 0 for node in found.nodes if node.name == name)
    return (job.cpus or 1) // max(1, len(job.nodes)) or 1


def most_devices(job: Job) -> dict[str, int]:
    """Return the devices that a job needs for its tasks on each node of a number that was asked for."""
    tasks = math.ceil((job.tasks or 1) / max(1, job.node_count or 1))
    return {key: count * tasks for key, count in gres.wished(job.tres_per_task).items()}


def most_cpus(job: Job) -> int:
    """Return the CPUs that a job needs on each node of a number that was asked for."""
    return math.ceil((job.tasks or 1) / max(1, job.node_count or 1)) * (job.cpus_per_task or 1)

"""Commands that list: nodes, jobs, partitions, and what changes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from slurm_client import errors
from slurm_client.cli.output import as_json, print_json, print_lines
from slurm_client.cli.reasons import where_or_why
from slurm_client.cli.text import by_number, length, memory, moment, safe, table
from slurm_client.cli.words import OF_JOBS, OF_NODES, nothing, state_option
from slurm_client.models import Job
from slurm_client.notation import hostlist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slurm_client.cli.connection import Connection
    from slurm_client.models import Node

__all__ = ["COMMANDS"]


@click.command()
@click.argument("names", nargs=-1, metavar="[NODES]...")
@state_option(OF_NODES, "Only nodes with this word in their state, e.g. DRAIN.")
@click.option("--partition", "-p", help="Only nodes of this partition.")
@as_json
@click.pass_obj
def nodes(
    connection: Connection, *, names: tuple[str, ...], states: tuple[str, ...], partition: str | None, json_: bool
) -> None:
    """List nodes: state, CPUs and memory in use and in all, GPUs, and why they are drained or down."""
    wanted = expanded(names)
    with connection.open() as slurm:
        found = list(slurm.nodes())
        missing = set(wanted) - {node.name for node in found}
        if missing:
            raise errors.NotFound(f"no node {min(missing, key=by_number)}")
        found = [
            node
            for node in sorted(found, key=lambda node: by_number(node.name))
            if (not wanted or node.name in wanted)
            and (not states or any(word in node.state for word in states))
            and (partition is None or partition in node.partitions)
        ]
        if not found and (states or partition is not None):
            nothing(slurm, "node", () if partition is None else (partition,))
    if json_:
        print_json(found)
        return
    head = ("NAME", "STATE", "CPUS", "MEMORY", "GRES", "PARTITIONS", "REASON")
    lines = table(head, map(_node, found), right=("CPUS", "MEMORY"))
    print_lines(lines, (str(node.state) for node in found))


def expanded(names: Iterable[str]) -> list[str]:
    """
    Return the names of nodes in words such as ``w-[0-3],login``.

    Raises
    ------
    InvalidArgument
        For a word that is no host list.
    """
    found: list[str] = []
    for word in names:
        try:
            found += hostlist.expand(word)
        except ValueError as error:
            raise errors.InvalidArgument(f"{word!r:.80} is not a list of nodes: {error}", field="nodes") from error
    return list(dict.fromkeys(found))


def _node(node: Node) -> tuple[object, ...]:
    used = node.gres_used if node.gres_used and node.gres_used != node.gres else ""
    return (
        node.name,
        node.state,
        f"{node.alloc_cpus}/{node.cpus}",
        f"{memory(node.alloc_memory_mib)} / {memory(node.real_memory_mib)}",
        f"{node.gres} (used {used})" if used else node.gres,
        ",".join(node.partitions),
        _reason(node),
    )


def _reason(node: Node) -> str:
    if not node.reason:
        return ""
    by = ", ".join(word for word in (node.reason_set_by, moment(node.reason_changed_at)) if word)
    return f"{node.reason} ({by})" if by else node.reason


@click.command()
@click.argument("ids", nargs=-1, metavar="[JOBS]...")
@click.option("--user", "-u", help="Only jobs of this user.")
@click.option("--partition", "-p", help="Only jobs of this partition.")
@state_option(OF_JOBS, "Only jobs with this word in their state, e.g. PENDING.")
@click.option("--all", "-a", "all_", is_flag=True, help="Jobs that have ended too, while slurmctld remembers them.")
@as_json
@click.pass_obj
def jobs(
    connection: Connection,
    *,
    ids: tuple[str, ...],
    user: str | None,
    partition: str | None,
    states: tuple[str, ...],
    all_: bool,
    json_: bool,
) -> None:
    """List jobs: state, time used and allowed, and their nodes, or why they are pending."""
    with connection.open() as slurm:
        if ids:
            found = [part for each in ids for part in _named(each, slurm.job_parts, slurm.job)]
        else:
            found = [job for job in slurm.jobs() if all_ or states or not job.is_finished]
        found = [
            job
            for job in found
            if (user is None or job.user == user)
            and (partition is None or partition in job.partition.split(","))
            and (not states or any(word in job.state for word in states))
        ]
        if not found and (states or user is not None or partition is not None):
            nothing(slurm, "job", () if partition is None else (partition,))
    if json_:
        print_json(found)
        return
    now = datetime.now(UTC)
    head = ("ID", "NAME", "USER", "PARTITION", "STATE", "USED", "LIMIT", "CPUS", "NODES OR REASON")
    lines = table(head, (_job(job, now) for job in found), right=("USED", "LIMIT", "CPUS"))
    print_lines(lines, (str(job.state) for job in found))


def _named(name: str, parts: Callable[[str], tuple[Job, ...]], one: Callable[[str], Job]) -> tuple[Job, ...]:
    """Return the records of a number, or the one task or component that is named."""
    found = parts(name) if name.isdecimal() else (one(name),)
    if not found:
        raise errors.NotFound(f"no job {safe(name)}")
    return found


def _job(job: Job, now: datetime) -> tuple[object, ...]:
    begun = job.start_time if not job.is_pending else None
    until = job.end_time if job.is_finished and job.end_time is not None else now
    return (
        _called(job),
        job.name,
        job.user or job.user_id,
        job.partition,
        job.state,
        length(until - begun) if begun is not None else "",
        length(job.time_limit),
        job.cpus,
        where_or_why(job),
    )


def _called(job: Job) -> str:
    """Name of a job as Slurm's commands write it: a task by the number of its array, those that wait by their list."""
    return f"{job.array_job_id or job.id}_[{job.array_tasks}]" if job.array_tasks else job.alone


@click.command()
@as_json
@click.pass_obj
def partitions(connection: Connection, *, json_: bool) -> None:
    """List partitions: state, nodes, CPUs, limits of time."""
    with connection.open() as slurm:
        found = list(slurm.partitions())
    if json_:
        print_json(found)
        return
    head = ("NAME", "STATE", "COUNT", "CPUS", "DEFAULT TIME", "MAX TIME", "NODES")
    rows = (
        (
            f"{each.name}*" if "DEFAULT" in each.flags else each.name,
            each.state,
            each.total_nodes,
            each.total_cpus,
            length(each.default_time),
            length(each.max_time),
            each.node_list,
        )
        for each in found
    )
    lines = table(head, rows, right=("COUNT", "CPUS", "DEFAULT TIME", "MAX TIME"))
    print_lines(lines, (str(each.state) for each in found))


@click.command()
@click.argument("what", type=click.Choice(["nodes", "jobs"]), default="nodes")
@click.option("--once", is_flag=True, help="End when all that is there has been printed.")
@click.pass_obj
def watch(connection: Connection, *, what: str, once: bool) -> None:
    """Print what changes of nodes or jobs, one line each, until interrupted."""
    with connection.open() as slurm, slurm.watch_nodes() if what == "nodes" else slurm.watch_jobs() as events:
        for key, there in events.initial().items():
            click.echo(f"there    {safe(_name_of(there, key))}: {safe(str(there.state))}")
        for event in () if once else events:
            old, new = event.old and event.old.state, event.new and event.new.state
            name = safe(_name_of(event.new or event.old, event.key))
            click.echo(f"{event.kind:8} {name}: {safe(str(old or '-'))} -> {safe(str(new or '-'))}")


def _name_of(found: Job | Node | None, key: str) -> str:
    return _called(found) if isinstance(found, Job) else key


COMMANDS = (nodes, jobs, partitions, watch)

"""
Which jobs of the history are meant: filters as keyword arguments, and which of them slurmrestd knows.

Measured with 24.11 and 26.05: one request takes one user and one state only, and a state is looked for only between two
times. It takes no name of a QOS, one group only, no nodes that are dynamic, and it ignores exit codes, reasons and
names of reservations; what it does not know is looked at here.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypedDict

from slurm_client import errors
from slurm_client.notation.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from slurm_client.models import JobRecord
    from slurm_client.operations.arguments import BaseState, Listed, Name, Text

__all__ = ["JobFilters", "chosen", "listed", "queries", "since_1970"]


class JobFilters(TypedDict, total=False):
    """
    Filters of jobs: those that match all of them. An empty list is an error, never "any".

    Parameters
    ----------
    users
        Users whose jobs they are, by name or number; one request for each of them.
    states
        Base states, e.g. ``["FAILED", "TIMEOUT"]``: jobs that ended so in the time asked for, or that were
        ``PENDING`` or ``RUNNING`` in it; one request for each of them.
    accounts, partitions, wckeys, names
        Any one of these.
    clusters
        Any one of these; that of slurmrestd when absent.
    associations
        Numbers of associations.
    constraints
        Features that they asked for.
    qos, groups, reservations, reasons
        Any one of these: the QOS they ran with, group, reservation, and why they waited last. Slurm sends the others
        too, and they are left out here.
    nodes
        Host list of nodes, any of which they ran on; likewise.
    exit_code
        Return code of the batch script; likewise.
    """

    users: Sequence[Name]
    states: Sequence[BaseState]
    accounts: Sequence[Name]
    partitions: Sequence[Name]
    wckeys: Sequence[Listed]
    names: Sequence[Listed]
    clusters: Sequence[Name]
    associations: Sequence[int]
    constraints: Sequence[Listed]
    qos: Sequence[Name]
    groups: Sequence[Name]
    reservations: Sequence[Name]
    reasons: Sequence[Text]
    nodes: Text
    exit_code: int


_LISTS = {
    "accounts": "account",
    "partitions": "partition",
    "wckeys": "wckey",
    "names": "job_name",
    "clusters": "cluster",
    "associations": "association",
    "constraints": "constraints",
}
"""Parameters of the query that take lists with commas."""

_OF_RECORDS: dict[str, Callable[[JobRecord], str]] = {
    "qos": lambda job: job.qos,
    "groups": lambda job: job.group,
    "reservations": lambda job: job.reservation,
    "reasons": lambda job: job.state_reason,
}


def listed(values: Iterable[Any] | None) -> str | None:
    """Write values with commas; ``None`` for none at all."""
    return ",".join(map(str, values or ())) or None


def since_1970(when: datetime | None) -> str | None:
    """Write a time; every data parser takes it in this form, and some no plain seconds."""
    return None if when is None else f"uts{int(when.timestamp())}"


def queries(filters: JobFilters) -> list[dict[str, Any]]:
    """
    Return the queries that together ask for what is meant: one for each user and state.

    Raises
    ------
    InvalidArgument
        For an empty list.
    """
    for name, value in filters.items():
        if value == []:
            raise errors.InvalidArgument(
                f"{name} is empty, which no job can match; leave it out for any; nothing was sent", field=name
            )
    given: dict[str, Any] = {**filters}
    rest = {query: listed(given[name]) for name, query in _LISTS.items() if name in given}
    return [
        {**rest, "users": user, "state": state.upper() if state else None}
        for user, state in product(_once(given.get("users")), _once(given.get("states")))
    ]


def chosen(filters: JobFilters) -> Callable[[JobRecord], bool]:
    """Return what tells whether a record that Slurm sent matches the filters that Slurm does not know."""
    given: dict[str, Any] = {**filters}
    wanted = [(of_record, frozenset(given[name])) for name, of_record in _OF_RECORDS.items() if name in given]
    nodes = frozenset(expand(given["nodes"])) if "nodes" in given else None
    exit_code = given.get("exit_code")

    def matches(job: JobRecord) -> bool:
        if exit_code is not None and (job.exit_code is None or job.exit_code.return_code != exit_code):
            return False
        if nodes is not None and nodes.isdisjoint(expand(job.node_list)):
            return False
        return all(of_record(job) in values for of_record, values in wanted)

    return matches


def _once(values: Sequence[str] | None) -> list[str | None]:
    return [None] if values is None else list(dict.fromkeys(values))

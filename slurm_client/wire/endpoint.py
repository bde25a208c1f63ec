"""
What an operation of slurmrestd is to a client: a method, a path, and whether it changes anything.

The method does not tell: slurmrestd requeues jobs and reconfigures slurmctld by GET. So every operation is in one of
two tables here, and what is in neither counts as a write: it is not repeated, and a transport that holds writes back
holds it back too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

READS = frozenset(
    """
    get_ping get_diag get_conf get_shares get_licenses get_resources
    get_nodes get_node get_jobs get_jobs_state get_job
    get_partitions get_partition get_reservations get_reservation
    """.split()  # noqa: SIM905 - a table reads better than a list of quotes
)
"""Operations that change nothing, however often they are called."""

WRITES = frozenset(
    """
    get_reconfigure get_job_requeue post_jobs_requeue
    post_nodes post_node delete_node post_new_node
    post_job post_job_submit delete_job delete_jobs
    post_partitions delete_partition post_reservation post_reservations delete_reservation
    """.split()  # noqa: SIM905
)
"""Operations that change something, among them two GETs."""

CHANGES_NOTHING = "slurm_client.changes_nothing"
"""Extension that is true on each httpx request of an operation in `READS`, for transports that must know."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One operation of one data parser.

    Parameters
    ----------
    operation
        Name in the specification, without prefix and version.
    method, path
        ``path`` is below the version and has ``{parameters}``.
    query
        Names of the parameters of its query.
    body
        Class of the body in the wire models; empty if it takes none.
    """

    operation: str
    method: str
    path: str
    query: tuple[str, ...] = ()
    body: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes something, and so must not be repeated once it was sent."""
        return self.operation not in READS

    def url(self, version: str, parameters: Mapping[str, str]) -> str:
        """Return the path on the server; the parameters must be quoted already."""
        return f"/slurm/{version}{self.path.format_map(dict(parameters))}"

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
    db_get_ping db_get_diag db_get_conf db_get_config db_get_tres db_get_instances db_get_instance
    db_get_jobs db_get_job db_get_clusters db_get_cluster db_get_accounts db_get_account db_get_users db_get_user
    db_get_associations db_get_association db_get_qos db_get_single_qos db_get_wckeys db_get_wckey
    """.split()  # noqa: SIM905 - a table reads better than a list of quotes
)
"""Operations that change nothing, however often they are called."""

WRITES = frozenset(
    """
    get_reconfigure get_job_requeue post_jobs_requeue
    post_nodes post_node delete_node post_new_node
    post_job post_job_submit post_job_allocate delete_job delete_jobs
    post_partitions delete_partition post_reservation post_reservations delete_reservation
    db_post_jobs db_post_job db_post_clusters db_delete_cluster db_post_accounts db_post_accounts_association
    db_delete_account db_post_users db_post_users_association db_delete_user db_post_associations
    db_delete_associations db_delete_association db_post_qos db_delete_single_qos db_post_wckeys db_delete_wckey
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
    service
        First part of the path: ``slurm`` for slurmctld's operations, ``slurmdb`` for slurmdbd's.
    """

    operation: str
    method: str
    path: str
    query: tuple[str, ...] = ()
    body: str = ""
    service: str = "slurm"

    @property
    def writes(self) -> bool:
        """Whether it changes something, and so must not be repeated once it was sent."""
        return self.operation not in READS

    def url(self, version: str, parameters: Mapping[str, str]) -> str:
        """Return the path on the server; the parameters must be quoted already."""
        return f"/{self.service}/{version}{self.path.format_map(dict(parameters))}"

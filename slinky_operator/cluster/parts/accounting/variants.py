"""Which parts of accounting the operator runs for a Cluster.

========================  ==========  ===============
`spec.accounting`         slurmdbd    database
========================  ==========  ===============
nothing, or `mariadb`     runs        runs
`database`                runs        is elsewhere
`external`                elsewhere   is elsewhere
========================  ==========  ===============
"""

from __future__ import annotations

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.parts import Accounting, MariaDb
from slinky_operator.slurm import naming


def wanted(cluster: Cluster) -> Accounting | None:
    """The settings of accounting, if a managed Cluster is to have it."""
    accounting = cluster.spec.accounting
    return accounting if accounting is not None and accounting.enabled and not cluster.spec.external else None


def runs_slurmdbd(cluster: Cluster) -> bool:
    """Whether the operator runs slurmdbd."""
    accounting = wanted(cluster)
    return accounting is not None and accounting.external is None


def runs_database(cluster: Cluster) -> bool:
    """Whether the operator runs the database too."""
    accounting = wanted(cluster)
    return accounting is not None and accounting.external is None and accounting.database is None


def mariadb(cluster: Cluster) -> MariaDb:
    """The settings of the database that the operator runs."""
    accounting = wanted(cluster)
    return (accounting.mariadb if accounting is not None else None) or MariaDb()


def endpoint(cluster: Cluster) -> tuple[str, int] | None:
    """Host and port of slurmdbd for slurm.conf; `None` without accounting."""
    accounting = wanted(cluster)
    if accounting is None:
        return None
    if accounting.external is None:
        return naming.accounting_host(cluster.name, cluster.namespace), naming.SLURMDBD_PORT
    return accounting.external.host, accounting.external.port or naming.SLURMDBD_PORT


def database_identity(cluster: Cluster) -> str:
    """Distinguish the databases that a Cluster has had: each gives its slurmctld an id of its own.

    One word, which says nothing secret: host and name are in the spec.
    """
    accounting = wanted(cluster)
    if accounting is None:
        return ""
    if accounting.external is not None:
        return f"slurmdbd://{accounting.external.host}:{accounting.external.port or naming.SLURMDBD_PORT}"
    if accounting.database is not None:
        return f"mysql://{accounting.database.host}:{accounting.database.port}/{accounting.database.name}"
    return f"mariadb://{accounting.mariadb.persistence.existing_claim or ''}" if accounting.mariadb else "mariadb://"

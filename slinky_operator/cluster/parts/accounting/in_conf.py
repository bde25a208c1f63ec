"""Whether slurm.conf names slurmdbd, and what a restart of slurmctld has to do for it. Pure.

- A Cluster that has never run names it from its first slurm.conf on: slurmctld waits for slurmdbd, and no job runs that
  is not recorded.
- A Cluster that runs gets the keys once slurmdbd is ready, so that nothing changes under its jobs for a daemon that may
  never start. Once they are there they stay: slurmctld goes on without slurmdbd and keeps what it has to tell.

A slurmctld that has run without accounting has given itself a cluster id, which is in its state folder; slurmdbd gives
it another one, and slurmctld ends with `CLUSTER ID MISMATCH` (measured, 24.11 and 26.05). So the file with the id is
removed once for each database, which only a start can do: slurmctld's pod is replaced for this change, and reads the
new files then. With an id from slurmdbd it needs no restart: accounting can be switched off and on by a reconfigure.
Measured with both releases: a job that runs meanwhile is recorded as a whole, and so is one that ended in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.syntax.parsed import Parsed

STORAGE: Final = "accounting_storage/slurmdbd"
"""`AccountingStorageType` with accounting."""

_TYPE: Final = "AccountingStorageType"

ANNOTATION_ID_OF: Final = labels.CLUSTER_PREFIX + "cluster-id-of"
"""On slurmctld's pod template: the database whose id slurmctld takes when it starts."""

RESTART_KEY: Final = "ClusterIdOf"
"""Among the keys that slurmctld reads only at start: the database whose id it has."""


def has_accounting(conf: Parsed) -> bool:
    """Whether a slurm.conf names slurmdbd."""
    return conf.value(_TYPE).lower().rpartition("/")[2] == "slurmdbd"


def endpoint(snapshot: Snapshot, running: Parsed, *, never_ran: bool, is_lost: bool = False) -> tuple[str, int] | None:
    """Host and port that slurm.conf is to name; `None` while it names none.

    Parameters
    ----------
    running
        The slurm.conf in use.
    never_ran
        Whether no slurmctld has run with any configuration of the Cluster.
    is_lost
        Whether slurmctld runs, and nothing shows with which files.
    """
    runs_with_it = has_accounting(running) or (is_lost and has_started_with_it(snapshot))
    may_be_named = never_ran or runs_with_it or slurmdbd_is_ready(snapshot)
    cluster = snapshot.cluster
    return variants.endpoint(cluster) if may_be_named or not variants.runs_slurmdbd(cluster) else None


def has_started_with_it(snapshot: Snapshot) -> bool:
    """Whether slurmctld's pod is one that takes the cluster id of a database: its files name slurmdbd."""
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name))) or {}
    template: Mapping[str, Any] = (live.get("spec") or {}).get("template") or {}
    return ANNOTATION_ID_OF in ((template.get("metadata") or {}).get("annotations") or {})


def slurmdbd_is_ready(snapshot: Snapshot) -> bool:
    """Whether a pod of the operator's slurmdbd accepts connections."""
    live = snapshot.children.get(("StatefulSet", naming.accounting(snapshot.cluster.name))) or {}
    return bool((live.get("status") or {}).get("readyReplicas"))


def restart(cluster: Cluster, conf: Parsed) -> Mapping[str, str]:
    """What slurmctld's pod must have started with, beside the keys of `slurm.conf.keys.daemons`."""
    identity = variants.database_identity(cluster)
    return {RESTART_KEY: identity} if identity and has_accounting(conf) else {}


def must_restart(cluster: Cluster, pod: Object, conf: Parsed) -> bool:
    """Whether a pod of slurmctld cannot take these files by a reconfigure: it has not started with this database."""
    wanted = restart(cluster, conf).get(RESTART_KEY)
    started = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ID_OF)
    return wanted is not None and started != wanted

"""Whether accounting works: what the spec, the daemons' pods and slurmdbd itself show. Pure.

slurmctld goes on without slurmdbd, and keeps what it has to tell until that is back: accounting that fails makes no
Cluster unready. Slurm's own answer comes last, since what Kubernetes knows of a pod explains it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.accounting import in_conf, stored, variants
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.reconcile.pod_trouble import DaemonTrouble
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.render import SLURM_CONF

Word = Literal["True", "False", "Unknown"]

GOES_ON: Final = "slurmctld goes on, and keeps what it has to tell until slurmdbd is back"

ANSWERS: Final = "slurmdbd answers, and slurmctld has registered with it"

_DAEMONS: Final = (naming.DATABASE_CONTAINER, naming.ACCOUNTING_CONTAINER)


def of_accounting(snapshot: Snapshot, stuck: Iterable[DaemonTrouble]) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `AccountingReady`; `None` for a Cluster without accounting.

    Parameters
    ----------
    stuck
        Why pods of the daemons do not start.
    """
    cluster = snapshot.cluster
    if variants.wanted(cluster) is None:
        return None
    found = _of_spec(snapshot) or _of_pods(snapshot, tuple(stuck))
    if found is not None:
        return ("False", *found)
    return _of_slurm(snapshot)


def _of_spec(snapshot: Snapshot) -> tuple[Reason, str] | None:
    """What is wrong with the settings, or could not be written."""
    problem = stored.contents(snapshot).problem
    if problem is not None:
        return problem.reason, problem.message
    for name in stored.names(snapshot.cluster):
        denied = snapshot.memory.denied.get(("Secret", name))
        if denied is not None:
            return Reason.CHILD_REFUSED, f"Secret {name}: {denied.why}"
    return None


def _of_pods(snapshot: Snapshot, stuck: tuple[DaemonTrouble, ...]) -> tuple[Reason, str] | None:
    words = [str(one) for one in stuck if one.daemon in _DAEMONS]
    if words:
        return Reason.DAEMON_STUCK, f"{'; '.join(words)}. {GOES_ON}"
    if variants.runs_database(snapshot.cluster) and not _is_ready(snapshot, naming.database(snapshot.cluster.name)):
        return Reason.DAEMONS_STARTING, f"MariaDB is starting. {GOES_ON}"
    if variants.runs_slurmdbd(snapshot.cluster) and not in_conf.slurmdbd_is_ready(snapshot):
        return Reason.DAEMONS_STARTING, f"slurmdbd is starting. {GOES_ON}"
    return None


def _of_slurm(snapshot: Snapshot) -> tuple[Word, Reason, str]:
    """What slurmdbd has answered."""
    config_map = snapshot.children.get(("ConfigMap", naming.config(snapshot.cluster.name))) or {}
    if not in_conf.has_accounting((config_map.get("data") or {}).get(SLURM_CONF, "")):
        return (
            "False",
            Reason.CONFIG_PENDING,
            "slurmdbd is there; slurm.conf does not name it yet (ConfigApplied says why)",
        )
    answer = snapshot.memory.accounting
    if answer is None:
        known = find(snapshot.cluster.status.conditions, ClusterCondition.ACCOUNTING_READY)
        if known is not None and known.status == "True":
            # An operator that has just started knows nothing yet.
            return "True", Reason.AS_EXPECTED, known.message
        return "Unknown", Reason.CONNECTING, "slurmdbd has not been asked yet: that needs a slurmrestd with its calls"
    name = snapshot.cluster.slurm_name
    missing = "" if answer.controller else f"slurmdbd answers; slurmctld of cluster {name} has not registered with it"
    if answer.why or missing:
        return "False", Reason.ACCOUNTING_DOWN, f"{answer.why or missing}. {GOES_ON}"
    own = ((snapshot.controller_pod or {}).get("status") or {}).get("podIP")
    if variants.runs_slurmdbd(snapshot.cluster) and own and answer.controller != own:
        words = (
            f"slurmdbd has a slurmctld at {answer.controller} as that of cluster {name}, not this Cluster's "
            f"({own}): two clusters of one name use one database. Give one of them another clusterName, or a database "
            "of its own"
        )
        return "False", Reason.CLUSTER_NAME_TAKEN, words
    return "True", Reason.AS_EXPECTED, ANSWERS


def _is_ready(snapshot: Snapshot, name: str) -> bool:
    live = snapshot.children.get(("StatefulSet", name)) or {}
    return bool((live.get("status") or {}).get("readyReplicas"))

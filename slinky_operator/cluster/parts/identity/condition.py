"""Whether SSSD reaches the directory of users, by its own words beside slurmctld, which alone looks up users. Pure.

SSSD goes on without its directory, and so does Slurm: this makes no Cluster unready or degraded. SSSD learns that a
directory is away when it asks it, and that it is back by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.identity.question import DirectoryQuestion
from slinky_operator.identity import pod as identity
from slinky_operator.identity import users
from slinky_operator.reconcile.text import named, stamp

Word = Literal["True", "False", "Unknown"]

REACHED: Final = "SSSD beside slurmctld reaches the directory, as far as it has asked"

GOES_ON: Final = "Users that SSSD knows stay known, others are not found; running jobs go on"


@dataclass(frozen=True, slots=True)
class UserSource:
    """What is known of the source of users."""

    trouble: users.IdentityTrouble | None = None
    """What is wrong with it: daemons start and run without."""


def of_directory(snapshot: Snapshot) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `DirectoryReachable`; `None` for a Cluster without SSSD."""
    cluster, pod = snapshot.cluster, snapshot.pods.controller
    if cluster.spec.external or not identity.has_sssd(cluster):
        return None
    answer = snapshot.memory.answers.of(DirectoryQuestion)
    if answer is None or pod is None or answer.pod_uid != pod["metadata"]["uid"]:
        known = find(cluster.status.conditions, ClusterCondition.DIRECTORY_REACHABLE)
        if known is not None and answer is None and known.status != "Unknown":
            # An operator that has just started knows nothing yet.
            return known.status, Reason(known.reason), known.message
        return "Unknown", Reason.CONNECTING, "SSSD beside slurmctld has not been asked yet"
    if answer.offline is None:
        return "Unknown", Reason.CONNECTING, answer.why
    if not answer.offline:
        return "True", Reason.AS_EXPECTED, REACHED
    domains = named([f"{name} (since {_time(since)})" for name, since in sorted(answer.offline.items())])
    log = f"kubectl -n {cluster.namespace} logs {pod['metadata']['name']} -c {identity.SSSD}"
    words = f"SSSD beside slurmctld: Backend is offline, domain {domains}. {GOES_ON}. The cause is in its log: {log}"
    return "False", Reason.DIRECTORY_AWAY, words


def _time(seconds: int) -> str:
    return stamp(datetime.fromtimestamp(seconds, UTC))

"""Whether the exporter serves metrics: what its Token, its Secret and its pod show. Pure.

Slurm works without it: an exporter that fails makes no Cluster unready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from slinky_api.conditions import Reason
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.exporter.manifests import EXPORTER, is_wanted, token
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SERVICEMONITORS
from slinky_operator.slurm import naming

Word = Literal["True", "False", "Unknown"]

LONGEST: Final = 1000
"""Characters of what a Token says."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a pass has found out about the exporter's pod."""

    refused: str = ""
    """Why its template cannot be used."""

    missing: Missing | None = None
    """What its pod needs and does not have."""

    stuck: tuple[str, ...] = ()
    """Why its pod does not start."""


def of_exporter(snapshot: Snapshot, workload: Workload) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `ExporterReady`; `None` for a Cluster without an exporter."""
    cluster = snapshot.cluster
    if not is_wanted(cluster):
        return None
    problem = _problem(snapshot, workload)
    if problem is not None:
        return ("False", *problem)
    name = naming.exporter(cluster.name)
    return "True", Reason.AS_EXPECTED, f"Service {name} serves metrics on port {naming.EXPORTER_PORT}, path /metrics"


def _problem(snapshot: Snapshot, workload: Workload) -> tuple[Reason, str] | None:
    """Why there are no metrics."""
    names = {make(snapshot.cluster.name) for make in (naming.exporter, naming.exporter_metrics)}
    denied = [
        f"{kind} {name}: {one.why}"
        for (kind, name), one in sorted(snapshot.memory.writes.denied.items())
        # Of ServiceMonitors, `Degraded` tells.
        if name in names and kind != SERVICEMONITORS.kind
    ]
    refused = [workload.refused] if workload.refused else denied
    if refused:
        return Reason.CHILD_REFUSED, "; ".join(refused)
    if workload.missing is not None:
        return workload.missing.reason, workload.missing.message
    if workload.stuck:
        return Reason.DAEMON_STUCK, "; ".join(workload.stuck)
    if not EXPORTER.is_ready(snapshot):
        return Reason.DAEMONS_STARTING, "the exporter is starting: it is ready once Slurm has answered it"
    return None


def missing_token(snapshot: Snapshot) -> Missing | None:
    """Why the exporter of a Cluster that the operator runs has no token; `None` if it has one, or needs none."""
    wanted = token(snapshot.cluster)
    if wanted is None:
        return None
    live = snapshot.children.get(wanted.key)
    status: Mapping[str, Any] = (live or {}).get("status") or {}
    if status.get("secretName") and status.get("issuedAt") and _is_current(live, wanted.body):
        return None
    ready = _ready(status)
    if ready.get("status") == "False" and ready.get("reason") in set(Reason) and _is_current(live, wanted.body):
        words = f"Token {wanted.name}: {str(ready.get('message') or '')[:LONGEST]}"
        return Missing(Reason(ready["reason"]), words)
    return Missing(Reason.DAEMONS_STARTING, f"waits for its token (kubectl get token {wanted.name} says why)")


def _ready(status: Mapping[str, Any]) -> Mapping[str, Any]:
    for one in status.get("conditions") or ():
        if isinstance(one, Mapping) and one.get("type") == "Ready":
            return one
    return {}


def _is_current(live: Object | None, wanted: Object) -> bool:
    """Whether a Token is about the user that is wanted, as its status is."""
    if live is None:
        return False
    user, status = wanted["spec"]["username"], live.get("status") or {}
    return bool((live.get("spec") or {}).get("username") == user and status.get("username") in {None, "", user})

"""The part about the exporter: keeps its objects, and shows whether it serves metrics. Pure.

Slurm works without it: an exporter that fails makes no Cluster unready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Remove
from slinky_operator.cluster.observe import CHILDREN, Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.exporter import manifests as exporter
from slinky_operator.cluster.parts.exporter.manifests import EXPORTER, is_wanted, token
from slinky_operator.cluster.parts.monitoring.manifests import monitored_services
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.secrets.checks import Missing, check, not_allowed
from slinky_operator.cluster.writes.due import refused_of, writes
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import DEPLOYMENTS, SERVICEMONITORS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

Word = Literal["True", "False", "Unknown"]

LONGEST: Final = 1000
"""Characters of what a Token says."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a pass has found out about the exporter's pod."""

    refused: str = ""
    """Why its template cannot be used."""

    denied: tuple[str, ...] = ()
    """Its objects that the API server refuses, and why; of ServiceMonitors, `Degraded` tells."""

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
    refused = [workload.refused] if workload.refused else workload.denied
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


class ExporterPart(Part):
    """The exporter of metrics."""

    name = "exporter"
    condition = ClusterCondition.EXPORTER_READY
    degrades = True

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        exporter = cluster.spec.metrics.exporter
        if exporter.enabled and exporter.token_ref is not None:
            yield exporter.token_ref.name

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_exporter(state.snapshot, state.found(Workload))


EXPORTER_PART: Final = ExporterPart()


PURPOSE: Final = "token of the exporter"


def keep_exporter(state: PassState) -> Iterator[Action]:
    """Write the exporter's objects, its Deployment once there is a token; delete what is not wanted."""
    snapshot = state.snapshot
    cluster = snapshot.cluster
    kept = {EXPORTER.key(cluster)} if exporter.is_wanted(cluster) else set()
    if exporter.is_wanted(cluster):
        children = (*exporter.objects(cluster), *monitored_services(cluster, naming.COMPONENT_EXPORTER))
        workload, found = _workload(state)
        made = (*children, *workload)
        denied = refused_of(snapshot, (one for one in made if one.resource != SERVICEMONITORS))
        state.note(replace(found, denied=denied))
        kept |= {child.key for child in made}
        yield from writes(snapshot, children if found.missing is not None else made, state.now)
    yield from _surplus(snapshot, kept)


def _workload(state: PassState) -> tuple[tuple[Child, ...], Workload]:
    """The Deployment, if its template can be used, and what is known of its pod."""
    snapshot = state.snapshot
    stuck = tuple(str(one) for one in EXPORTER.troubles(snapshot, state.wall) if not one.passing)
    found = Workload(missing=_missing(snapshot), stuck=stuck)
    try:
        body = exporter.deployment(snapshot.cluster, state.images)
    except RefusedFragment as error:
        return (), replace(found, refused=f"{EXPORTER.template_field}.{error}")
    return (Child(DEPLOYMENTS, body),), found


def _missing(snapshot: Snapshot) -> Missing | None:
    """Why the pod has no token."""
    cluster = snapshot.cluster
    if not cluster.spec.external:
        return missing_token(snapshot)
    name, key = exporter.token_secret(cluster)
    found = check(snapshot.sources.get(name), name, key, PURPOSE)
    as_token = key == TOKEN_KEY
    return found or not_allowed(snapshot, name, PURPOSE, as_token=as_token)


def _surplus(snapshot: Snapshot, kept: set[tuple[str, str]]) -> Iterator[Action]:
    resources = {one.kind: one for one in CHILDREN}
    for (kind, name), obj in sorted(snapshot.children.items()):
        about = obj["metadata"]
        is_exporters = (about.get("labels") or {}).get(labels.LABEL_APP_COMPONENT) == naming.COMPONENT_EXPORTER
        gone = is_exporters and (kind, name) not in kept and not about.get("deletionTimestamp")
        if gone and adoption.is_ours(obj, snapshot.cluster):
            yield Remove(resources[kind], name, about["uid"])

"""The step about the exporter: its objects while the spec asks for it, and none otherwise. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Remove
from slinky_operator.cluster.observe import CHILDREN, Snapshot
from slinky_operator.cluster.parts.exporter import manifests as exporter
from slinky_operator.cluster.parts.exporter.condition import Workload, missing_token
from slinky_operator.cluster.parts.exporter.manifests import EXPORTER
from slinky_operator.cluster.parts.monitoring.manifests import monitored_services
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.secrets.checks import Missing, check, not_allowed
from slinky_operator.cluster.writes.due import writes
from slinky_operator.kube.resources import DEPLOYMENTS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

PURPOSE: Final = "token of the exporter"


def keep_exporter(state: PassState) -> Iterator[Action]:
    """Write the exporter's objects, its Deployment once there is a token; delete what is not wanted."""
    snapshot = state.snapshot
    cluster = snapshot.cluster
    kept = {EXPORTER.key(cluster)} if exporter.is_wanted(cluster) else set()
    if exporter.is_wanted(cluster):
        children = (*exporter.objects(cluster), *monitored_services(cluster, naming.COMPONENT_EXPORTER))
        workload, found = _workload(state)
        state.note(found)
        made = (*children, *workload)
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

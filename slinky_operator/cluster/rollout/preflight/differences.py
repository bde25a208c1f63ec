"""Which fields of a Cluster make slurmctld's next pod another one: named in messages about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.trials.rehearsal_pod import claims
from slinky_operator.identity import pod as identity
from slinky_operator.reconcile.writes.children import shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.shapes import spec_of


def differences(cluster: Cluster, template: Mapping[str, Any], running: Mapping[str, Any]) -> Iterable[str]:
    """Fields of the Cluster in which slurmctld's next pod and the running one differ, as far as known.

    Parameters
    ----------
    template, running
        Specs of the two pods.
    """
    controller = cluster.spec.controller
    new, old = _own(template), _own(running)
    if new.get("image") != old.get("image"):
        in_template = any(one.get("image") for one in _own_fragments(controller.template))
        if not in_template:
            yield "spec.controller.image" if controller.image else "the operator's default image"
    if controller.resources is not None and not shows(new.get("resources") or {}, old.get("resources") or {}):
        yield "spec.controller.resources"
    if controller.persistence.existing_claim is not None and controller.persistence.existing_claim not in claims(
        running
    ):
        yield "spec.controller.persistence.existingClaim"
    if controller.template:
        yield "spec.controller.template"
    if _of_users(template) != _of_users(running):
        yield "spec.identity"


def _of_users(spec: Mapping[str, Any]) -> tuple[frozenset[str], str]:
    """Volumes with which slurmctld finds users, and the image of SSSD."""
    volumes = frozenset(one["name"] for one in spec.get("volumes") or ()) & identity.VOLUMES
    sidecars = (one.get("image") for one in spec.get("initContainers") or () if one["name"] == identity.SSSD)
    return volumes, next(sidecars, None) or ""


def _own(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        (one for one in spec["containers"] if one["name"] == naming.CONTROLLER_CONTAINER), {}
    )
    return found


def _own_fragments(template: Mapping[str, Any] | None) -> Iterable[Mapping[str, Any]]:
    containers = spec_of(template).get("containers") or ()
    return (one for one in containers if one.get("name") == naming.CONTROLLER_CONTAINER)

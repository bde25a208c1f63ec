"""Which Cluster runs the old jobs of a namespace, and what its administrator has said about them. Pure.

An old object names no Cluster: it belongs to the only one with `spec.jobs.sylabs` that grants its namespace a tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slinky_api.v1alpha1.cluster.jobs import Sylabs
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.jobs import tenants
from slinky_operator.jobs.faces.site import Placement, Runtime, Site
from slinky_operator.reconcile.text import named


@dataclass(frozen=True, slots=True)
class Chosen:
    """The Cluster of an object."""

    namespace: str
    name: str
    granted: tenants.Grant
    site: Site


def serving(clusters: Iterable[Cluster]) -> list[Cluster]:
    """Those that run jobs of the old kinds, in the order of their names."""
    found = [one for one in clusters if one.spec.jobs.sylabs is not None and not one.deleting]
    return sorted(found, key=lambda one: (one.namespace, one.name))


def choose(clusters: Iterable[Cluster], namespace: str, labels: Mapping[str, str] | None) -> Chosen | tenants.Refused:
    """Find the Cluster of the objects of a namespace.

    Parameters
    ----------
    clusters
        Clusters that run jobs of the old kinds.
    namespace
        Namespace of the object.
    labels
        Its labels; None if they are not known.
    """
    asked = list(clusters)
    found = []
    for cluster in asked:
        granted = tenants.grant(cluster, namespace, labels, None)
        if isinstance(granted, tenants.Grant) and cluster.spec.jobs.sylabs is not None:
            found.append(Chosen(cluster.namespace, cluster.name, granted, site_of(cluster.spec.jobs.sylabs)))
    if len(found) == 1:
        return found[0]
    if found:
        names = named([f"{one.namespace}/{one.name}" for one in found])
        return tenants.Refused(
            f"the Clusters {names} all have spec.jobs.sylabs and a tenant for namespace {namespace}: only one may"
        )
    if not asked:
        return tenants.Refused("no Cluster runs jobs of this kind; its administrator sets spec.jobs.sylabs")
    names = named([f"{one.namespace}/{one.name}" for one in asked])
    unread = ""
    if labels is None and any(tenants.needs_labels(one) for one in asked):
        unread = f"; the labels of namespace {namespace} could not be read: the operator may lack the right"
    return tenants.Refused(
        f"namespace {namespace} has no tenant in {names}; the administrator decides that in spec.jobs.tenants{unread}"
    )


def site_of(sylabs: Sylabs) -> Site:
    """What the administrator has said, for the translation."""
    shared = sylabs.shared_volume
    return Site(
        labels={f"{one.name}={one.value}": Placement(one.partition or "", one.features or "") for one in sylabs.labels},
        runtime=Runtime(sylabs.runtime),
        folder=sylabs.folder,
        is_folder_shared=sylabs.shared_folder,
        shared_volume=None if shared is None else {"claimName": shared.claim_name, "mountPath": shared.mount_path},
        logs=sylabs.logs,
    )

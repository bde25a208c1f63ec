"""Which Cluster runs the old jobs of a namespace, and what its administrator has said about them. Pure.

An old object names no Cluster, so both sides have to consent: the Cluster grants its namespace a tenant, and the
namespace is that of the Cluster, or names the Cluster in an annotation, or the operator's settings name it. Without the
second, the Cluster of a stranger could take the jobs of any namespace, with their scripts and claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.cluster.jobs import Jobs, Sylabs
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.jobs import tenants
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.namespaces import NamespaceFacts
from slinky_operator.reconcile.text import named
from slinky_operator.settings import ALL
from slinky_operator.sylabs.translation.site import Placement, Site


@dataclass(frozen=True, slots=True)
class Chosen:
    """The Cluster of an object."""

    namespace: str
    name: str
    granted: tenants.Grant
    site: Site


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Cluster that runs jobs of the old kinds, or would if it were valid."""

    namespace: str
    name: str
    cluster: Cluster | None
    """None if its spec is invalid. It counts all the same, so that no other Cluster takes its jobs meanwhile."""
    may_have_nodes: bool = False
    """Whether the operator's settings let it have virtual Nodes."""

    @property
    def title(self) -> str:
        """Namespace and name, as the annotation and the settings have it."""
        return f"{self.namespace}/{self.name}"

    def grant(self, namespace: str, about: NamespaceFacts | None) -> tenants.Grant | None:
        """What the Cluster grants a namespace; None for nothing."""
        if self.cluster is None:
            return None
        found = tenants.grant(self.cluster, namespace, None if about is None else about.labels, None)
        return found if isinstance(found, tenants.Grant) else None


def candidate(cluster: Cluster, with_nodes: Collection[str]) -> Candidate | None:
    """The candidate that a valid Cluster is; None if it does not run such jobs.

    Parameters
    ----------
    with_nodes
        `<namespace>/<name>` of Clusters that may have virtual Nodes, or `*`.
    """
    if cluster.spec.jobs.sylabs is None:
        return None
    title = f"{cluster.namespace}/{cluster.name}"
    return Candidate(cluster.namespace, cluster.name, cluster, bool({ALL, title} & {*with_nodes}))


def unreadable(obj: Object) -> Candidate | None:
    """The candidate that an invalid Cluster is; None if it does not ask for such jobs."""
    spec: Any = obj.get("spec")
    jobs: Any = spec.get("jobs") if isinstance(spec, dict) else None
    if not isinstance(jobs, dict) or jobs.get("sylabs") is None:
        return None
    return Candidate(obj["metadata"]["namespace"], obj["metadata"]["name"], None)


def choose(
    candidates: Iterable[Candidate], namespace: str, about: NamespaceFacts | None, trusted: Collection[str]
) -> Chosen | tenants.Refused:
    """Find the Cluster of the objects of a namespace.

    Parameters
    ----------
    candidates
        Clusters that run jobs of the old kinds.
    namespace
        Namespace of the object.
    about
        What the Namespace says; None if it could not be read.
    trusted
        `<namespace>/<name>` of Clusters that need no consent of the namespace.
    """
    every = sorted(candidates, key=lambda one: (one.namespace, one.name))
    if not every:
        return tenants.Refused("no Cluster runs jobs of this kind; its administrator sets spec.jobs.sylabs")
    wanted = "" if about is None else about.sylabs_cluster
    if wanted:
        mine = [one for one in every if one.title == wanted]
        if not mine:
            return tenants.Refused(
                f"namespace {namespace} names Cluster {wanted} in its annotation {labels.ANNOTATION_SYLABS_JOBS}: "
                "there is no such Cluster with spec.jobs.sylabs"
            )
    else:
        mine = [one for one in every if one.namespace == namespace or one.title in trusted]
    unread = _unread(every, namespace, about)
    if not mine:
        return tenants.Refused(
            f"no Cluster may run jobs of namespace {namespace}: the Namespace names none. Its administrator names one: "
            f"kubectl annotate namespace {namespace} {labels.ANNOTATION_SYLABS_JOBS}=<namespace>/<name of the Cluster>"
            f"{unread}"
        )
    possible = [one for one in mine if one.cluster is None or one.grant(namespace, about) is not None]
    if not possible:
        return tenants.Refused(
            f"namespace {namespace} has no tenant in {named([one.title for one in mine])}; the administrator decides "
            f"that in spec.jobs.tenants{unread}"
        )
    if len(possible) > 1:
        return tenants.Refused(
            f"the Clusters {named([one.title for one in possible])} all have spec.jobs.sylabs and may run jobs of "
            f"namespace {namespace}: only one may. The annotation {labels.ANNOTATION_SYLABS_JOBS} of the Namespace "
            "decides which"
        )
    return _chosen(possible[0], namespace, about)


def _chosen(one: Candidate, namespace: str, about: NamespaceFacts | None) -> Chosen | tenants.Refused:
    cluster, granted = one.cluster, one.grant(namespace, about)
    if cluster is None or granted is None or cluster.spec.jobs.sylabs is None:
        return tenants.Refused(f"Cluster {one.title} is invalid: its condition says why. The job waits for it")
    if cluster.deleting:
        return tenants.Refused(f"Cluster {one.title} is being deleted, and runs no new jobs")
    site = site_of(cluster.spec.jobs, cluster.spec.jobs.sylabs, one.title, may_have_nodes=one.may_have_nodes)
    return Chosen(one.namespace, one.name, granted, site)


def _unread(candidates: Iterable[Candidate], namespace: str, about: NamespaceFacts | None) -> str:
    """What to do where the Namespace could not be read."""
    if about is not None:
        return ""
    by_labels = any(one.cluster is not None and tenants.needs_labels(one.cluster) for one in candidates)
    what = "labels and annotations" if by_labels else "annotations"
    return (
        f"; the {what} of namespace {namespace} could not be read: the operator may lack the right. Its "
        "administrator can name the Cluster in --sylabs-clusters instead"
    )


def site_of(jobs: Jobs, sylabs: Sylabs, cluster: str, *, may_have_nodes: bool) -> Site:
    """What the administrator has said, for the translation.

    Parameters
    ----------
    may_have_nodes
        Whether the settings let the Cluster have virtual Nodes: without them there are no pods on them either, which
        would take the place of pods with the output.
    """
    shared = sylabs.shared_volume
    return Site(
        labels={
            f"{label.name}={label.value}": Placement(label.partition or "", label.features or "")
            for label in sylabs.labels
        },
        runtime=Runtime(sylabs.runtime),
        folder=sylabs.folder,
        is_folder_shared=sylabs.shared_folder,
        shared_volume=None if shared is None else {"claimName": shared.claim_name, "mountPath": shared.mount_path},
        logs=sylabs.logs,
        pods=may_have_nodes and jobs.virtual_nodes is not None and jobs.virtual_nodes.sylabs_pods,
        cluster=cluster,
    )

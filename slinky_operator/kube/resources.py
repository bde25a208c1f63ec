"""Names of the API resources the operator talks to.

A `Resource` says how a URL is built and nothing else; which fields an object has is left to the controllers. The names
of this project's own kinds are those of their CRDs (`of_kind`).
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from slinky_api import v1alpha1
from slinky_api.resource import Resource as ApiResource


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object of the API, in one version."""

    group: str
    """API group; empty for the core group."""

    version: str
    """Version within the group, such as `v1`."""

    plural: str
    """Plural, lower-case name, as in URLs."""

    kind: str
    """Singular, capitalised name, as in manifests."""

    namespaced: bool = True
    """Whether objects of this kind live in namespaces."""

    part: str = ""
    """Which objects of the kind, where they have a cache of their own; no part of URLs."""

    @property
    def api_version(self) -> str:
        """Value of `apiVersion` in manifests, such as `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of a collection, an object, or a part of an object.

        Parameters
        ----------
        namespace
            Namespace; `None` addresses the collection over all namespaces.
        name
            Object name; `None` addresses the collection.
        subresource
            Such as `status` or `scale`; only with a name.

        Raises
        ------
        ValueError
            If a namespaced object is addressed without its namespace, or a name could leave its place in the URL.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced:
            if namespace:
                parts += ["namespaces", _segment(namespace)]
            elif name:
                raise ValueError(f"{self.kind} {name} is addressed without a namespace")
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
            if subresource:
                parts.append(subresource)
        return "/".join(parts)

    @override
    def __str__(self) -> str:
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{name} ({self.part})" if self.part else name


def _segment(text: str) -> str:
    """Return a name that is safe inside a path; names come from specs that users wrote."""
    if text in {".", ".."} or any(char in text for char in "/%?#") or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} is no object name")
    return text


def of_kind(kind: ApiResource) -> Resource:
    """A kind of this project, by the names that its CRD has."""
    return Resource(kind.group, kind.version, kind.plural, kind.kind)


CLUSTERS = of_kind(v1alpha1.CLUSTER)
NODESETS = of_kind(v1alpha1.NODESET)
TOKENS = of_kind(v1alpha1.TOKEN)
LOGINSETS = of_kind(v1alpha1.LOGINSET)
SLURMJOBS = of_kind(v1alpha1.SLURMJOB)

WLM_SLURMJOBS = Resource("wlm.sylabs.io", "v1alpha1", "slurmjobs", "SlurmJob")
WLM_WLMJOBS = Resource("wlm.sylabs.io", "v1alpha1", "wlmjobs", "WlmJob")
SLURM_SLURMJOBS = Resource("slurm.sylabs.io", "v1alpha1", "slurmjobs", "SlurmJob")

PODS = Resource("", "v1", "pods", "Pod")
JOB_LOG_PODS = Resource("", "v1", "pods", "Pod", part="job logs")
VIRTUAL_PODS = Resource("", "v1", "pods", "Pod", part="virtual nodes")
BRIDGE_PODS = Resource("", "v1", "pods", "Pod", part="placed by Slurm")
SERVICES = Resource("", "v1", "services", "Service")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
PERSISTENTVOLUMECLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
VIRTUAL_NODES = Resource("", "v1", "nodes", "Node", namespaced=False, part="virtual nodes")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONTROLLERREVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
PODDISRUPTIONBUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
SERVICEMONITORS = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
LOCAL_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview"
)
BATCH_JOBS = Resource("batch", "v1", "jobs", "Job")
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
LEADERWORKERSETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
PODGROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
RESOURCECLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCESLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICECLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
DRAIN_REQUESTS = Resource("nvsentinel.nvidia.com", "v1alpha1", "drainrequests", "DrainRequest")
REBOOTNODES = Resource("janitor.dgxc.nvidia.com", "v1alpha1", "rebootnodes", "RebootNode", namespaced=False)
MACHINES = (
    Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine"),
    Resource("cluster.x-k8s.io", "v1beta1", "machines", "Machine"),
)
"""The Machines of Cluster API; older releases serve the second version only."""
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CUSTOMRESOURCEDEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

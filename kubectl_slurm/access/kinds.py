"""Kinds of objects, and where the API server has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of namespaced objects.

    Attributes
    ----------
    reader
        The ClusterRole of Kubernetes that may read it.
    """

    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    reader: str = "view"

    @property
    def api_version(self) -> str:
        """Group and version as objects have them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name that ``kubectl auth can-i`` takes."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str, name: str = "") -> str:
        """Path of the list, or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" + (f"/{name}" if name else "")


_OURS: Final = "slinky.slurm.net"
CLUSTERS: Final = Kind("Cluster", "clusters", _OURS, "v1alpha1")
NODESETS: Final = Kind("NodeSet", "nodesets", _OURS, "v1alpha1")
LOGINSETS: Final = Kind("LoginSet", "loginsets", _OURS, "v1alpha1")
TOKENS: Final = Kind("Token", "tokens", _OURS, "v1alpha1")
SLURMJOBS: Final = Kind("SlurmJob", "slurmjobs", _OURS, "v1alpha1")
OURS: Final = (CLUSTERS, NODESETS, LOGINSETS, TOKENS, SLURMJOBS)
"""Kinds of this project, in the order of a support report."""

PODS: Final = Kind("Pod", "pods")
SECRETS: Final = Kind("Secret", "secrets", reader="edit")
CONFIG_MAPS: Final = Kind("ConfigMap", "configmaps")
STATEFULSETS: Final = Kind("StatefulSet", "statefulsets", "apps", "v1")
EVENTS: Final = Kind("Event", "events")

"""Which pods the kubelet API serves: what it needs to know of a pod and of its SlurmJob, from caches. Pure.

How a pod is found, and which SlurmJob is its own, is left to the one who fills `ServedPods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import moment


@dataclass(frozen=True, slots=True)
class ServedPod:
    """A pod on a virtual Node.

    Parameters
    ----------
    pod
        The pod.
    job
        The SlurmJob that runs for it; None if there is none.
    """

    pod: Object
    job: Object | None

    @property
    def node(self) -> str:
        """The virtual Node."""
        return str((self.pod.get("spec") or {}).get("nodeName") or "")

    def has(self, container: str) -> bool:
        """Whether the pod has such a container."""
        return any(one.get("name") == container for one in (self.pod.get("spec") or {}).get("containers") or ())

    @property
    def waits_for(self) -> str:
        """Why its container has not started, in a word."""
        for one in (self.pod.get("status") or {}).get("containerStatuses") or ():
            waiting: Mapping[str, Any] = (one.get("state") or {}).get("waiting") or {}
            if waiting.get("reason"):
                return str(waiting["reason"])
        return "ContainerCreating"

    @property
    def has_ended(self) -> bool:
        """Whether its job has ended, or it has none any more."""
        phase = (self.pod.get("status") or {}).get("phase")
        return self._status.get("state") in {"Succeeded", "Failed"} or phase in {"Succeeded", "Failed"}

    @property
    def cluster(self) -> Key:
        """Namespace and name of the job's Cluster."""
        if self.job is None:
            return "", ""
        spec, about = self.job.get("spec") or {}, self.job["metadata"]
        return str(spec.get("clusterNamespace") or about.get("namespace")), str(spec.get("clusterName"))

    @property
    def place(self) -> Mapping[str, Any] | None:
        """Where its output is (`status.logs.place` of the SlurmJob); None before Slurm has said so."""
        found = (self._status.get("logs") or {}).get("place")
        return found if isinstance(found, dict) else None

    @property
    def started(self) -> datetime | None:
        """When the job started."""
        return moment(self._status.get("startTime"))

    @property
    def ended(self) -> datetime | None:
        """When the job ended."""
        return moment(self._status.get("endTime")) if self.has_ended else None

    @property
    def _status(self) -> Mapping[str, Any]:
        return (self.job.get("status") or {}) if self.job is not None else {}


class ServedPods(Protocol):
    """Finds pods on virtual Nodes."""

    def find(self, namespace: str, name: str) -> ServedPod | None:
        """The pod of a name, if it is on a virtual Node; None for every other."""

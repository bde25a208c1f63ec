"""What all replicas of the operator together show in their metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from hack.installing.operator import NAMESPACE
from hack.localkube.kubectl import Kubectl

Sample = tuple[str, frozenset[tuple[str, str]]]


class Page:
    """Samples of one moment, summed over the replicas: a counter is at zero in the one that does not lead."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._values: dict[Sample, float] = defaultdict(float)
        pods = kubectl("get", "pods", f"--namespace={NAMESPACE}", "--output=name").split()
        for pod in pods:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.removeprefix('pod/')}:8080/proxy/metrics"
            for family in text_string_to_metric_families(kubectl("get", "--raw", path)):
                for sample in family.samples:
                    self._values[sample.name, frozenset(sample.labels.items())] += sample.value

    def value(self, name: str, labels: Mapping[str, str] | None = None) -> float:
        """The sample of that name, without its prefix, and of exactly these labels.

        Raises
        ------
        KeyError
            There is none.
        """
        key = f"slurm_operator_{name}", frozenset((labels or {}).items())
        if key not in self._values:
            raise KeyError(key)
        return self._values[key]

"""Which Secret has the key of the job log servers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming


class JobLogsKeyPart(Part):
    """The key of the job log servers."""

    name = "job_logs_key"

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        if any((one.get("spec") or {}).get("jobLogs") is not None for one in node_sets):
            yield naming.job_logs_key(cluster.name)


JOB_LOGS_KEY: Final = JobLogsKeyPart()

"""The part about the key of job log servers: which Secret has it, and when it is made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, MakePassword
from slinky_operator.cluster.daemons import metadata, owned
from slinky_operator.cluster.part import Part
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.pass_state import PassState
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


def keep_job_logs_key(state: PassState) -> Iterator[Action]:
    """Make the key if a NodeSet needs it and it does not exist."""
    snapshot, cluster = state.snapshot, state.snapshot.cluster
    if cluster.deleting or all(node_set.spec.job_logs is None for node_set, _ in snapshot.node_sets):
        return
    name = naming.job_logs_key(cluster.name)
    found = snapshot.sources.get(name)
    if found is None or found.exists or stored_keys.denied(snapshot, name, state.now) is not None:
        return
    about = owned(cluster, metadata(cluster, name, naming.COMPONENT_AUTH))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque"}
    yield MakePassword(body, naming.JOB_LOGS_KEY)

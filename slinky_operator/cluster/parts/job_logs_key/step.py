"""The step about the key of tokens for output of jobs, which servers beside slurmd check (`jobLogs` of NodeSets). Pure.

There is one for each Cluster, made once a NodeSet wants such servers. Nobody is cut off from anything by another one:
the operator makes new tokens with it, and the kubelet brings it to running servers. So it is neither copied nor put
back, and the garbage collector deletes it with the Cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.cluster.actions import Action, MakePassword
from slinky_operator.cluster.daemons import metadata, owned
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.slurm import naming


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

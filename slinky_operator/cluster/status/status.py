"""The status of a Cluster, and the patch that writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import ClusterCondition, Reason, is_true, merge
from slinky_api.v1alpha1.cluster.status import ClusterStatus, ConfigStatus
from slinky_operator.cluster.observe import SlurmView, Snapshot
from slinky_operator.cluster.parts.accounting import slurmctld_addresses
from slinky_operator.cluster.parts.accounts.condition import counts
from slinky_operator.cluster.parts.job_counts.counting import count_nodes
from slinky_operator.cluster.status.conditions import Findings, condition, conditions_of
from slinky_operator.cluster.status.out_of_service import out_of_service
from slinky_operator.cluster.status.summary import summary
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState

COUNTS: Final = ("nodes", "jobs")
"""Fields of the status that change all the time; written less often than the others."""


def status_of(snapshot: Snapshot, findings: Findings, now: datetime) -> ClusterStatus:
    """The complete status, with the transition times of its conditions."""
    cluster = snapshot.cluster
    slurm = snapshot.slurm
    up = slurm is not None and slurm.contact.state is ContactState.READY
    bad = out_of_service(slurm.nodes.values()) if slurm is not None and up else {}
    conditions = conditions_of(snapshot, findings, bad)
    jobs = snapshot.memory.jobs
    before = cluster.status
    return ClusterStatus(
        summary=summary(snapshot, findings, conditions, bad),
        is_ready=is_true(conditions, ClusterCondition.READY),
        conditions=merge(
            before.conditions,
            [one.model_copy(update={"observed_generation": cluster.metadata.generation}) for one in conditions],
            now,
        ),
        server=naming.server(cluster),
        slurm_version=(slurm.slurm_version if slurm is not None else "") or before.slurm_version,
        api_version=(slurm.api_version if slurm is not None else "") or before.api_version,
        nodes=count_nodes(slurm.nodes.values()) if slurm is not None and up else before.nodes,
        jobs=jobs.counts if jobs is not None and jobs.counts is not None and up else before.jobs,
        config=_config(snapshot, findings),
        accounting=counts(snapshot),
        slurmctld_addresses=slurmctld_addresses.kept(snapshot),
        slurmd_image=findings.slurmd_image,
        slurm_key_file=None if cluster.spec.external else cluster.status.slurm_key_file,
        signing_key_id=None if findings.signing.in_use is None else findings.signing.in_use.key_id,
        observed_generation=cluster.metadata.generation,
        last_contact=_last_contact(before, slurm, up=up),
    )


def invalid(raw: Mapping[str, Any], stored: ClusterStatus, message: str, now: datetime) -> ClusterStatus:
    """The status of a Cluster whose spec cannot be parsed: nothing is changed, and the status says why.

    Parameters
    ----------
    raw
        The Cluster as the API server returns it.
    stored
        Its current status.
    message
        What is invalid, by field.
    now
        The time, for conditions that change.
    """
    generation = int(raw["metadata"].get("generation") or 0)
    told = [
        condition(ClusterCondition.READY, "False", Reason.INVALID_SPEC, message),
        condition(ClusterCondition.DEGRADED, "True", Reason.INVALID_SPEC, message),
    ]
    others = [one for one in stored.conditions if one.type not in {ClusterCondition.READY, ClusterCondition.DEGRADED}]
    conditions = [*others, *(one.model_copy(update={"observed_generation": generation}) for one in told)]
    return stored.model_copy(
        update={
            "summary": "spec invalid",
            "is_ready": False,
            "conditions": merge(stored.conditions, conditions, now),
            "observed_generation": generation,
        }
    )


def _config(snapshot: Snapshot, findings: Findings) -> ConfigStatus | None:
    if findings.rollout is not None:
        return findings.rollout.status
    if findings.key is not None:
        # New pods would get a key that is not meant for them.
        return ConfigStatus(node_sets=())
    # slurm.conf is not the operator's there, and its content is not known: every NodeSet may have pods.
    names = tuple(one.name for one, _ in snapshot.node_sets if not one.deleting)
    return ConfigStatus(node_sets=names)


def _last_contact(before: ClusterStatus, slurm: SlurmView | None, *, up: bool) -> datetime | None:
    if up or slurm is None or slurm.answered_at is None:
        return before.last_contact
    return slurm.answered_at.replace(microsecond=0)

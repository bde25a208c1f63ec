"""The status of a Cluster, and the patch that writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import ClusterCondition, Reason, is_true, merge
from slinky_api.v1alpha1.cluster.status import ClusterStatus, ConfigStatus
from slinky_operator.cluster.daemons import default_images
from slinky_operator.cluster.observe import SlurmView
from slinky_operator.cluster.part import Part
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.status.answers import ask
from slinky_operator.cluster.status.conditions import condition, conditions_of
from slinky_operator.cluster.status.not_supported import not_supported
from slinky_operator.cluster.status.summary import summary
from slinky_operator.slurm import naming

COUNTS: Final = ("nodes", "jobs")
"""Fields of the status that change all the time; written less often than the others."""


def status_of(state: PassState, parts: Sequence[Part], off: Collection[str] = ()) -> ClusterStatus:
    """The complete status, with the transition times of its conditions.

    Parameters
    ----------
    parts
        All parts of a Cluster, in the order in which their problems are reported.
    off
        Fields of the spec that the operator's settings have switched off (`not_supported.SWITCHED_OFF`).
    """
    snapshot = state.snapshot
    cluster, slurm, before = snapshot.cluster, snapshot.slurm, snapshot.cluster.status
    up = snapshot.slurm_answers
    answers = ask(parts, state)
    config: ConfigStatus | None = answers.fields.get("config")
    starting = not cluster.spec.external and not up and (config is None or not config.applied_hash)
    conditions = conditions_of(answers, not_supported(cluster.spec, off), starting=starting)
    return ClusterStatus(
        summary=summary(cluster, answers, conditions, len(snapshot.pods.slurmd_names)),
        is_ready=is_true(conditions, ClusterCondition.READY),
        conditions=merge(
            before.conditions,
            [one.model_copy(update={"observed_generation": cluster.metadata.generation}) for one in conditions],
            state.wall,
        ),
        server=naming.server(cluster),
        slurm_version=(slurm.slurm_version if slurm is not None else "") or before.slurm_version,
        api_version=(slurm.api_version if slurm is not None else "") or before.api_version,
        slurmd_image=None if cluster.spec.external else state.images.of(naming.SLURMD),
        slurmctld_image=None if cluster.spec.external else default_images.settled(snapshot),
        slurm_key_file=None if cluster.spec.external else before.slurm_key_file,
        observed_generation=cluster.metadata.generation,
        last_contact=_last_contact(before, slurm, up=up),
        **answers.fields,
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


def _last_contact(before: ClusterStatus, slurm: SlurmView | None, *, up: bool) -> datetime | None:
    if up or slurm is None or slurm.answered_at is None:
        return before.last_contact
    return slurm.answered_at.replace(microsecond=0)

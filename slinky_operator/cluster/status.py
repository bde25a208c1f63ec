"""Conditions and counts of a Cluster, and the patch that writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, merge
from slinky_api.v1alpha1.cluster_status import ClusterStatus, ConfigStatus, JobCounts, NodeCounts
from slinky_api.v1alpha1.common import Condition
from slinky_operator.cluster.connection import Missing
from slinky_operator.cluster.observe import SlurmView, Snapshot
from slinky_operator.cluster.replacement import Replacement, Stage
from slinky_operator.cluster.rollout import Rollout
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ContactState, Trouble
from slurm_client.models import JobStateEntry, Node

COUNTS: Final = ("nodes", "jobs")
"""Fields of the status that move all the time; written less often than the others."""

Word = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the plan has found out, for the status."""

    rollout: Rollout | None
    """`None` for a Cluster elsewhere."""

    missing: Missing | None
    """Why there is no connection."""

    key: Missing | None
    """What is wrong with a key that daemons have, or are to have."""

    refused: tuple[str, ...]
    """Objects that could not be written, and why."""

    deleting: str = ""
    """What a deletion waits for."""

    starting: bool = False
    """Whether the daemons have never answered yet."""

    replacement: Replacement = Replacement(Stage.FREE)  # noqa: RUF009 - frozen
    """What is known of the pod that is to take slurmctld's place."""

    stuck: tuple[str, ...] = ()
    """Why pods of the daemons do not come up."""


def status_of(snapshot: Snapshot, findings: Findings, now: datetime) -> ClusterStatus:
    """The whole status, conditions with their times."""
    cluster = snapshot.cluster
    conditions = list(_conditions(snapshot, findings))
    ready = _ready(conditions, findings)
    conditions.append(ready)
    conditions += _overall(ready, findings, deleting=cluster.deleting)
    if cluster.deleting:
        conditions.append(_condition(ClusterCondition.DELETING, "True", Reason.DELETING, findings.deleting))
    slurm = snapshot.slurm
    up = slurm is not None and slurm.contact.state is ContactState.READY
    jobs = snapshot.memory.jobs
    before = cluster.status
    return ClusterStatus(
        is_ready=ready.status == "True",
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
        observed_generation=cluster.metadata.generation,
        last_contact=_last_contact(before, slurm, up=up),
    )


def invalid(raw: Mapping[str, Any], stored: ClusterStatus, message: str, now: datetime) -> ClusterStatus:
    """The status of a Cluster whose spec cannot be read: nothing is touched, and it says why."""
    generation = int(raw["metadata"].get("generation") or 0)
    ready = _condition(ClusterCondition.READY, "False", Reason.INVALID_SPEC, message)
    others = [one for one in stored.conditions if one.type != ClusterCondition.READY]
    conditions = [*others, ready.model_copy(update={"observed_generation": generation})]
    return stored.model_copy(
        update={
            "is_ready": False,
            "conditions": merge(stored.conditions, conditions, now),
            "observed_generation": generation,
        }
    )


def patch_between(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `wanted` of `stored`; empty if they are the same."""
    patch: dict[str, Any] = {}
    for key in {*stored, *wanted}:
        old, new = stored.get(key), wanted.get(key)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            patch[key] = patch_between(old, new)
        else:
            patch[key] = new
    return patch


def count_nodes(nodes: Iterable[Node]) -> NodeCounts:
    """Count nodes by base state, and drained ones once more."""
    counts = dict.fromkeys(("total", "idle", "allocated", "mixed", "down", "drain", "other"), 0)
    for node in nodes:
        counts["total"] += 1
        base = node.state.base.lower()
        counts[base if base in {"idle", "allocated", "mixed", "down"} else "other"] += 1
        counts["drain"] += node.is_drain
    return NodeCounts(**counts)


def count_jobs(jobs: Iterable[JobStateEntry]) -> JobCounts:
    """Count jobs by base state; one that is ending counts as completing."""
    counts = dict.fromkeys(("total", "running", "pending", "suspended", "completing", "other"), 0)
    for job in jobs:
        counts["total"] += 1
        base = "completing" if "COMPLETING" in job.state.flags else job.state.base.lower()
        counts[base if base in counts else "other"] += 1
    return JobCounts(**counts)


def _condition(kind: ClusterCondition, status: Word, reason: Reason, message: str = "") -> Condition:
    return Condition(type=str(kind), status=status, reason=str(reason), message=message[:32768])


def _conditions(snapshot: Snapshot, findings: Findings) -> Iterable[Condition]:
    if findings.rollout is not None:
        rollout = findings.rollout
        yield _condition(
            ClusterCondition.CONFIG_APPLIED, "True" if rollout.applied else "False", rollout.reason, rollout.message
        )
    yield from _contact(snapshot.slurm, findings.missing)


def _contact(slurm: SlurmView | None, missing: Missing | None) -> Iterable[Condition]:
    """Whether slurmrestd answers, takes the token, and reaches slurmctld."""
    words: tuple[tuple[Word, str], ...]
    if missing is not None:
        nothing = "there is nothing to connect with"
        words = (("Unknown", nothing), ("False", missing.message), ("Unknown", nothing))
        reason = missing.reason
    elif slurm is None or slurm.contact.state is ContactState.CONNECTING:
        words, reason = (("Unknown", "no answer yet"),) * 3, Reason.CONNECTING
    else:
        words, reason = _troubled(slurm.contact.trouble, slurm.contact.why)
    kinds = (ClusterCondition.API_REACHABLE, ClusterCondition.TOKEN_VALID, ClusterCondition.CONTROLLER_UP)
    for kind, (status, message) in zip(kinds, words, strict=True):
        yield _condition(kind, status, Reason.AS_EXPECTED if status == "True" else reason, message)


def _troubled(trouble: Trouble, why: str) -> tuple[tuple[tuple[Word, str], ...], Reason]:
    """Status and message for slurmrestd, token and slurmctld; and the reason for what is not true."""
    match trouble:
        case Trouble.NONE:
            return (("True", ""),) * 3, Reason.AS_EXPECTED
        case Trouble.CONTROLLER_DOWN:
            return (("True", ""), ("Unknown", "only slurmctld can tell"), ("False", why)), Reason.CONTROLLER_DOWN
        case Trouble.UNAUTHORIZED:
            return (("True", ""), ("False", why), ("Unknown", "not to be asked without a token")), Reason.UNAUTHORIZED
        case Trouble.UNSUPPORTED:
            return (("False", why), ("Unknown", ""), ("Unknown", "")), Reason.UNSUPPORTED_VERSION
        case Trouble.NO_ANSWER | Trouble.OTHER:
            return (("False", why), ("Unknown", ""), ("Unknown", "")), Reason.SLURM_UNREACHABLE


def _ready(conditions: list[Condition], findings: Findings) -> Condition:
    kind = ClusterCondition.READY
    if findings.key is not None and findings.key.reason is not Reason.KEY_PENDING:
        return _condition(kind, "False", findings.key.reason, findings.key.message)
    if findings.refused:
        return _condition(kind, "False", Reason.CHILD_REFUSED, "; ".join(findings.refused))
    order = (
        ClusterCondition.TOKEN_VALID,
        ClusterCondition.API_REACHABLE,
        ClusterCondition.CONTROLLER_UP,
        ClusterCondition.CONFIG_APPLIED,
    )
    by_type = {one.type: one for one in conditions}
    found = [by_type[name] for name in order if name in by_type]
    stuck = "; ".join(findings.stuck)
    # What is known to be wrong explains what cannot be known.
    for status in ("False", "Unknown"):
        for one in found:
            contact = one.type != ClusterCondition.CONFIG_APPLIED and findings.missing is None
            if one.status == status and contact and stuck:
                known = Reason(one.reason)
                reason = Reason.DAEMON_STUCK if findings.starting or known in ON_ITS_WAY else known
                return _condition(kind, "False", reason, f"{stuck}; {one.type}: {one.message}")
            if one.status == status and findings.starting and findings.missing is None:
                words = f"the daemons are starting; {one.type}: {one.message}"
                return _condition(kind, "False", Reason.DAEMONS_STARTING, words)
            if one.status == status:
                return _condition(kind, "False", Reason(one.reason), f"{one.type}: {one.message}")
    pending = findings.key
    good = _condition(kind, "True", Reason.AS_EXPECTED)
    return good if pending is None else _condition(kind, "False", pending.reason, pending.message)


ON_ITS_WAY: Final = frozenset(
    {
        Reason.CONFIG_PENDING,
        Reason.CONNECTING,
        Reason.DAEMONS_STARTING,
        Reason.KEY_PENDING,
        Reason.PARTITION_IN_USE,
        Reason.NODES_IN_USE,
        Reason.GRES_IN_USE,
        Reason.WAITING_FOR_JOBS,
        Reason.DELETING,
    }
)
"""Reasons for which nobody needs to do anything."""


def _overall(ready: Condition, findings: Findings, *, deleting: bool) -> Iterable[Condition]:
    """Whether something is on its way, and whether something needs help."""
    progressing, degraded = ClusterCondition.PROGRESSING, ClusterCondition.DEGRADED
    left_out = findings.rollout.rendered.refused if findings.rollout is not None else ()
    untried = findings.rollout.untried if findings.rollout is not None else ()
    if deleting:
        yield _condition(progressing, "True", Reason.DELETING, findings.deleting)
    elif ready.status != "True" and ready.reason in ON_ITS_WAY:
        yield _condition(progressing, "True", Reason(ready.reason), ready.message)
    elif findings.replacement.stage is Stage.TRYING:
        yield _condition(progressing, "True", Reason.DAEMONS_STARTING, findings.replacement.message)
    else:
        yield _condition(progressing, "False", Reason.AS_EXPECTED)
    found: list[tuple[Reason, str]] = []
    if ready.status != "True" and ready.reason not in ON_ITS_WAY:
        found.append((Reason(ready.reason), ready.message))
    if findings.replacement.stage is Stage.HELD:
        found.append((Reason.REPLACEMENT_HELD_BACK, findings.replacement.message))
    found += [(Reason.CONFIG_REFUSED, f"NodeSet {one.node_set}: {one.problem}") for one in left_out]
    found += [(Reason.CONFIG_UNTRIED, str(one)) for one in untried]
    if findings.rollout is not None and findings.rollout.unaddressed:
        found.append((Reason.NODES_WITHOUT_ADDRESS, findings.rollout.unaddressed))
    if ready.status == "True":
        found += [(Reason.DAEMON_STUCK, words) for words in findings.stuck]
    if found:
        yield _condition(degraded, "True", found[0][0], "; ".join(words for _, words in found))
    else:
        yield _condition(degraded, "False", Reason.AS_EXPECTED)


def _config(snapshot: Snapshot, findings: Findings) -> ConfigStatus | None:
    if findings.rollout is not None:
        return findings.rollout.status
    if findings.key is not None:
        # New pods would have a key that is not meant for them.
        return ConfigStatus(node_sets=())
    # Somebody else writes slurm.conf there, and the operator cannot know better: every NodeSet may have pods.
    names = tuple(one.name for one, _ in snapshot.node_sets if not one.deleting)
    return ConfigStatus(node_sets=names)


def _last_contact(before: ClusterStatus, slurm: SlurmView | None, *, up: bool) -> datetime | None:
    if up or slurm is None or slurm.answered_at is None:
        return before.last_contact
    return slurm.answered_at.replace(microsecond=0)

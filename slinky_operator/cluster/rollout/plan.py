"""The part of the plan about the configuration: the state of its rollout. Pure.

A change goes through these steps. Each is derived from what can be observed, so the operator may die between any two:

1. it is rendered, with what must stay because jobs use it (`removals`);
2. disposable daemons try it (`decision`); what they reject is not written;
3. the ConfigMap holds the new files;
4. slurmctld mounts and loads them, and shows that it has (`loading`);
5. a second ConfigMap keeps them as the last good ones;
6. the status shows it: `appliedHash`, and `nodeSets` with those that are new.

If slurmctld still rejects the new files, the last good ones are restored, with an annotation on the ConfigMap that says
which were rejected and why.

A NodeSet is added to `status.config.nodeSets` last and removed from it first: it gets pods only while the running
configuration contains it. One NodeSet's text must not block the others: if a configuration is rejected, it is tried
without the changes of NodeSets, and those are then tried one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.actions import Write, asks
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.rollout.config import membership
from slinky_operator.cluster.rollout.config.candidate import Candidate, Refused, Step, Waiting
from slinky_operator.cluster.rollout.config.outcome import Rollout, outcome
from slinky_operator.cluster.rollout.config.rendering import candidate_of
from slinky_operator.cluster.rollout.config.settling import settle
from slinky_operator.cluster.rollout.config.writing import bring_in, leftovers
from slinky_operator.cluster.rollout.in_use.answer import USE_VALID
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.cluster.view import View
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.conf.render import hash_of
from slinky_operator.slurm.tokens.signing_keys import PublicKey

_IN_PROGRESS: Final = frozenset(
    (
        Reason.CONFIG_PENDING,
        Reason.CONFIG_UNTRIED,
        Reason.GRES_IN_USE,
        Reason.NODES_IN_USE,
        Reason.PARTITION_IN_USE,
        Reason.WAITING_FOR_JOBS,
    )
)
"""Reasons of a configuration that waits, or goes through the steps of its rollout."""


def plan_rollout(view: View, first: str = "", own_keys: Sequence[PublicKey] = ()) -> Rollout:
    """Decide the next steps.

    Parameters
    ----------
    first
        What a change that has to be tried waits for; empty if nothing.
    own_keys
        Public halves of the keys that the operator signs tokens with.
    """
    candidate = candidate_of(view, first, own_keys)
    step = _hindrance(candidate)
    if step is not None:
        return outcome(candidate, step)
    if candidate.is_mounted:
        # Until the files are settled, the status says what runs.
        candidate = replace(candidate, status=candidate.stored.status)
        step = settle(candidate)
    else:
        step = bring_in(candidate)
    return _as_told(candidate, outcome(candidate, step))


def _hindrance(candidate: Candidate) -> Step | None:
    """What comes before any step, or prevents it; `None` if nothing does."""
    stored, load, kept = candidate.stored, candidate.load, candidate.kept
    wanted, rendered, good = candidate.wanted, candidate.rendered, stored.last
    usable = not wanted.problems and not rendered.problems
    if stored.current is None and good is not None and not (usable and rendered.files == good["data"]):
        # Whatever is rejected or tried meanwhile: slurmctld must find what it runs.
        cluster = candidate.view.snapshot.cluster
        back = shared_objects.config_map(cluster, good["data"], hash_of(good["data"]), stored.next_change)
        write = Write(Child(CONFIGMAPS, back), stored.mounted)
        return Waiting("changes made by others are being reverted", (write,))
    if usable:
        return None
    done = (*leftovers(candidate), *load.actions)
    if wanted.problems:
        leaving, known = membership.leaving(candidate.view.snapshot, wanted), stored.node_sets
        strangers = [one for one in leaving if one.obj["metadata"]["name"] not in known]
        words = "; ".join(map(str, wanted.problems))
        reason = Reason.CONFIG_SOURCE_NOT_FOUND if wanted.missing else Reason.CONFIG_REFUSED
        return Refused(words, (*done, *strangers), wake_up=load.wake_up, reason=reason)
    # What must stay conflicts with what is wanted; both are kept as they are.
    words = "; ".join((*map(str, rendered.problems), *kept.why))
    wake_up = load.wake_up or USE_VALID
    return Refused(words, (*done, *candidate.asking), wake_up=wake_up, reason=kept.reason)


def _as_told(candidate: Candidate, found: Rollout) -> Rollout:
    """Keep to what a predecessor has said, until Slurm has answered this operator what is in use.

    Two words in turn, before and after that answer, would each be a write of the status: an operator that is killed
    after each would never get past them.
    """
    snapshot = candidate.view.snapshot
    unknown = snapshot.memory.answers.of(UseQuestion) is None
    asks_first = unknown and any(asks(one, UseQuestion) for one in candidate.asking)
    said = find(snapshot.cluster.status.conditions, ClusterCondition.CONFIG_APPLIED)
    if not asks_first or found.applied or said is None or said.status == "True" or said.reason not in _IN_PROGRESS:
        return found
    return replace(found, reason=Reason(said.reason), message=said.message)

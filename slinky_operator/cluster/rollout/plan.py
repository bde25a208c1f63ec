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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import Action, Ask, Write, asks
from slinky_operator.cluster.daemons import Images, shared_objects
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.rollout.config import addresses, loading, manual_changes, membership
from slinky_operator.cluster.rollout.config.candidate import Draft, Rollout, remarks
from slinky_operator.cluster.rollout.config.held_nodesets import held, suspects, unblamed
from slinky_operator.cluster.rollout.config.loading import Loading
from slinky_operator.cluster.rollout.config.settling import look_up_addresses, settle
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.config.writing import Change, bring_in
from slinky_operator.cluster.rollout.in_use import answer, removals
from slinky_operator.cluster.rollout.in_use.removals import Kept
from slinky_operator.cluster.rollout.preflight import decision
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Parsed, parse, render
from slinky_operator.slurm.conf.admit import lines_of
from slinky_operator.slurm.conf.render import hash_of
from slinky_operator.slurm.conf.states import marked
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


def plan_rollout(
    snapshot: Snapshot,
    images: Images,
    now: float,
    wall: datetime,
    first: str = "",
    own_keys: Sequence[PublicKey] = (),
) -> Rollout:
    """Decide the next steps.

    Parameters
    ----------
    first
        What a change that has to be tried waits for; empty if nothing.
    own_keys
        Public halves of the keys that the operator signs tokens with.
    images
        The images of tried daemons if nothing else is set.
    now
        Monotonic seconds.
    wall
        The time of day.
    """
    cluster = snapshot.cluster
    stored = StoredConfig.of(snapshot)
    current, good, is_live = stored.current, stored.good, stored.is_live
    running, text, lines = stored.files, stored.slurm_conf, parse(stored.slurm_conf)
    members, joining = membership.members(snapshot, lines)
    parts = [*map(NodeSetConf.of, members), *membership.unreadable(snapshot, lines)]
    never_ran = stored.never_ran(snapshot, stored.status)
    inputs = ConfInputs.of(
        cluster, parts, snapshot.texts, in_conf.endpoint(snapshot, text, never_ran=never_ran), own_keys
    )
    inputs = replace(inputs, held=held(snapshot, inputs))
    known = addresses.addresses(snapshot, inputs, current, good)
    inputs = addresses.over(inputs, known)
    load, shown = Loading(loading.Stage.LOADED), stored.status
    if current is not None and not is_live:
        load = loading.loading(snapshot, current, now)
        if load.stage is loading.Stage.LOADED and stored.status.applied_hash != hash_of(current["data"]):
            # The status may be another Cluster's, or lost: what slurmctld has shown to run is still reported.
            shown = _shown(members, lines, stored.status, hash_of(current["data"]))
    use = answer.use(snapshot, now)
    # What no slurmctld has ever run has no jobs, and waiting for an answer would block its correction.
    waits = not never_ran

    def drawn(states: Mapping[str, str]) -> tuple[ConfInputs, Draft]:
        given = replace(inputs, states=states, settled=is_live)
        blamed, kept = suspects(snapshot, inputs), Kept()
        if not (wanted := unblamed(render(given, text), blamed)).problems and waits:
            kept = removals.keep(running, wanted.files, use, answer.nodes(snapshot), live=is_live)
        candidate = render(kept.over(given), text)
        left_out, told = decision.untried(snapshot, images, candidate), remarks(wanted, snapshot, known)
        return given, Draft(wanted, candidate, kept, shown, tuple(joining), told, blamed, left_out, known)

    inputs, draft = drawn({})
    states = manual_changes.known(snapshot, is_live=is_live)
    changes = not stored.holds(draft.candidate.hash)
    if states is not None and (changes or marked(text)):
        inputs, draft = drawn(states.states)
        changes = changes or not stored.holds(draft.candidate.hash)
    wanted, candidate, kept = draft.wanted, draft.candidate, draft.kept
    asks = kept.asks and answer.may_ask(snapshot, now)
    asking: tuple[Action, ...] = (Ask(UseQuestion(stored.status.applied_hash)),) if asks else ()
    asking += manual_changes.questions(snapshot, now, is_live=is_live, changes=changes, marked=bool(marked(text)))
    usable = not wanted.problems and not candidate.problems
    if current is None and good is not None and not (usable and candidate.files == good["data"]):
        # Whatever is rejected or tried meanwhile: slurmctld must find what it runs.
        back = shared_objects.config_map(cluster, good["data"], hash_of(good["data"]), stored.next_change)
        write = Write(Child(CONFIGMAPS, back), stored.mounted)
        return draft.waiting("changes made by others are being reverted", write)
    if wanted.problems:
        strangers = [
            one for one in membership.leaving(snapshot, wanted) if lines_of(one.obj["metadata"]["name"], lines) is None
        ]
        words = "; ".join(map(str, wanted.problems))
        reason = Reason.CONFIG_SOURCE_NOT_FOUND if wanted.missing else Reason.CONFIG_REFUSED
        return draft.refused(words, *load.actions, *strangers, wake_up=load.wake_up, reason=reason)
    if candidate.problems:
        # What must stay conflicts with what is wanted; both are kept as they are.
        words = "; ".join((*map(str, candidate.problems), *kept.why))
        wake_up = load.wake_up or answer.USE_VALID
        return draft.refused(words, *load.actions, *asking, wake_up=wake_up, reason=kept.reason)
    change = Change(snapshot, images, inputs, draft, stored, load, asking, first)
    if stored.holds(candidate.hash):
        change = replace(change, draft=replace(draft, known_status=stored.status))
        return _as_told(change, settle(change, look_up_addresses(change, known, now), now, wall))
    return _as_told(change, bring_in(change, now, wall))


def _as_told(change: Change, found: Rollout) -> Rollout:
    """Keep to what a predecessor has said, until Slurm has told this operator what is in use.

    Two words in turn, before and after that answer, would each be a write of the status: an operator that is killed
    after each would never get past them.
    """
    unknown = change.snapshot.memory.answers.of(UseQuestion) is None
    asks_first = unknown and any(asks(one, UseQuestion) for one in change.asking)
    said = find(change.snapshot.cluster.status.conditions, ClusterCondition.CONFIG_APPLIED)
    if not asks_first or found.applied or said is None or said.status == "True" or said.reason not in _IN_PROGRESS:
        return found
    return replace(found, reason=Reason(said.reason), message=said.message)


def _shown(members: Sequence[NodeSet], running: Parsed, status: ConfigStatus, digest: str) -> ConfigStatus:
    """The status of a configuration that slurmctld has loaded, from its slurm.conf."""
    known = (*status.node_sets, *(one.name for one in members if lines_of(one.name, running) is not None))
    return status.model_copy(update={"applied_hash": digest, "node_sets": tuple(sorted(set(known)))})

"""The first part of the rollout: the configuration as the spec wants it, and with what must stay for now. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.rollout.config import addresses, loading, manual_changes, membership
from slinky_operator.cluster.rollout.config.candidate import Candidate
from slinky_operator.cluster.rollout.config.held_nodesets import held, suspects, unblamed
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.in_use import answer, removals
from slinky_operator.cluster.rollout.in_use.removals import Kept
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.cluster.view import View
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Rendered, render
from slinky_operator.slurm.tokens.signing_keys import PublicKey


def candidate_of(view: View, first: str, own_keys: Sequence[PublicKey]) -> Candidate:
    """Render the configuration as it would be written now.

    Parameters
    ----------
    first
        What a change that has to be tried waits for; empty if nothing.
    own_keys
        Public halves of the keys that the operator signs tokens with.
    """
    snapshot = view.snapshot
    stored = StoredConfig.of(snapshot)
    running = stored.running.lines
    members, joining = membership.members(snapshot, stored.node_sets)
    parts = [*map(NodeSetConf.of, members), *membership.unreadable(snapshot, running)]
    never_ran = stored.never_ran(snapshot, stored.status)
    endpoint = in_conf.endpoint(snapshot, running, never_ran=never_ran, is_lost=stored.is_lost)
    inputs = ConfInputs.of(snapshot.cluster, parts, snapshot.texts, endpoint, own_keys)
    inputs = replace(inputs, held=held(snapshot, inputs))
    known = addresses.addresses(snapshot, inputs, stored.current, stored.last, is_lost=stored.is_lost)
    inputs = replace(inputs, future=known.future)
    load, status = loading.progress(view, stored, members)
    states = manual_changes.known(snapshot, is_live=stored.is_live)
    shown, marks = states.states if states is not None else {}, bool(running.set_states)
    written = shown if marks else {}
    while True:
        given, wanted, rendered, kept = _texts(view, stored, inputs, written, never_ran=never_ran)
        changes = stored.digest != rendered.hash
        if not changes or written == shown:
            break
        # A state that Slurm shows causes no write by itself; it goes with any other change.
        written = shown
    due = kept.asks and answer.may_ask(snapshot, view.now)
    asking: tuple[Action, ...] = (Ask(UseQuestion(stored.status.applied_hash)),) if due else ()
    if stored.is_live and (changes or marks):
        asking += manual_changes.questions(snapshot, view.now, states, marked=marks)
    return Candidate(view, stored, load, status, given, wanted, rendered, kept, known, tuple(joining), asking, first)


def _texts(
    view: View, stored: StoredConfig, inputs: ConfInputs, states: Mapping[str, str], *, never_ran: bool
) -> tuple[ConfInputs, Rendered, Rendered, Kept]:
    """Render what the spec wants, and the same with what must stay; the first is what both are made of.

    Parameters
    ----------
    states
        Of partitions, as Slurm shows them.
    never_ran
        Whether no slurmctld has run with any configuration of the Cluster.
    """
    snapshot, kept = view.snapshot, Kept()
    given = replace(inputs, states=states, settled=stored.is_live)
    wanted = render(given, stored.running.lines)
    # What no slurmctld has ever run has no jobs, and waiting for an answer would block its correction.
    if not wanted.problems and not never_ran:
        use, nodes = answer.use(snapshot, view.now), answer.nodes(snapshot)
        kept = removals.keep(stored.running, wanted, use, nodes, live=stored.is_live)
        if stored.is_lost:
            kept = removals.all_of_unknown(use)
    staying = kept.over(given)
    rendered = wanted if staying == given else render(staying, stored.running.lines)
    return given, unblamed(wanted, suspects(snapshot, inputs)), rendered, kept

"""Steps about signing keys: who owns them, which the daemons have, and how slurmctld gets a changed one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from slinky_operator.cluster.actions import Action, AdoptKey, Ask, Remove
from slinky_operator.cluster.parts.keys import key_loading, lifecycle
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.proof import key_steps
from slinky_operator.cluster.parts.keys.proof.question import KeySetQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.kube.resources import PODS
from slinky_operator.slurm import naming

WATCH: Final = 3.0
"""Seconds until the next pass while daemons have not proven to have their key set."""


def adopt_keys(state: PassState) -> Iterator[Action]:
    """Take over Secrets that a former Cluster of this name has left: their owner is proven before they are used."""
    cluster, sources = state.snapshot.cluster, state.snapshot.sources
    for name in naming.generated_secrets(cluster.name):
        found = sources.get(name)
        if found is None or not found.exists or found.cluster_name != cluster.name:
            continue
        if found.cluster_uid not in {"", cluster.uid}:
            yield AdoptKey(found.name, found.object_uid)


def keep_keys(state: PassState) -> Iterable[Action]:
    """Create, restore, seal and copy the keys of a managed Cluster."""
    keys = lifecycle.look(state.snapshot, state.now, state.wall)
    state.note(keys)
    return keys.actions


def read_keys(state: PassState) -> Iterable[Action]:
    """Read which key an external Cluster has."""
    state.note(lifecycle.look_elsewhere(state.snapshot))
    return ()


def load_changed_key(state: PassState) -> Iterable[Action]:
    """Let slurmctld read a key of auth/jwt that has changed; if it is external, check whether it has."""
    snapshot, keys = state.snapshot, state.found(Keys)
    settled = not snapshot.cluster.spec.external and StoredConfig.of(snapshot).is_live and keys.held is None
    step = key_loading.load(snapshot, keys, state.now, settled=settled)
    state.wake_up(step.wake_up)
    return step.actions


def load_key_set(state: PassState) -> Iterator[Action]:
    """Ask daemons whether they have the accepted key set of auth/slurm, and let slurmctld and slurmds read it."""
    snapshot, keys, now = state.snapshot, state.found(Keys), state.now
    found, source = keys.standing, naming.slurm_key(snapshot.cluster)
    if found is None or found.set is None or source is None or not found.lacking:
        return
    state.wake_up(WATCH)
    if found.asked:
        yield Ask(KeySetQuestion(found.set, found.asked, found.all, found.since or state.wall))
    if keys.held is None:
        for pod in key_steps.to_restart(snapshot, source, found, keys.secrets.seen, now, state.wall):
            yield Remove(PODS, pod["metadata"]["name"], pod["metadata"]["uid"])
    # A changed key of auth/jwt is loaded by a reconfigure too, which is this one as well.
    if keys.held is None and not keys.changed and snapshot.slurm_answers and StoredConfig.of(snapshot).is_live:
        due = key_steps.reload_due(snapshot, source, found, keys.secrets.seen, now, state.wall)
        if due <= 0:
            since = key_steps.touched_after(snapshot, source, keys.secrets.seen, now, state.wall)
            step = key_loading.tell(snapshot, since, now)
            state.wake_up(step.wake_up)
            yield from step.actions

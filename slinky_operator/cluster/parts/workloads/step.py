"""Steps about daemons and what slurmd pods share: images, the replacement of slurmctld's pod, objects. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Ask, EmitEvent, Remove, Write
from slinky_operator.cluster.daemons import default_images, shared_objects
from slinky_operator.cluster.daemons.component import Materials
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.configuration.part import Configuration
from slinky_operator.cluster.parts.daemons import Made
from slinky_operator.cluster.parts.keys import lifecycle
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.login_sets.manifests import login_sets
from slinky_operator.cluster.parts.slurmctld import manifests as slurmctld
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.parts.slurmctld.claim_question import ClaimQuestion
from slinky_operator.cluster.parts.slurmctld.manifests import SLURMCTLD
from slinky_operator.cluster.parts.upgrade import order
from slinky_operator.cluster.parts.upgrade.asking import Answers, ask
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.preflight import running_release
from slinky_operator.cluster.rollout.preflight.replacement import (
    Replacement,
    Stage,
    replacement,
    without_files,
)
from slinky_operator.cluster.trials import engine, pods
from slinky_operator.cluster.writes.due import writes
from slinky_operator.kube.events import EventType
from slinky_operator.kube.resources import LOGINSETS, PODDISRUPTIONBUDGETS, SERVICES
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.conf import ConfFiles
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

ASK_CLAIM_EVERY: Final = 5.0
"""Seconds between two queries of the claim of a slurmctld without a pod."""


def keep_images(state: PassState) -> Iterable[Action]:
    """Find the image of each daemon for which the Cluster names none."""
    snapshot = state.snapshot
    state.images = default_images.kept(snapshot, state.images, daemons.wanted(snapshot.cluster))
    return ()


def try_replacement(state: PassState) -> Iterable[Action]:
    """Try the pod that will replace slurmctld's."""
    snapshot, mounted = state.snapshot, state.mounted
    if snapshot.cluster.deleting or SLURM_CONF not in mounted.files:
        stays = without_files(snapshot)
        state.note(stays)
        return stays.actions
    wanted: Child | None = None
    try:
        wanted = SLURMCTLD.workload(_materials(state, mounted))
    except RefusedFragment:
        # It stays unchanged; the step `write_daemons` reports it.
        wanted = None
    found = replacement(state.view, wanted)
    state.note(found)
    state.wake_up(found.wake_up)
    return found.actions


def write_daemons(state: PassState) -> Iterator[Action]:
    """Write the objects of all daemons, and what slurmd pods share; slurmctld's pod stays until its next is tried."""
    snapshot, swap = state.snapshot, state.found(Replacement)
    keys, rollout = state.found(Keys), state.found(Configuration).rollout
    assert rollout is not None  # noqa: S101 - the configuration comes before
    made = daemons.make(_materials(state, state.mounted if state.mounted.files else rollout.rendered))
    workloads = tuple(_as_lost(state, one) for one in (*made.children, *login_sets(snapshot.cluster)))
    asked = _ask_releases(state, workloads)
    yield from asked.actions
    upgrade = order.in_order(snapshot, workloads, asked, swap)
    state.note(upgrade)
    workloads = tuple(order.keeping_images(snapshot, upgrade.held, one) for one in workloads)
    children = (*_shared(state), *workloads)
    if swap.stage is not Stage.FREE:
        children = tuple(_with_running_pod(state, one) for one in children)
    children = tuple(_with_release(state, one) for one in children)
    state.note(replace(made, children=children))
    if rollout.rendered.problems and state.config_map is None:
        return
    # Pods whose Secrets are missing would wait for them with growing back-off; and the keys of daemons are recorded
    # before the first daemon is written.
    held = frozenset() if keys.mountable else daemons.mounting_keys(snapshot.cluster)
    unprepared = daemons.unprepared(snapshot)
    for write in writes(snapshot, children, state.now):
        key = write.child.key
        waits = key in upgrade.held and write.child.resource is not LOGINSETS
        is_free = key not in unprepared and not waits
        if is_free and (key not in held or key in snapshot.children):
            yield from _told(state, write)
            yield write


def _told(state: PassState, write: Write) -> Iterator[Action]:
    """Say, with the write that brings its image, that slurmctld's state could not be tried."""
    snapshot, reason, words = state.snapshot, Reason.STATE_NOT_TRIED, state.found(Replacement).untried
    is_slurmctld = write.child.key == SLURMCTLD.key(snapshot.cluster)
    if words and is_slurmctld and snapshot.memory.last_events.get(reason) != words:
        yield EmitEvent(snapshot.raw, EventType.WARNING, reason, words)


def write_shared(state: PassState) -> Iterable[Action]:
    """Write what slurmd pods share if their slurmctld is external."""
    made = Made(_shared(state))
    state.note(made)
    return writes(state.snapshot, made.children, state.now)


def remove_unwanted(state: PassState) -> Iterator[Action]:
    """Delete the objects of daemons that the spec no longer asks for."""
    cluster, children = state.snapshot.cluster, state.found(Made).children
    resources = {child.resource.kind: child.resource for child in children}
    resources |= {one.resource.kind: one.resource for one in daemons.DAEMONS}
    unwanted = {one.component for one in daemons.DAEMONS if not one.is_wanted(cluster)}
    known = {one.component for one in daemons.DAEMONS}
    made = {child.key for child in children}
    for (kind, name), obj in sorted(state.snapshot.children.items()):
        component = (obj["metadata"].get("labels") or {}).get(labels.LABEL_APP_COMPONENT)
        # These do not depend on a template, which may be refused: one that has not been made is not wanted.
        surplus = kind in {SERVICES.kind, PODDISRUPTIONBUDGETS.kind} and component in known and (kind, name) not in made
        if (
            (component in unwanted or surplus)
            and adoption.is_ours(obj, cluster)
            and not obj["metadata"].get("deletionTimestamp")
        ):
            yield Remove(resources[kind], name, obj["metadata"]["uid"])
    wanted = {child.key for child in login_sets(cluster)}
    for (kind, name), obj in sorted(state.snapshot.children.items()):
        gone = kind == LOGINSETS.kind and (kind, name) not in wanted
        if gone and adoption.is_ours(obj, cluster) and not obj["metadata"].get("deletionTimestamp"):
            yield Remove(LOGINSETS, name, obj["metadata"]["uid"])


def ask_claim(state: PassState) -> Iterator[Action]:
    """Query slurmctld's claim if slurmctld has no pod, although its StatefulSet exists."""
    snapshot = state.snapshot
    name, known = slurmctld.claim_name(snapshot), snapshot.memory.answers.of(ClaimQuestion)
    there = snapshot.pods.controller is not None or snapshot.pods.controller_ending is not None
    if there or not name or SLURMCTLD.key(snapshot.cluster) not in snapshot.children:
        return
    if known is None or state.now - known.at >= ASK_CLAIM_EVERY:
        yield Ask(ClaimQuestion(name))


def _materials(state: PassState, conf: ConfFiles) -> Materials:
    notes = lifecycle.notes(state.snapshot, state.found(Keys))
    return Materials(state.snapshot, state.images, conf.lines, notes)


def _ask_releases(state: PassState, workloads: tuple[Child, ...]) -> Answers:
    """Ask the images that daemons are to get which Slurm they have."""
    snapshot = state.snapshot
    live = snapshot.children.get(SLURMCTLD.key(snapshot.cluster))
    if live is None or snapshot.cluster.deleting:
        return Answers(actions=engine.leftovers(snapshot, pods.VERSIONS))
    template = live["spec"]["template"]["spec"]
    needed, secrets = order.questions(snapshot, workloads), order.pull_secrets(workloads)
    found = ask(state.view, needed, template, secrets)
    state.wake_up(found.wake_up)
    return found


def _shared(state: PassState) -> tuple[Child, ...]:
    """What all slurmd pods of a Cluster share."""
    cluster = state.snapshot.cluster
    return (
        Child(SERVICES, shared_objects.node_service(cluster)),
        Child(PODDISRUPTIONBUDGETS, shared_objects.disruption_budget(cluster)),
    )


def _as_lost(state: PassState, child: Child) -> Child:
    """slurmctld's StatefulSet, if it is lost, with the image that it had; any other object unchanged."""
    image = default_images.lost(state.snapshot) if child.key == SLURMCTLD.key(state.snapshot.cluster) else ""
    return slurmctld_pod.with_image(child, image) if image else child


def _with_release(state: PassState, child: Child) -> Child:
    """slurmctld's StatefulSet with the release of its image; any other object unchanged."""
    if child.key != SLURMCTLD.key(state.snapshot.cluster):
        return child
    live, last = state.snapshot.children.get(child.key), state.snapshot.cluster.status.slurmctld_image
    # Slurm shows the release of the image with which it was last up.
    is_untold = live is None and bool(last) and slurmctld_pod.image(child.body["spec"]["template"]) != last
    return running_release.noted(child, live, state.found(Replacement).release, is_untold=is_untold)


def _with_running_pod(state: PassState, child: Child) -> Child:
    """slurmctld's StatefulSet with the running pod; any other object unchanged."""
    live = state.snapshot.children.get(child.key)
    if live is None or child.key != SLURMCTLD.key(state.snapshot.cluster):
        return child
    return slurmctld_pod.as_it_runs(child, live, restarts=state.found(Replacement).restarts)

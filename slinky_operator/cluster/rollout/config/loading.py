"""The part of the plan that makes slurmctld load what its ConfigMap holds. Pure.

1. slurmctld's pod is touched, and its kubelet refreshes the volume;
2. the agent shows that the files are mounted;
3. slurmctld gets a reconfigure, once, and shows that it has read its files.

A slurmctld that resolves names of nodes answers nothing for ten seconds per unknown name, and its answer to the
`reconfigure` is a timeout. A second one would only start this again: whatever the result of the first one, only the
check of its outcome is repeated, and a second one follows if slurmctld answers and has read nothing.

Each step is derived from what can be observed, so that the operator may die between any two. `progress` says how far
this is, and which files are known to run by now. Whether they are the right ones is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from slinky_api import labels
from slinky_api.conditions import ClusterCondition, find
from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import Action, Ask, Reload, ReplacePod, TouchPod
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.parts.daemons import DAEMONS
from slinky_operator.cluster.parts.volumes.question import room_of_state
from slinky_operator.cluster.rollout.agent_questions import FilesQuestion
from slinky_operator.cluster.rollout.config import addresses
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.agent.files import expected
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import subjects
from slinky_operator.slurm.conf.render import SLURM_CONF, hash_of
from slinky_operator.slurm.conf.syntax.parsed import Parsed
from slinky_operator.slurm.pods.exit_messages import fault_of

RECONFIGURING: Final = "reconfiguring"
"""What is said once files are mounted, until slurmctld has read them."""

ASK_EVERY: Final = 0.25
"""Seconds between two queries to the agent while a change is in progress."""

ASK_EVERY_IN_VAIN: Final = 1.0
"""The same while it does not answer."""

TOUCH_AGAIN: Final = 3.0
"""Seconds until the pod is touched again: a kubelet that has not seen the new ConfigMap yet mounts the old one."""

RETRY_LOST: Final = 1.0
"""Seconds until the next pass if nothing answered."""

LATE: Final = 60.0
"""Seconds that a reconfigure may take beside resolving names; after that it is reported."""

RETRY_RELOAD: Final = 5.0
"""Seconds until the next pass if slurmctld rejected the configuration."""


class Stage(Enum):
    """How far slurmctld has loaded its files."""

    UNDER_WAY = auto()
    LOADED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Loading:
    """What is known of slurmctld and its ConfigMap, and what to do."""

    stage: Stage
    message: str = ""
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    ended: bool = False
    """Whether slurmctld has repeatedly exited on the files."""


def progress(view: View, stored: StoredConfig, members: Sequence[NodeSet]) -> tuple[Loading, ConfigStatus]:
    """How far slurmctld has loaded what it mounts, and what is known to run."""
    current, status = stored.current, stored.status
    if current is None or stored.is_live:
        return Loading(Stage.LOADED), status
    load = loading(view.snapshot, current, stored.running.lines, view.now)
    if load.stage is not Stage.LOADED or status.applied_hash == stored.digest:
        return load, status
    # The status may be another Cluster's, or lost: what slurmctld has shown to run is still reported.
    shown = (one.name for one in members if one.name in stored.running.lines.node_sets)
    known = (*status.node_sets, *shown)
    return load, status.model_copy(update={"applied_hash": stored.digest, "node_sets": tuple(sorted(set(known)))})


def loading(snapshot: Snapshot, config_map: Object, conf: Parsed, now: float) -> Loading:
    """Decide the next step for the files in a ConfigMap that slurmctld is not known to run yet.

    Parameters
    ----------
    conf
        What its slurm.conf says.
    """
    files = config_map.get("data") or {}
    digest = hash_of(files)
    pod = snapshot.pods.controller
    if pod is None:
        return Loading(Stage.UNDER_WAY, "slurmctld has no pod yet")
    if in_conf.must_restart(snapshot.cluster, pod, conf):
        # It would refuse them: the next pod reads them when it starts.
        return Loading(Stage.UNDER_WAY, "slurmctld's pod is being replaced, to take its cluster id from slurmdbd")
    mounting = _mount(snapshot, pod, files, digest, now)
    if mounting is not None:
        return mounting
    if not snapshot.slurm_answers:
        words = fault_of(pod, naming.CONTROLLER_CONTAINER)
        about = named(subjects.refused(words, files.get(SLURM_CONF, ""))) if words else ""
        words = f"{about}: {words}" if about else words
        ended = f"; slurmctld has ended: {words}" if words else ""
        message = f"{_asked(snapshot, config_map, pod, now)}waiting for Slurm to answer{ended}"
        # One exit may have any cause; repeated exits are caused by what slurmctld finds when it starts.
        keeps_ending = bool(words) and _waits_to_restart(pod)
        stage = Stage.REFUSED if keeps_ending else Stage.UNDER_WAY
        return Loading(stage, message, _replacements(snapshot, digest), ended=keeps_ending)
    return _load(snapshot, pod, config_map, conf, now)


def _mount(snapshot: Snapshot, pod: Object, files: Object, digest: str, now: float) -> Loading | None:
    """Steps 1 and 2; `None` once the agent has shown the files."""
    metadata, message = pod["metadata"], "waiting for the files to be mounted"
    touched = (metadata.get("annotations") or {}).get(labels.ANNOTATION_CONFIG_TOUCH, "").split(".")[0]
    if touched != digest:
        return Loading(Stage.UNDER_WAY, message, (TouchPod(pod, digest, digest),), 1.0)
    if not (pod.get("status") or {}).get("podIP"):
        return Loading(Stage.UNDER_WAY, "slurmctld's pod has no address yet")
    mounted = snapshot.memory.answers.of(FilesQuestion)
    if mounted is None or mounted.pod_uid != metadata["uid"]:
        # Not two words in turn: each is a write, and an operator that is killed after each would never get past them.
        stored = find(snapshot.cluster.status.conditions, ClusterCondition.CONFIG_APPLIED)
        was_loading = mounted is None and stored is not None and stored.message == RECONFIGURING
        words = RECONFIGURING if was_loading else message
        return Loading(Stage.UNDER_WAY, words, (Ask(FilesQuestion(pod)),), ASK_EVERY)
    last, at = snapshot.memory.rollout.touched
    # An answer from before the touch may be outdated: the files may have changed, and back.
    seen = mounted.asked_at >= at or last != digest
    if mounted.files == expected(files) and seen:
        return None
    every = ASK_EVERY_IN_VAIN if mounted.why else ASK_EVERY
    actions: list[Action] = []
    if seen and (last != digest or now - at >= TOUCH_AGAIN):
        actions.append(TouchPod(pod, digest, f"{digest}.{int(now)}"))
    if not seen or now - mounted.asked_at >= every:
        actions.append(Ask(FilesQuestion(pod)))
    return Loading(Stage.UNDER_WAY, f"{message}{f': {mounted.why}' if mounted.why else ''}", tuple(actions), every)


def _load(snapshot: Snapshot, pod: Object, config_map: Object, conf: Parsed, now: float) -> Loading:
    """Step 3, for files that are mounted."""
    change = _change(config_map)
    uid, loaded = pod["metadata"]["uid"], _last(snapshot, pod, change)
    message = RECONFIGURING
    if loaded is not None:
        if loaded.proven:
            return Loading(Stage.LOADED)
        message = f"{_asked(snapshot, config_map, pod, now)}{loaded.why}"
        if loaded.lost and now - loaded.at < RETRY_LOST:
            return Loading(Stage.UNDER_WAY, message, (), RETRY_LOST)
        if not loaded.lost and now - loaded.at < RETRY_RELOAD:
            return Loading(Stage.REFUSED, loaded.why, (), RETRY_RELOAD)
    shown = {name: line.get("Nodes") for name, line in conf.partitions.items()}
    action = Reload(uid, change, shown, loaded, conf.words_for_node_sets, room_of_state(pod))
    return Loading(Stage.UNDER_WAY, message, (action,))


def is_asked(snapshot: Snapshot, config_map: Object) -> bool:
    """Whether slurmctld got a reconfigure for these files, and has not shown yet that it has read them."""
    pod = snapshot.pods.controller
    loaded = None if pod is None else _last(snapshot, pod, _change(config_map))
    return loaded is not None and loaded.asked is not None


def _change(config_map: Object) -> str:
    return shared_objects.change_of(config_map) or hash_of(config_map.get("data") or {})


def _last(snapshot: Snapshot, pod: Object, change: str) -> Loaded | None:
    loaded = snapshot.memory.rollout.loaded
    same = loaded is not None and loaded.pod_uid == pod["metadata"]["uid"] and loaded.change == change
    return loaded if same else None


def _asked(snapshot: Snapshot, config_map: Object, pod: Object, now: float) -> str:
    """How long slurmctld has been reading its files."""
    loaded = _last(snapshot, pod, _change(config_map))
    if loaded is None or loaded.asked is None:
        return "the files are mounted; "
    limit = LATE + addresses.look_up_time(config_map)
    if now - loaded.since <= limit:
        return "slurmctld was asked to reconfigure and has not read its files yet; "
    return f"slurmctld was asked to reconfigure and has not read its files for more than {limit:.0f} s; "


def _replacements(snapshot: Snapshot, digest: str) -> tuple[ReplacePod, ...]:
    """Pods in a long back-off, although the cause of their failure has been corrected.

    Once for each configuration: what fails with this one too is left to the kubelet's back-off.
    """
    return tuple(
        ReplacePod(pod, daemon.component, digest)
        for daemon in DAEMONS
        for pod in daemon.pods(snapshot)
        if _waits_to_restart(pod) and (daemon.component, digest) not in snapshot.memory.rollout.replaced
    )


def _waits_to_restart(pod: Object) -> bool:
    return any(
        ((one.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
    )

"""The part of the plan that loads a changed key of auth/jwt into slurmctld. Pure.

slurmctld reads it when it starts and with each reconfigure, from what its kubelet has mounted by then. Only a token can
show that: one signed with the new key is tried, and once slurmctld accepts it, the earlier key is dropped. The trial is
a call that slurmctld answers by itself: slurmdbd has the key too, reads it at its start only, and is restarted for it
once slurmctld has it, or has been by somebody else before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_operator.cluster.actions import Action, Ask, Reload, TouchPod
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion
from slinky_operator.cluster.parts.volumes.question import room_of_state
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.render import SLURM_CONF, hash_of
from slinky_operator.slurm.conf.syntax.parsed import parse
from slinky_operator.slurm.connection.contact import ContactState

MOUNTED_AFTER: Final = 2.0
"""Seconds that a kubelet gets to mount a changed Secret, once its pod was touched."""

PAUSE: Final = 4.0
"""Seconds until the next reconfigure if slurmctld has not read a key; doubled each time."""

LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """What to do about a changed key, and when to check again."""

    actions: tuple[Action, ...] = ()
    wake_up: float | None = None


def load(snapshot: Snapshot, keys: Keys, now: float, *, settled: bool) -> Step:
    """Decide the next step.

    Parameters
    ----------
    settled
        Whether slurmctld may get a reconfigure: it is managed, runs what its ConfigMap holds, and would not read
        another key of auth/slurm along with this one.
    """
    slurm, memory = snapshot.slurm, snapshot.memory
    if not keys.changed or slurm is None or slurm.contact.state is not ContactState.READY:
        return Step()
    trial, loaded = memory.answers.of(KeyQuestion), memory.rollout.loaded
    attempt = Ask(KeyQuestion(keys.changed, snapshot.cluster.spec.token_lifetime))
    if trial is None or trial.key != keys.changed or (loaded is not None and loaded.at > trial.at):
        return Step((attempt,), MOUNTED_AFTER)
    pause = min(LONGEST_PAUSE, PAUSE * 2 ** min(trial.attempts - 1, 10))
    due = trial.at + pause - now
    if trial.accepted:
        return Step()
    if not settled:
        return Step((attempt,) if due <= 0 else (), max(due, MOUNTED_AFTER))
    if due > 0 and trial.attempts > 1:
        return Step((), due)
    return tell(snapshot, trial.at, now)


def tell(snapshot: Snapshot, since: float, now: float) -> Step:
    """Let the Secret be mounted, then let slurmctld read its files.

    Parameters
    ----------
    since
        Monotonic seconds: an earlier touch of its pod does not count.
    """
    pod = snapshot.pods.controller
    config_map = snapshot.children.get(("ConfigMap", naming.config(snapshot.cluster.name)))
    if pod is None or config_map is None:
        return Step((), MOUNTED_AFTER)
    files = config_map.get("data") or {}
    digest, touched = hash_of(files), snapshot.memory.rollout.touched[1]
    if touched <= since:
        return Step((TouchPod(pod, digest, f"{digest}.{int(now)}"),), MOUNTED_AFTER)
    if now - touched < MOUNTED_AFTER:
        return Step((), MOUNTED_AFTER - (now - touched))
    parsed = parse(files[SLURM_CONF])
    shown = {name: line.get("Nodes") for name, line in parsed.partitions.items()}
    uid, change, last = (
        pod["metadata"]["uid"],
        shared_objects.change_of(config_map) or digest,
        snapshot.memory.rollout.loaded,
    )
    # The outcome of one sent before is checked first.
    on_its_way = last is not None and (last.pod_uid, last.change) == (uid, change) and last.asked is not None
    before = last if on_its_way else None
    return Step((Reload(uid, change, shown, before, parsed.words_for_node_sets, room_of_state(pod)),), MOUNTED_AFTER)

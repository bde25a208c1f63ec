"""The part of the plan that prevents daemons from reading a key that others do not have. Pure.

slurmctld reads its keys when it starts and when it reconfigures, and makes slurmds read theirs; from mounted Secrets,
of which the operator knows what they contained when they were last read.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.cluster.actions import Action, ReadKeys, Reload, ReplacePod, Write
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.secrets.checks import Missing, not_allowed
from slinky_operator.slurm import naming

KEYS_VALID: Final = 15.0
"""Seconds for which Secrets count that were read for this purpose; earlier reads for other reasons do not count."""


def guarded(actions: list[Action], snapshot: Snapshot, keys: Keys, now: float) -> list[Action]:
    """Drop actions that would let a daemon read a key that others lack; Secrets are read again before the rest.

    Parameters
    ----------
    actions
        The actions of the plan, in order.
    keys
        What is known of the Cluster's keys.
    now
        Monotonic seconds.

    Returns
    -------
    list
        The actions to carry out now; a `ReadKeys` instead of those that read keys, if Secrets must be read first.
    """
    kept = [one for one in actions if not (_reads_keys(one, snapshot) and _is_held(one, keys))]
    purpose = " ".join(_purpose(one) for one in kept if _reads_keys(one, snapshot))
    if not purpose:
        return kept
    asked_for, asked = snapshot.memory.keys.asked
    valid = asked_for == purpose and now - asked <= KEYS_VALID
    old = tuple(sorted(name for name, one in snapshot.sources.items() if not valid or one.read_at < asked))
    if not old:
        return kept
    return [*(one for one in kept if not _reads_keys(one, snapshot)), ReadKeys(old, purpose)]


def _purpose(action: Action) -> str:
    """Identify what Secrets are read for, from the action that follows."""
    match action:
        case Reload():
            return f"reload:{action.pod_uid}:{action.change}"
        case ReplacePod():
            return f"replace:{action.pod['metadata']['uid']}:{action.hash}"
        case Write():
            return f"write:{action.child.name}:{action.child.digest}"
        case _:
            return type(action).__name__


def foreign_key_trouble(snapshot: Snapshot) -> Missing | None:
    """Why slurmd pods may not have the key of auth/slurm of an external Slurm."""
    key = naming.slurm_key(snapshot.cluster)
    return not_allowed(snapshot, key.secret, "key of auth/slurm") if key is not None else None


def _reads_keys(action: Action, snapshot: Snapshot) -> bool:
    """Whether it makes slurmctld, or slurmds through it, read their keys again."""
    if isinstance(action, Write):
        return action.child.key in daemons.mounting_keys(snapshot.cluster) and action.child.key in snapshot.children
    of_slurmctld = isinstance(action, ReplacePod) and action.component == naming.COMPONENT_CONTROLLER
    return of_slurmctld or isinstance(action, Reload)


def _is_held(action: Action, keys: Keys) -> bool:
    if isinstance(action, Reload):
        return keys.held is not None
    return keys.held is not None or not keys.mountable

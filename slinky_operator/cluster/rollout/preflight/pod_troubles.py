"""Which slurmds in a preflight's pod cannot be tried for reasons of their own. Pure.

These reasons are: an image that cannot be pulled or is still being pulled, one without a shell or a slurmd, and a
container that cannot be started with its security context. A failure of slurmctld's container, or of scheduling, is not
slurmd's own: nothing can be tried then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_operator.cluster.trials.preflight_pod import SlurmdKind
from slinky_operator.cluster.trials.problems import not_started
from slinky_operator.cluster.trials.scripts import UNDECIDED, UNTRIED
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import ended, held_up, short

SLOW: Final = timedelta(seconds=20)
"""How long the others wait for a container that is not started, once slurmctld's is."""

_SLURMD: Final = re.compile(r"slurmd-[0-9]{1,6}", re.ASCII)
_KILLED: Final = 128
"""Exit codes above this one are signals."""


def own(pod: Object, tried: Sequence[SlurmdKind], wall: datetime, *, patient: bool = False) -> dict[str, str]:
    """Why some slurmds cannot be tried, by `SlurmdKind.key`.

    Parameters
    ----------
    tried
        In the order of their containers.
    patient
        Whether to wait for an image that is being pulled.
    """
    found: dict[str, str] = {}
    ends = ended(pod)
    others_passed = any(name != naming.CONTROLLER_CONTAINER and end.get("exitCode") == 0 for name, end in ends.items())
    statuses = {one["name"]: one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
    slow = "" if patient else _slow(statuses, wall)
    for number, kind in enumerate(tried):
        name = f"slurmd-{number}"
        words = held_up(statuses.get(name, {}))
        if not words and name in ends:
            words = _ended(ends[name], others_passed=others_passed)
        if not words and name == slow:
            words = f"its container has not been started in {SLOW.seconds} s; the image may still be being pulled"
        if words:
            found[kind.key] = f"image {kind.image}: {words}"
    return found


def passed(pod: Object, number: int) -> bool:
    """Whether one slurmd has accepted the configuration."""
    return ended(pod).get(f"slurmd-{number}", {}).get("exitCode") == 0 and ended(pod).get(
        naming.CONTROLLER_CONTAINER, {}
    ).get("exitCode") in {0, None}


def place(container: str) -> int:
    """Position of the slurmd that a container runs."""
    return int(container.rpartition("-")[2])


def _ended(end: Mapping[str, Any], *, others_passed: bool) -> str:
    code, message = end.get("exitCode"), end.get("message") or ""
    if not_started(end):
        return not_started(end)
    if code == UNTRIED:
        return f"there is no slurmd in it that can be run: {short(message) or 'no word'}"
    # If other slurmds accept the same files, the files are not why this one neither ends nor answers.
    if others_passed and code == UNDECIDED:
        return f"its slurmd neither runs nor ends: {short(message) or 'no word'}"
    if others_passed and isinstance(code, int) and code > _KILLED:
        return f"its container was killed: {end.get('reason') or code}"
    return ""


def _slow(statuses: Mapping[str, Object], wall: datetime) -> str:
    """The container that prevents the next ones from being started; empty if none has done so for long.

    A kubelet starts the containers of a pod one after the other, each once its image is there.
    """
    state = statuses.get(naming.CONTROLLER_CONTAINER, {}).get("state") or {}
    started = ((state.get("running") or state.get("terminated")) or {}).get("startedAt")
    last = datetime.fromisoformat(started) if started else None
    # An admission webhook may have put a container of its own beside them.
    slurmds = sorted(filter(_SLURMD.fullmatch, statuses), key=place)
    for name in slurmds:
        state = statuses[name].get("state") or {}
        at = ((state.get("running") or state.get("terminated")) or {}).get("startedAt")
        if at:
            last = max(last, datetime.fromisoformat(at)) if last else None
        elif state.get("waiting") and not held_up(statuses[name]):
            return name if last is not None and wall - last > SLOW else ""
    return ""

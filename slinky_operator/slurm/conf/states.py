"""States of partitions that an administrator has set by `scontrol`, which a reconfigure would take back.

slurmctld gives each partition the state of its line when it reads its files. So the state it shows goes into the line
before a change is applied, and a comment tells that it is not the spec's (`syntax.set_states`): it stays until the
administrator sets another, or the spec asks for another than it did then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_operator.slurm.conf.keys.merge import KEEP_STATES
from slinky_operator.slurm.conf.syntax.parsed import Line, Parsed
from slinky_operator.slurm.conf.syntax.set_states import SetState

UP: Final = "UP"
STATES: Final = frozenset({"UP", "DOWN", "DRAIN", "INACTIVE"})
"""What an administrator can set; a state of another name is none."""


def set_by_hand(wanted: Mapping[str, Line], running: Parsed, shown: Mapping[str, str]) -> dict[str, SetState]:
    """Find the states that stay though the spec says otherwise.

    Parameters
    ----------
    wanted
        Lines of partitions as the spec has them, by name.
    running
        The slurm.conf that slurmctld has read.
    shown
        States that slurmctld shows, by name; a partition that is not in here is as its line says.
    """
    found = {}
    for name, line in wanted.items():
        spec = line.state
        old = running.partitions.get(name)
        if old is None:
            continue
        state = shown.get(name, old.state)
        mark = running.set_states.get(name)
        by_hand = state != old.state or (mark is not None and mark.spec == spec and mark.state == state)
        if state in STATES and by_hand and state != spec:
            found[name] = SetState(state, spec)
    return found


def move(wanted: Mapping[str, Line], by_hand: Mapping[str, SetState], running: Parsed, *, settled: bool) -> bool:
    """Whether slurmctld must take a state from its files, which `ReconfigFlags=KeepPartState` would keep it from.

    A flag that was left out comes back when slurmctld has read the files without it.
    """
    for name, line in wanted.items():
        old = running.partitions.get(name)
        state = by_hand[name].state if name in by_hand else line.state
        if old is not None and old.state != state:
            return True
    return bool(running.partitions) and not settled and KEEP_STATES not in running.value("ReconfigFlags").lower()

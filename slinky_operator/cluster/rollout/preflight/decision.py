"""The part of the plan about preflights: whether a configuration has been tried, and the outcome. Pure.

Nothing is applied until disposable daemons have accepted it, once for each configuration (`attempts`).

A slurmd kind that cannot be tried for reasons of its own (`pod_troubles`) is left out, and the others are tried without
it. Its pods may run nevertheless, if their Nodes have an image that others cannot pull: it is then tried on one of
those Nodes, alone. If that is not possible either, only changes that cannot end any slurmd are applied
(`slurm.conf.keys.daemons`). What is left out is tried again separately while the Cluster is idle (`single_trial`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from typing_extensions import override

from slinky_operator.cluster.rollout.preflight import attempts
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Stage, Trial
from slinky_operator.cluster.trials.preflight_pod import Preflight, SlurmdKind
from slinky_operator.cluster.view import View
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import ConfFiles, Rendered
from slinky_operator.slurm.conf.keys.daemons import beyond_slurmds
from slinky_operator.slurm.conf.programs import programs


@dataclass(frozen=True, slots=True)
class Untried:
    """NodeSets whose slurmd has not been tried, and why."""

    node_sets: tuple[str, ...]
    why: str

    @override
    def __str__(self) -> str:
        names = f"NodeSet {', '.join(self.node_sets)}: " if self.node_sets else ""
        return f"{names}its slurmd has not tried the configuration, and delays no other: {self.why}"


def trial(view: View, rendered: Rendered, running: ConfFiles, *, beside: Collection[str] = ()) -> Trial:
    """Check for the outcome of a configuration's preflights, or start one.

    Parameters
    ----------
    running
        The files that slurmctld runs.
    beside
        Names of preflights of another configuration that is tried too: they stay.
    """
    found = attempts.kinds_of(view, rendered)
    left_out = view.snapshot.memory.rollout.left_out
    first, *alone = preflights(view, rendered, running)
    last = attempts.attempt(view, first, found, beside)
    passed = [*beside, first.name]
    for one in alone:
        if last.stage is not Stage.PASSED:
            return last
        last = attempts.attempt(view, one, found, passed)
        passed.append(one.name)
    if last.stage is not Stage.PASSED:
        return last
    words = [
        f"pods of {attempts.whose(kind)} run, and it cannot be tested whether they would survive it, not even on their"
        f" Node: {left_out[kind.key].why}"
        for kind in found
        if kind.node and kind.key in left_out and left_out[kind.key].everywhere
    ]
    if words and not beyond_slurmds(running.files, rendered.files):
        return Trial(Stage.STUCK, "; ".join(words), attempts.leftovers(view.snapshot, passed), TRY_AGAIN)
    return last


def preflights(view: View, rendered: Rendered, running: ConfFiles) -> tuple[Preflight, ...]:
    """The preflights of a configuration: one for all, then those on the Nodes of pods that it leaves out.

    Parameters
    ----------
    running
        The files that slurmctld runs.
    """
    found = attempts.kinds_of(view, rendered)
    left_out = view.snapshot.memory.rollout.left_out
    tried = tuple(kind for kind in found if kind.key not in left_out)
    stock = SlurmdKind(view.images.of(naming.SLURMD))
    if not tried and stock.key not in left_out:
        tried = (stock,)
    looked_for = programs(rendered.lines, running.lines)
    at_risk = (kind for kind in found if kind.node and kind.key in left_out and not left_out[kind.key].everywhere)
    return (
        attempts.made(view, tried, rendered, programs=looked_for),
        *(attempts.made(view, (kind,), rendered, kind.node, looked_for) for kind in at_risk),
    )


def untried(view: View, rendered: Rendered) -> tuple[Untried, ...]:
    """What preflights leave out now."""
    left_out = view.snapshot.memory.rollout.left_out
    if not left_out:
        return ()
    return tuple(
        Untried(kind.node_sets, left_out[kind.key].why)
        for kind in attempts.kinds_of(view, rendered)
        if kind.key in left_out
    )

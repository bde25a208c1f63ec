"""Pods whose nodes Slurm has forgotten, as the condition `Degraded` reports them: what is known of each, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.reconcile.text import joined, named


def told(snapshot: Snapshot, names: Sequence[str], now: datetime) -> list[str]:
    """Texts about these pods; none if there are none.

    Parameters
    ----------
    snapshot
        The snapshot.
    names
        Names of the pods.
    now
        The time; timezone-aware.
    """
    if not names:
        return []
    uids = {pod.name: pod.uid for pod in snapshot.pods}
    busy: list[str] = []
    awaited: list[str] = []
    idle: list[str] = []
    silent: dict[str, str] = {}
    for name in names:
        seen = snapshot.steps.get(uids.get(name, ""))
        if running_steps.is_idle(seen, now):
            idle.append(name)
        elif seen is None or (seen.started_at is not None and not seen.jobs):
            awaited.append(name)
        elif seen.jobs:
            busy.append(f"{name} (jobs {named([str(job) for job in sorted(seen.jobs)])})")
        else:
            silent[name] = seen.why
    texts = []
    if idle:
        texts.append(f"slurmd shows that nothing runs on {named(idle)}: recreated as maxUnavailable allows")
    if awaited:
        minutes = int(running_steps.SETTLED.total_seconds() // 60)
        texts.append(f"{named(awaited)}: recreated once slurmd has shown for {minutes} minutes that nothing runs there")
    if busy:
        texts.append(f"kept until their jobs have ended, which slurmd shows and Slurm does not know: {named(busy)}")
    if silent:
        first = " ".join(list(silent)[:5])
        why = joined([f"{name}: {why}" for name, why in silent.items()])
        texts.append(
            f"jobs may run there, and slurmd does not say ({why}), so the pods are kept. If none runs: "
            f"kubectl delete pod {first}"
        )
    return [f"Slurm does not know the nodes of pods {named(names)}, which had registered: {'; '.join(texts)}"]

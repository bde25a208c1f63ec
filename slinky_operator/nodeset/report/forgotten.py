"""What Slurm has forgotten, as the condition `Degraded` reports it: ends of jobs that delay drains, and nodes of pods.

Of each node it is said what is known of it, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.spec import ForgottenJobs
from slinky_operator.nodeset.drain import forgotten_ends, slurmd_questions
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.reconcile.text import joined, named


def jobs(snapshot: Snapshot, found: Decisions, now: datetime) -> Iterator[tuple[Reason, str, str, frozenset[str]]]:
    """The reason, the text, the text for the status, and the nodes; nothing if there are none.

    Parameters
    ----------
    snapshot, found
        The snapshot, and the decisions of the plan.
    now
        The time; timezone-aware.
    """
    delaying = forgotten_ends.jobs_of(found.states.values())
    if not delaying:
        return
    names = {pod.name: pod.node_name for pod in snapshot.pods}
    gone = slurmd_questions.gone(snapshot, delaying.values(), now)
    texts: list[str] = []
    numbers: list[str] = []
    nodes: set[str] = set()
    for pod, state in sorted(found.states.items()):
        if not isinstance(state, pod_state.Draining):
            continue
        over = forgotten_ends.over(state.jobs, snapshot.recorded, gone, now)
        if over:
            node = names.get(pod, pod)
            nodes.add(node)
            numbers += [str(number) for number in sorted(over)]
            texts.append(f"on {node}: {forgotten_ends.told(over)}")
    if texts:
        is_done = snapshot.nodeset.spec.drain.forgotten_jobs is ForgottenJobs.CANCEL
        what = "they are cancelled in slurmctld" if is_done else f"scancel {' '.join(numbers[:10])} ends them"
        text = f"slurmctld was killed and shows jobs as running that have ended; {what}: "
        brief = f"jobs {named(numbers)} have ended, and block drains"
        yield Reason.JOB_END_FORGOTTEN, f"{text}{joined(texts)}", brief, frozenset(nodes)


def nodes(snapshot: Snapshot, names: Sequence[str], now: datetime) -> list[str]:
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
            f"jobs may run there, and slurmd does not answer ({why}), so the pods are kept. If none runs: "
            f"kubectl delete pod {first}"
        )
    return [f"Slurm does not know the nodes of pods {named(names)}, which had registered: {'; '.join(texts)}"]

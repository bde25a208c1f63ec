"""Jobs that delay drains although they have ended, as the condition `Degraded` and an Event report them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.spec import ForgottenJobs
from slinky_operator.nodeset.drain import forgotten_ends, slurmd_questions
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.reconcile.text import joined, named


def found(snapshot: Snapshot, found: Decisions, now: datetime) -> Iterator[tuple[Reason, str, str, frozenset[str]]]:
    """The reason, the text, the text for the status, and the nodes; nothing if there are none.

    Parameters
    ----------
    snapshot, found
        The snapshot, and the decisions of the plan.
    now
        The time; timezone-aware.
    """
    names = {pod.name: pod.node_name for pod in snapshot.pods}
    texts: list[str] = []
    numbers: list[str] = []
    nodes: set[str] = set()
    for pod, state in sorted(found.states.items()):
        if not isinstance(state, pod_state.Draining):
            continue
        gone = slurmd_questions.gone(snapshot, state.jobs, now)
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

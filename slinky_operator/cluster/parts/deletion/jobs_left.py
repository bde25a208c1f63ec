"""Jobs on nodes outside Kubernetes that a Cluster which is being deleted waits for. Pure.

No pod shows them, and their slurmds go on without slurmctld: the next one may not know them, and ends what it does not
know. As long as Slurm does not answer, they count as running. A slurmctld that is gone already keeps nothing back.
"""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.in_use import answer
from slinky_operator.cluster.rollout.in_use.parameters import quoted, users
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.slurm import naming


def jobs_left(snapshot: Snapshot, now: float) -> str:
    """What the deletion waits for, for people; empty if it need not wait.

    Parameters
    ----------
    now
        Monotonic seconds.
    """
    if not _may_be(snapshot):
        return ""
    use = answer.use(snapshot, now)
    if use is None or use.why:
        silence = quoted(use.why if use is not None else "")
        return (
            f"Slurm does not say whether jobs run on nodes outside Kubernetes{silence}; without spec.nodes the Cluster "
            "goes at once, whatever runs there"
        )
    jobs = [job.id for job in use.jobs if job.holding]
    if not jobs:
        return "" if answer.is_fresh(snapshot, now) else "Slurm is asked once more for jobs on nodes outside Kubernetes"
    return (
        f"{users(jobs, ())} may run on nodes outside Kubernetes: drain them to get no more, and wait, or cancel the "
        "jobs; without spec.nodes the Cluster goes at once"
    )


def ask_jobs_left(state: PassState) -> Iterator[Action]:
    """Ask Slurm for jobs while the deletion may have to wait for them."""
    snapshot = state.snapshot
    # The slurmd pods go first.
    if not snapshot.cluster.deleting or snapshot.pods.slurmd_names or not _may_be(snapshot):
        return
    state.wake_up(answer.USE_VALID)
    use, now = answer.use(snapshot, state.now), state.now
    # Expensive answers are used for a long time: that no job is left is asked once more.
    is_last = use is not None and not use.why and not any(job.holding for job in use.jobs)
    if answer.may_ask(snapshot, now) or (is_last and not answer.is_fresh(snapshot, now)):
        config = snapshot.cluster.status.config
        yield Ask(UseQuestion("" if config is None else config.applied_hash))


def _may_be(snapshot: Snapshot) -> bool:
    """Whether there may be such jobs: a slurmctld that has run, and may know nodes outside Kubernetes, is there."""
    cluster = snapshot.cluster
    if not cluster.spec.nodes or ("StatefulSet", naming.controller(cluster.name)) not in snapshot.children:
        return False
    stored = StoredConfig.of(snapshot)
    return not stored.never_ran(snapshot, stored.status)

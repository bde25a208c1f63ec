"""Mutants of the rules of pods on virtual Nodes: who cancels a job, and whose job a pod gets."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.jobs import tenants
from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.pods import controller, deletion, observation, plan, pod_owners, slurmjobs


def an_outage_cancels(patch: pytest.MonkeyPatch) -> None:
    """Who deletes a pod does not matter."""
    patch.setattr(deletion, "outage", lambda *_, **__: "")


def preemption_cancels(patch: pytest.MonkeyPatch) -> None:
    """The kube-scheduler decides about jobs that wait in Slurm."""
    real = deletion.outage
    patch.setattr(deletion, "outage", lambda pod, **_: real(pod, is_preemption_meant=True))


def a_drain_is_an_outage(patch: pytest.MonkeyPatch) -> None:
    """An eviction that somebody has asked for cancels no job."""
    patch.setattr(deletion, "OUTAGES", {**deletion.OUTAGES, "EvictionByEvictionAPI": "since it was evicted"})


def any_pod_takes_over(patch: pytest.MonkeyPatch) -> None:
    """Pods of one Job are as good as those of another."""
    for module in (observation, slurmjobs):
        patch.setattr(module, "place", lambda pod: "one", raising=False)
    patch.setattr(pod_owners, "place", lambda pod: "one")


def an_index_is_not_its_own(patch: pytest.MonkeyPatch) -> None:
    """Pods of an Indexed Job are as good as each other."""
    patch.setattr(pod_owners, "INDEX", "nobody.example/index")


def refused_pods_fail(patch: pytest.MonkeyPatch) -> None:
    """A ReplicaSet makes pods without end."""
    patch.setattr(pod_owners, "may_fail", lambda pod: True)


def the_scheduler_grants(patch: pytest.MonkeyPatch) -> None:
    """A pod gets the partition of the Node that it is bound to."""
    patch.setattr(tenants, "restrict", lambda job, granted: job)


def pods_go_before_their_jobs(patch: pytest.MonkeyPatch) -> None:
    """A pod that somebody deletes goes, and its job runs on."""
    patch.setattr(plan, "_deleting", lambda snapshot: plan.Plan(plan.Release()))


def a_job_is_made_again(patch: pytest.MonkeyPatch) -> None:
    """A pod whose SlurmJob somebody has deleted gets another one."""
    real = plan.plan

    def planned(snapshot: Any) -> plan.Plan:
        found = real(snapshot)
        status: Object = found.status or {}
        ended = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
        if any((one.get("terminated") or {}).get("reason") == "SlurmJobDeleted" for one in ended):
            return plan._new(snapshot)
        return found

    patch.setattr(controller, "plan", planned)

"""Which release slurmctld runs is known from its own trial; without one it is not known, whatever was known before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.preflight.running_release import ANNOTATION, noted, running
from slinky_operator.kube.resources import STATEFULSETS
from slinky_operator.reconcile.writes.children import Child

NAME = "slurm-controller"


def stateful_set(image: str, note: str = "") -> dict[str, Any]:
    annotations = {ANNOTATION: note} if note else {}
    containers = [{"name": "slurmctld", "image": image}, {"name": "agent", "image": "operator"}]
    spec = {"template": {"spec": {"containers": containers}}}
    return {"metadata": {"name": NAME, "annotations": annotations}, "spec": spec}


def found(body: dict[str, Any]) -> str:
    slurm = SimpleNamespace(slurm_version="24.11.5")
    status = SimpleNamespace(slurm_version="24.11.5")
    cluster = SimpleNamespace(name="slurm", status=status)
    snapshot = SimpleNamespace(children={("StatefulSet", NAME): body}, slurm=slurm, cluster=cluster)
    return str(running(cast("Snapshot", snapshot)))


@pytest.mark.parametrize("before", ["", "24.11.5"])
def test_an_image_that_came_without_a_trial_has_not_the_release_of_slurmrestd(before: str) -> None:
    live = stateful_set("slurmctld:24.11", before)
    assert found(live) == "24.11.5"
    write = noted(Child(STATEFULSETS, stateful_set("slurmctld:26.05")), live, "")
    assert found(write.body) == "None"
    # And stays so until it is tried.
    again = noted(Child(STATEFULSETS, stateful_set("slurmctld:26.05")), write.body, "")
    assert found(again.body) == "None"
    assert found(noted(Child(STATEFULSETS, stateful_set("slurmctld:26.05")), write.body, "26.05.5").body) == "26.05.5"


def test_another_setting_keeps_what_is_known() -> None:
    live = stateful_set("slurmctld:26.05", "26.05.5")
    assert found(noted(Child(STATEFULSETS, stateful_set("slurmctld:26.05")), live, "").body) == "26.05.5"


def test_a_lost_stateful_set_takes_its_note_with_it() -> None:
    """In an upgrade slurmrestd still has the release before: it would be refused for ever."""
    wanted = Child(STATEFULSETS, stateful_set("slurmctld:26.05"))
    assert found(noted(wanted, None, "").body) == "24.11.5", "a new Cluster has one release"
    made = noted(wanted, None, "", is_untold=True)
    assert found(made.body) == "None"
    assert found(noted(wanted, made.body, "").body) == "None"
    assert found(noted(wanted, None, "26.05.5", is_untold=True).body) == "26.05.5"

"""The life of a trial, whatever its kind: what is known, the pod, its result, and what was left from earlier."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, EndPreflight, Remove, StartPreflight
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.trials import engine, pods
from slinky_operator.cluster.trials.engine import Remembered, Rules, Stage, Trial
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from tests.unit.cluster.world import ENVIRONMENT, WALL, World, cluster_object

NOW = 1000.0
OBJECTS = pods.objects(Cluster.parse(cluster_object()), pods.STATE, {"volumes": []}, identity={}, data={"a": "b"})
OLDER = replace(OBJECTS.pod, body={**OBJECTS.pod.body, "metadata": {"name": "slurm-preflight-t000000000"}})
MEANINGS = {
    Outcome.PASSED: Remembered(Stage.PASSED, "good", 60.0, keeps=True),
    Outcome.REFUSED: Remembered(Stage.REFUSED, "bad", 60.0),
    Outcome.UNDECIDED: Remembered(Stage.STUCK, "none", 60.0),
}


def read(pod: Object, at: float, _: datetime) -> Verdict | None:
    """The result that a pod of these tests shows."""
    return Verdict(Outcome.PASSED, "read", at) if (pod.get("status") or {}).get("phase") == "Succeeded" else None


RULES = Rules(
    kind=pods.STATE,
    words="under way",
    result=lambda verdict: MEANINGS[verdict.outcome],
    denied=lambda why: Remembered(Stage.STUCK, f"denied: {why}", engine.TRY_AGAIN),
    read=read,
    expires=300.0,
)


def seen(world: World, verdict: Verdict | None = None, rules: Rules = RULES) -> Trial:
    if verdict is not None:
        world.memory.rollout.verdicts[OBJECTS.name] = verdict
    return engine.follow(View(world.snapshot(), ENVIRONMENT.images, NOW, WALL), OBJECTS, rules)


def there(world: World, name: str = OBJECTS.name, ended: timedelta | None = None, **metadata: Any) -> World:
    """A world with a pod of a trial: one that runs, or has ended so long ago."""
    status: dict[str, Any] = {"phase": "Running" if ended is None else "Succeeded"}
    if ended is not None:
        end = {"exitCode": 0, "finishedAt": (WALL - ended).isoformat()}
        status["containerStatuses"] = [{"name": "slurmctld", "state": {"terminated": end}}]
    about = {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": WALL.isoformat(), **metadata}
    world.preflights[name] = {"metadata": about, "spec": {}, "status": status}
    return world


def removed(actions: tuple[Action, ...]) -> list[str]:
    return [one.name for one in actions if isinstance(one, Remove) and one.resource is PODS]


def test_it_is_started_and_what_another_trial_has_left_goes() -> None:
    found = seen(there(World(), OLDER.name))
    assert found.stage is Stage.UNDER_WAY
    assert removed(found.actions) == [OLDER.name]
    assert found.actions[-1] == StartPreflight(OBJECTS)


def test_a_pod_that_runs_is_looked_at_again() -> None:
    assert seen(there(World())) == Trial(Stage.UNDER_WAY, "under way", (), engine.LOOK_AGAIN)


def test_a_pod_that_is_being_deleted_is_waited_for() -> None:
    assert seen(there(World(), ended=timedelta(), deletionTimestamp="now")).actions == ()


def test_a_result_is_recorded_with_the_time_when_slurmctld_ended() -> None:
    found = seen(there(World(), ended=timedelta(seconds=10)))
    assert found.actions == (EndPreflight(OBJECTS.name, Verdict(Outcome.PASSED, "read", NOW - 10)),)
    at_once = seen(there(World(), ended=timedelta(seconds=10)), rules=replace(RULES, expires=float("inf")))
    assert at_once.actions == (EndPreflight(OBJECTS.name, Verdict(Outcome.PASSED, "read", NOW)),)


def test_what_an_old_pod_shows_no_longer_holds() -> None:
    found = seen(there(World(), ended=timedelta(seconds=300)))
    assert found.stage is Stage.UNDER_WAY
    assert removed(found.actions) == [OBJECTS.name]


@pytest.mark.parametrize(("outcome", "meaning"), list(MEANINGS.items()), ids=lambda one: getattr(one, "name", ""))
def test_a_result_holds_for_its_time_and_then_the_trial_is_repeated(outcome: Outcome, meaning: Remembered) -> None:
    held = seen(there(World()), Verdict(outcome, "", NOW - 59))
    assert (held.stage, held.message) == (meaning.stage, meaning.message)
    assert held.wake_up == (None if outcome is Outcome.PASSED else 1.0)
    # The pod of a good result stays: another operator finds it there.
    assert removed(held.actions) == ([] if meaning.keeps else [OBJECTS.name])
    over = seen(World(), Verdict(outcome, "", NOW - 60))
    assert over.actions == (StartPreflight(OBJECTS),)
    assert over.stage is (Stage.UNDER_WAY if outcome is Outcome.PASSED else meaning.stage)


def test_a_result_from_before_a_change_does_not_count() -> None:
    known = Verdict(Outcome.REFUSED, "", NOW - 10)
    assert seen(World(), known, replace(RULES, since=NOW - 10)).stage is Stage.REFUSED
    assert seen(World(), known, replace(RULES, since=NOW - 9)).actions == (StartPreflight(OBJECTS),)


def test_objects_that_the_api_server_refuses_are_tried_again_later() -> None:
    world = World()
    world.memory.writes.denied[OBJECTS.pod.key] = Denied(OBJECTS.pod.digest, "a quota", NOW - 20)
    assert seen(world) == Trial(Stage.STUCK, "denied: a quota", (), 10.0)
    world.memory.writes.denied[OBJECTS.pod.key] = Denied(OBJECTS.pod.digest, "a quota", NOW - 30)
    assert seen(world) == Trial(Stage.STUCK, "denied: a quota", (StartPreflight(OBJECTS),), 1.0)


def test_trials_beside_it_stay() -> None:
    world = there(there(World()), OLDER.name)
    found = engine.follow(View(world.snapshot(), ENVIRONMENT.images, NOW, WALL), OBJECTS, RULES, (OLDER.name,))
    assert removed(found.actions) == []

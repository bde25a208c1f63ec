"""Pods for which the operator has no room say so, and come when there is some."""

from __future__ import annotations

from slinky_operator.bridge.pods.left_out import LeftOut
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((obj["metadata"]["name"], reason, message))

    normal = warning


def pod(name: str, namespace: str = "a") -> Object:
    about = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
    return {"metadata": about, "spec": {"containers": [{"name": "c", "image": "x" * 500}]}}


def test_a_pod_without_room_says_so_and_others_do_not() -> None:
    store, recorder = Store(budget=Budget(4000)), Recorder()
    handler = LeftOut(store, recorder).seen

    def come(one: Object) -> None:
        change = store.put(one)
        assert change is not None
        handler(*change)

    for number in range(5):
        come(pod(f"p-{number}"))
    come(pod("of-another", "b"))
    kept = {name for _, name in store.keys()}  # noqa: SIM118 - no dictionary
    left = {f"p-{number}" for number in range(5)} - kept
    assert left
    assert "of-another" in kept
    assert {name for name, _, _ in recorder.told} == left
    _, reason, words = recorder.told[-1]
    assert reason == "OverBudget"
    assert "namespace a take all memory" in words
    assert f"{len(left)} pods have no room" in words

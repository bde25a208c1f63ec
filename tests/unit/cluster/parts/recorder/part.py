"""The condition of the recorder, and when it is asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from tests.unit.cluster.parts.recorder.manifests import RECORDER
from tests.unit.cluster.parts.recorder.question import Records, RecordsQuestion

ASK_EVERY: Final = 30.0
"""Seconds between two questions."""


class RecorderPart(Part):
    """Its condition."""

    name = "recorder"
    condition = ClusterCondition.BRIDGE_READY
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        if not RECORDER.is_wanted(state.snapshot.cluster):
            return None
        pods = list(asked(state.snapshot))
        answers = [one for _, one in pods if one is not None]
        good = [one.count for one in answers if not one.why]
        if good:
            # In an update there are two pods: the larger number here, their sum where each has records of its own.
            return "True", Reason.AS_EXPECTED, f"{max(good)} records"
        if answers:
            # Take a reason of your own here: of two conditions with one reason, only the first has an Event.
            return "False", Reason.SLURM_UNREACHABLE, f"the recorder does not answer: {answers[0].why}"
        # Reasons that need nobody (`part.ON_ITS_WAY`).
        if pods:
            return "Unknown", Reason.CONNECTING, "the recorder has not been asked yet"
        return "False", Reason.DAEMONS_STARTING, "no pod of the recorder is ready"


def asked(snapshot: Snapshot) -> Iterator[tuple[Object, Records | None]]:
    """Its pods that are ready, with the last answer of each: one that starts refuses connections."""
    for pod in RECORDER.pods(snapshot):
        if is_ready(pod):
            answer = snapshot.memory.answers.of(RecordsQuestion, pod["metadata"]["name"])
            is_its_own = answer is not None and answer.pod_uid == pod["metadata"]["uid"]
            yield pod, answer if is_its_own else None


def is_ready(pod: Object) -> bool:
    """Whether its container is ready, as the kubelet says."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(one.get("ready") for one in containers if one.get("name") == RECORDER.daemon)


def ask_records(state: PassState) -> Iterator[Action]:
    """Its step: asks each pod, again after a while."""
    for pod, answer in asked(state.snapshot):
        due = answer.asked_at + ASK_EVERY - state.now if answer is not None else 0.0
        if due <= 0:
            yield Ask(RecordsQuestion(pod))
        state.wake_up(due if due > 0 else ASK_EVERY)


RECORDER_PART: Final = RecorderPart()

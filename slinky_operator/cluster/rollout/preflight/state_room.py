"""The part of the plan about the volume of slurmctld's state: whether slurmctld can save its state when it ends. Pure.

slurmctld writes its state when it is ended. If the volume is full, it cannot, and the next one starts from an older
state: jobs that were accepted since are lost, and those that have ended run for it. So slurmctld's pod stays while its
volume is full. The last answer of its agent may be half a minute old, so it is asked more often before a pod ends.

An agent that does not answer holds nothing back: the change may be what makes it answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from slinky_operator.cluster.actions import Ask
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion, room_of_state
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.cluster.view import View

AGAIN: Final = 5.0
"""Seconds after which an agent is asked again while a pod is about to be replaced."""

FRESH: Final = 15.0
"""Seconds for which its answer is good enough to end slurmctld."""


def room(view: View, wanted: Mapping[str, Any], running: Mapping[str, Any]) -> Trial:
    """Whether slurmctld can save its state: under way while its agent is asked, refused while the volume is full.

    Parameters
    ----------
    wanted, running
        Templates of the two pods. The next slurmctld reads no state of the running one that is on another volume.
    """
    pod = view.snapshot.pods.controller if slurmctld_pod.same_state(wanted, running) else None
    question = room_of_state(pod) if pod is not None and (pod.get("status") or {}).get("podIP") else None
    if question is None:
        return Trial(Stage.PASSED)
    last = view.snapshot.memory.answers.of(VolumesQuestion, question.about)
    known = last if last is not None and last.pod_uid == question.pod["metadata"]["uid"] else None
    found = None if known is None else known.rooms.get(volumes.STATE)
    age = math.inf if known is None else view.now - known.asked_at
    asked = (Ask(question),) if age > AGAIN else ()
    if age > FRESH:
        return Trial(Stage.UNDER_WAY, "waiting to know how much room the volume of slurmctld has", asked, 1.0)
    if found is None or not found.is_full:
        return Trial(Stage.PASSED, "", asked, AGAIN)
    words = (
        f"the volume of slurmctld has {found.left()}, so slurmctld could not save its state when it ends, and the next "
        "one would forget jobs. Enlarge spec.controller.persistence.size"
    )
    return Trial(Stage.REFUSED, words, asked, AGAIN)

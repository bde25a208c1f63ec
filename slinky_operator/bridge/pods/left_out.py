"""Says on a pod that the operator does not look at it: the pods of its namespace take all of their memory.

No pass knows such a pod. It is looked at once there is room, that is when others have ended.
"""

from __future__ import annotations

from slinky_api.conditions import Reason
from slinky_operator.kube.cache.store import Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder


class LeftOut:
    """Watches pods for which the cache has no room.

    Parameters
    ----------
    pods
        The cache of pods that Slurm places.
    recorder
        Events.
    """

    def __init__(self, pods: Store, recorder: Recorder) -> None:
        self._pods = pods
        self._recorder = recorder

    def seen(self, _: Object | None, new: Object | None) -> None:
        """Handler of pods: an Event for one that is not kept."""
        if new is None or not self._pods.is_left_out(key_of(new)):
            return
        namespace = key_of(new)[0]
        words = (
            f"Slurm is not asked for this pod: pods and SlurmJobs of namespace {namespace} take all memory that the "
            f"operator has for a namespace (namespaceBudget of its chart), and {self._pods.missing(namespace)} pods "
            "have no room. It is looked at once others are gone: delete pods that are over, or let fewer wait at a time"
        )
        self._recorder.warning(new, Reason.OVER_BUDGET, words)

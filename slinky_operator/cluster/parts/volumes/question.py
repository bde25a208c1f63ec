"""The question how much room the volumes of a pod have; the answer is shown in metrics, too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.volume_query import Looker, ask_volumes
from slinky_operator.slurm.pods.volume_room import Volumes


@dataclass(frozen=True, slots=True)
class VolumesQuestion(Question[Volumes]):
    """How much room the volumes of a pod have."""

    pod: Object

    @property
    @override
    def about(self) -> str:
        name: str = self.pod["metadata"]["name"]
        return name

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Volumes:
        looker = Looker(context.agent_url(self.pod), self.pod["metadata"]["uid"], cluster.namespace)
        found = await ask_volumes(context.http, looker, volumes.NAMES, context.clock)
        client = context.clients.get(cluster.uid)
        if client is not None:
            client.volumes = {
                volume: (room.share_of_bytes, room.share_of_inodes)
                for one in {**answers.every(VolumesQuestion), self.about: found}.values()
                for volume, room in one.rooms.items()
            }
        return found

    @override
    def is_news(self, before: Volumes | None, answer: Volumes | None) -> bool:
        return before is None or answer is None or replace(answer, asked_at=before.asked_at) != before


def room_of_state(pod: Object) -> VolumesQuestion | None:
    """The question how much room slurmctld's state has; None where no agent looks at it."""
    return VolumesQuestion(pod) if volumes.STATE in volumes.of_pod(pod) else None

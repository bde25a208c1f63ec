"""How many records the recorder has, as its pod says over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader
from tests.unit.cluster.parts.recorder.manifests import PORT

LONGEST: Final = 4096
"""Bytes of an answer."""

MOST: Final = 10**9
"""Records that it may say: it is a number in a message."""


@dataclass(frozen=True, slots=True)
class Records:
    """What its pod has answered."""

    pod_uid: str
    asked_at: float
    count: int = 0
    why: str = ""
    """Why nothing is known of it; empty if something is."""


@dataclass(frozen=True, slots=True)
class RecordsQuestion(Question[Records]):
    """How many records it has."""

    pod: Object

    @property
    @override
    def about(self) -> str:
        # While a new pod takes the place of another one, there are two.
        return str(self.pod["metadata"]["name"])

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Records:
        address, uid = self.pod["status"]["podIP"], self.pod["metadata"]["uid"]
        url = f"http://{f'[{address}]' if ':' in address else address}:{PORT}"
        return await count_records(context.http, url, cluster.namespace, uid, context.clock)

    @override
    def is_news(self, before: Records | None, answer: Records | None) -> bool:
        # News repeats the round and keeps the status from being written: the time alone is none.
        return before is None or answer is None or replace(answer, asked_at=before.asked_at) != before


async def count_records(reader: PodReader, url: str, namespace: str, uid: str, clock: Callable[[], float]) -> Records:
    """Ask the pod with this uid, which answers at this address, on behalf of a namespace."""
    try:
        said = await reader.read(f"{url}/records", owner=namespace, limit=LONGEST)
    except NoAnswer as error:
        return Records(uid, clock(), why=str(error))
    count = said.get("count")
    # A user's template may put any program in its place.
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:
        return Records(uid, clock(), why="it says no number of records")
    return Records(uid, clock(), count)

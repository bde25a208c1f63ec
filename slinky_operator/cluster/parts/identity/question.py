"""Asks the agent beside slurmctld which domains of the directory SSSD cannot reach; a failed query is an answer too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.cluster.rollout.agent_questions import Agent, agent_of, keep
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader

Clock = Callable[[], float]

LONGEST_DIRECTORY: Final = 128 * 2**10
"""Maximum bytes of an answer about the directory."""

MOST_DOMAINS: Final = 64
"""Maximum number of domains of a directory that are read from an answer."""

LONGEST_DOMAIN: Final = 255
"""Characters of a domain's name that are read."""

LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: later ones cannot be shown."""


@dataclass(frozen=True, slots=True)
class Directory:
    """The answer of the agent beside slurmctld about the directory of users."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    offline: Mapping[str, int] | None = None
    """Domains that SSSD cannot reach, and since when (seconds since 1970); `None` if that is not known."""

    why: str = ""
    """Why it is not known."""


@dataclass(frozen=True, slots=True)
class DirectoryQuestion(Question[Directory]):
    """Which domains of the directory SSSD cannot reach from slurmctld's pod."""

    pod: Object

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Directory:
        return await ask_directory(context.http, agent_of(self.pod, cluster, context), context.clock)

    @override
    def is_news(self, before: Directory | None, answer: Directory | None) -> bool:
        return before is None or answer is None or replace(answer, asked_at=before.asked_at) != before


async def ask_directory(reader: PodReader, agent: Agent, clock: Clock) -> Directory:
    """Query which domains of the directory SSSD cannot reach."""
    why = "the agent beside slurmctld cannot be asked for the directory"
    try:
        told = await reader.read(f"{agent.url}/directory", owner=agent.namespace, limit=LONGEST_DIRECTORY)
        offline = _domains(told.get("offline"))
        if offline is None:
            return Directory(agent.pod_uid, clock(), why=f"{why}: it says nothing of domains")
        keep(reader, agent, "directory", offline)
    except NoAnswer as error:
        if error.status is not None:
            # Without the file: SSSD does not run, or an image of the site's own does not keep it.
            return Directory(
                agent.pod_uid, clock(), why="SSSD's container does not say whether it reaches the directory"
            )
        return Directory(agent.pod_uid, clock(), why=f"{why}: {error}")
    return Directory(agent.pod_uid, clock(), offline)


def _domains(said: Any) -> Mapping[str, int] | None:
    """The first domains that were said, each with a time that can be shown; `None` if it is no such answer."""
    if not isinstance(said, dict):
        return None
    domains = list(said.items())[:MOST_DOMAINS]
    if not all(isinstance(since, int) for _, since in domains):
        return None
    return {name[:LONGEST_DOMAIN]: min(max(since, 0), LAST_SECOND) for name, since in domains}

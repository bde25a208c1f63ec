"""Questions to the agent beside slurmctld: what is mounted, and which names have an address.

The pod template of a Cluster may put any program in the place of the agent: each answer has limits, and what it says is
believed about its own Cluster only. A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader

Clock = Callable[[], float]

LONGEST_FILES: Final = 2 * 2**20
"""Maximum bytes of an answer about files: a ConfigMap has 1 MiB."""

LONGEST_NAMES: Final = 8 * 2**20
"""Maximum bytes of an answer about names: those of more nodes than Slurm can have."""

LONGEST_NAME: Final = 253
"""Characters of a file's name: a key of a ConfigMap has no more."""

DIGEST: Final = 64
"""Characters of a digest."""

_A_TEXT: Final = 64
"""Bytes that a text takes beside its characters."""

_KEPT: Final = ("files", "names", "directory")


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of one Cluster.

    Parameters
    ----------
    url
        Where it answers, without a path.
    pod_uid
        Of slurmctld's pod.
    namespace, cluster
        Namespace and uid of the Cluster, on whose behalf its answers are read and kept.
    """

    url: str
    pod_uid: str
    namespace: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Mounted:
    """The answer of the agent beside slurmctld about mounted files."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    files: Mapping[str, str] | None
    """Digest of each mounted file; `None` if the agent did not answer."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """The answer of the agent beside slurmctld about host names."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    found: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    """Names that did not resolve. Names in neither set have not been looked up yet."""

    why: str = ""
    """Why the last query had no answer."""


def agent_of(pod: Object, cluster: Cluster, context: PassContext) -> Agent:
    """The agent in slurmctld's pod."""
    return Agent(context.agent_url(pod), pod["metadata"]["uid"], cluster.namespace, cluster.uid)


@dataclass(frozen=True, slots=True)
class FilesQuestion(Question[Mounted]):
    """Which files slurmctld's pod has mounted."""

    pod: Object

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Mounted:
        return await ask_files(context.http, agent_of(self.pod, cluster, context), context.clock)

    @override
    def is_news(self, before: Mounted | None, answer: Mounted | None) -> bool:
        return answer is not None and answer.files is not None


@dataclass(frozen=True, slots=True)
class NamesQuestion(Question[Names]):
    """Which node names have an address in slurmctld's pod."""

    pod: Object
    names: frozenset[str]
    """Names that slurmctld looks up when it reads its files."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Names:
        agent, before = agent_of(self.pod, cluster, context), answers.of(NamesQuestion)
        return await ask_names(context.http, agent, self.names, before, context.clock)

    @override
    def is_news(self, before: Names | None, answer: Names | None) -> bool:
        return answer is not None and not answer.why


async def ask_files(reader: PodReader, agent: Agent, clock: Clock) -> Mounted:
    """Query which files are mounted."""
    try:
        told = await reader.read(f"{agent.url}/files", owner=agent.namespace, limit=LONGEST_FILES)
        files = told.get("files")
        if not isinstance(files, dict) or not all(_is_digest(*one) for one in files.items()):
            return Mounted(agent.pod_uid, clock(), None, "the agent says nothing of files")
        keep(reader, agent, "files", (*files, *files.values()))
    except NoAnswer as error:
        return Mounted(agent.pod_uid, clock(), None, f"the agent beside slurmctld cannot be asked: {error}")
    return Mounted(agent.pod_uid, clock(), files)


def _is_digest(name: str, digest: Any) -> bool:
    return len(name) <= LONGEST_NAME and isinstance(digest, str) and len(digest) <= DIGEST


async def ask_names(
    reader: PodReader, agent: Agent, wanted: frozenset[str], before: Names | None, clock: Clock
) -> Names:
    """Query which node names have an address; without an answer the known ones stay.

    Parameters
    ----------
    wanted
        Names that are looked up for the Cluster's nodes: nothing is kept of others.
    """
    known = before if before is not None and before.pod_uid == agent.pod_uid else Names(agent.pod_uid, 0.0)
    why = "the agent beside slurmctld cannot be asked for addresses"
    try:
        told = await reader.read(f"{agent.url}/names", owner=agent.namespace, limit=LONGEST_NAMES)
        names = told.get("names")
        lists = [names.get(key) if isinstance(names, dict) else None for key in ("found", "missing")]
        if not all(isinstance(one, list) for one in lists):
            return replace(known, asked_at=clock(), why=f"{why}: it says nothing of names")
        found, missing = (_of(wanted, one) for one in lists)
        keep(reader, agent, "names", (*found, *missing))
    except NoAnswer as error:
        return replace(known, asked_at=clock(), why=f"{why}: {error}")
    return Names(agent.pod_uid, clock(), found, missing)


def _of(wanted: frozenset[str], said: Any) -> frozenset[str]:
    """The wanted names that were said; the texts are the wanted ones, so that the answer can go."""
    names = {one for one in said if isinstance(one, str)}
    return frozenset(one for one in wanted if one in names)


def keep(reader: PodReader, agent: Agent, what: str, texts: Iterable[str]) -> None:
    """Count what is kept for the Cluster."""
    reader.keep(agent.namespace, (agent.cluster, what), sum(len(text) + _A_TEXT for text in texts))


def forget(reader: PodReader, namespace: str, cluster: str) -> None:
    """Count nothing for a Cluster any more, whose memory is dropped."""
    for what in _KEPT:
        reader.forget(namespace, (cluster, what))

"""Queries to the agent beside slurmctld: what is mounted, which names have an address, and what SSSD cannot reach.

The pod template of a Cluster may put any program in the place of the agent: each answer has limits, and what it says is
believed about its own Cluster only. A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from slinky_operator.cluster.memory import Directory, Mounted, Names
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader

Clock = Callable[[], float]

LONGEST_FILES: Final = 2 * 2**20
"""Maximum bytes of an answer about files: a ConfigMap has 1 MiB."""

LONGEST_NAMES: Final = 8 * 2**20
"""Maximum bytes of an answer about names: those of more nodes than Slurm can have."""

LONGEST_DIRECTORY: Final = 128 * 2**10
"""Maximum bytes of an answer about the directory."""

MOST_DOMAINS: Final = 64
"""Maximum number of domains of a directory that are read from an answer."""

LONGEST_DOMAIN: Final = 255
"""Characters of a domain's name that are read."""

LONGEST_NAME: Final = 253
"""Characters of a file's name: a key of a ConfigMap has no more."""

DIGEST: Final = 64
"""Characters of a digest."""

LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: later ones cannot be shown."""

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


def agent_url(pod: Object) -> str:
    """URL of the agent in a pod."""
    address = str(pod["status"]["podIP"])
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.AGENT_PORT}"


async def ask_files(reader: PodReader, agent: Agent, clock: Clock) -> Mounted:
    """Query which files are mounted."""
    try:
        told = await reader.read(f"{agent.url}/files", owner=agent.namespace, limit=LONGEST_FILES)
        files = told.get("files")
        if not isinstance(files, dict) or not all(_is_digest(*one) for one in files.items()):
            return Mounted(agent.pod_uid, clock(), None, "the agent says nothing of files")
        _keep(reader, agent, "files", (*files, *files.values()))
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
        _keep(reader, agent, "names", (*found, *missing))
    except NoAnswer as error:
        return replace(known, asked_at=clock(), why=f"{why}: {error}")
    return Names(agent.pod_uid, clock(), found, missing)


def _of(wanted: frozenset[str], said: Any) -> frozenset[str]:
    """The wanted names that were said; the texts are the wanted ones, so that the answer can go."""
    names = {one for one in said if isinstance(one, str)}
    return frozenset(one for one in wanted if one in names)


async def ask_directory(reader: PodReader, agent: Agent, clock: Clock) -> Directory:
    """Query which domains of the directory SSSD cannot reach."""
    why = "the agent beside slurmctld cannot be asked for the directory"
    try:
        told = await reader.read(f"{agent.url}/directory", owner=agent.namespace, limit=LONGEST_DIRECTORY)
        offline = _domains(told.get("offline"))
        if offline is None:
            return Directory(agent.pod_uid, clock(), why=f"{why}: it says nothing of domains")
        _keep(reader, agent, "directory", offline)
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


def _keep(reader: PodReader, agent: Agent, what: str, texts: Iterable[str]) -> None:
    """Count what is kept for the Cluster."""
    reader.keep(agent.namespace, (agent.cluster, what), sum(len(text) + _A_TEXT for text in texts))


def forget(reader: PodReader, namespace: str, cluster: str) -> None:
    """Count nothing for a Cluster any more, whose memory is dropped."""
    for what in _KEPT:
        reader.forget(namespace, (cluster, what))

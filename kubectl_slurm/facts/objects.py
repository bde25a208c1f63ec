"""Objects of Kubernetes as rules see them: frozen, and only what is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of an object."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A Cluster.

    Attributes
    ----------
    external
        Whether it runs elsewhere: `server` is then the URL of its slurmrestd.
    pending, running
        Jobs, as the operator counted them last; None if it has not.
    waiting
        Slurm's reasons and how many jobs wait for each, by the operator's last count.
    key_secrets
        Names of the Secrets with its keys of auth/slurm and auth/jwt.
    grants
        Namespaces and Slurm users of whom they may have tokens, as its rules name them.
    """

    name: str
    namespace: str
    external: bool = False
    server: str = ""
    ready: bool = False
    summary: str = ""
    slurm_version: str = ""
    api_version: str = ""
    conditions: tuple[Condition, ...] = ()
    running: int | None = None
    pending: int | None = None
    waiting: tuple[tuple[str, int], ...] = ()
    applied_hash: str = ""
    hash: str = ""
    key_secrets: tuple[str, ...] = ()
    grants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetFacts:
    """A NodeSet; counts are those of its status.

    Attributes
    ----------
    confined
        Whether its spec keeps jobs to what they were allocated.
    """

    name: str
    cluster: str
    desired: int = 0
    ready: int = 0
    draining: int = 0
    drained: int = 0
    down: int = 0
    starting: int = 0
    confined: bool = False
    summary: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """A Token, never with its value.

    Attributes
    ----------
    temporary
        Whether a call of this program has made it for itself, and deletes it.
    """

    name: str
    cluster: str
    cluster_namespace: str = ""
    user: str = ""
    secret: str = ""
    key: str = "auth-token"
    refresh: bool = True
    issued: datetime | None = None
    expires: datetime | None = None
    ready: Condition | None = None
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A key with an end."""

    name: str
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A pod of a NodeSet.

    Attributes
    ----------
    slurm_node
        Name of its node in Slurm, which is that of the pod unless its host name is another.
    trouble
        Why a container or the pod does not run, in Kubernetes' words.
    """

    name: str
    slurm_node: str = ""
    nodeset: str = ""
    node: str = ""
    phase: str = ""
    ready: bool = False
    deleting: bool = False
    trouble: str = ""
    conditions: tuple[Condition, ...] = field(default=())

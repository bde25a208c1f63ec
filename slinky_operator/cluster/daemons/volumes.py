"""Volumes whose free space an agent reports: their names, and how an agent learns which its pod mounts. Pure."""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_operator.kube.objects import Object

OPTION: Final = "--volume="
"""Of the agent's command, before a name, an equals sign and a path."""

STATE: Final = "slurmctld"
"""slurmctld's state."""

DATABASE: Final = "MariaDB"
"""MariaDB's data."""

NAMES: Final = (STATE, DATABASE)


ANNOTATION: Final = labels.CLUSTER_PREFIX + "volumes"
"""On a pod: the volume that its agent looks at."""


def option(name: str, path: str) -> str:
    """Return the word that tells an agent where a volume is mounted. Only the root of it is looked at."""
    return f"{OPTION}{name}={path}"


def of_pod(pod: Object) -> tuple[str, ...]:
    """Names of the volumes that the agent of a pod looks at; none of a pod of an earlier version, or without one."""
    said = ((pod.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    return tuple(name for name in NAMES if name == said)

"""The agent as a container beside a daemon: small, without rights, and with read-only mounts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.cluster.daemons import Images, image_of, locked_down
from slinky_operator.slurm import naming


def agent_container(
    images: Images, folder: str, words: Iterable[str], mounts: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """Build the container.

    Parameters
    ----------
    folder
        Of the configuration; one that is not mounted has no files.
    words
        More words of its command.
    mounts
        What it may look at.
    """
    return {
        "name": naming.AGENT_CONTAINER,
        **image_of(None, images.of(naming.AGENT_CONTAINER), images.pull_policy),
        "command": ["python", "-m", "slinky_operator.agent", folder, str(naming.AGENT_PORT), *words],
        "ports": [{"name": "agent", "containerPort": naming.AGENT_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "5m", "memory": "24Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {**locked_down(), "runAsUser": naming.NOBODY, "runAsGroup": naming.NOBODY},
        "volumeMounts": list(mounts),
    }

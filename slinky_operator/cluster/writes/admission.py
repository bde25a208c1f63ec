"""Finds out why the API server rejects a preflight's pod: because of slurmctld, or of one kind of slurmd.

Nothing is created: each query is a dry run, which admission (Pod Security, quotas, policies) treats like a real
creation. What follows from the answers is decided in `decision`.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.cluster.actions import StartPreflight
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS

LONGEST: Final = 600
"""Maximum characters of a stored rejection."""


async def refused_parts(action: StartPreflight, namespace: str, kube: KubeClient) -> dict[str, str]:
    """Find out which slurmds prevent a preflight's pod from being admitted.

    Returns
    -------
    dict
        The API server's message for each of them; empty if the pod would be rejected without slurmds too, or if no
        single one is the cause.
    """
    if action.alone is None or await _refusal(action.alone, namespace, kube) is not None:
        return {}
    answers = {key: await _refusal(body, namespace, kube) for key, body in action.parts.items()}
    return {key: words for key, words in answers.items() if words is not None}


async def _refusal(body: Object, namespace: str, kube: KubeClient) -> str | None:
    try:
        await kube.create(PODS, dict(body), namespace, dry_run=True)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        return f"the API server refuses its pod: {error.message[:LONGEST]}"
    except errors.AlreadyExists:
        return None
    return None

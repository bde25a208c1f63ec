"""Disposable pods of this program: created with the rights of an editor, watched, and deleted whatever happens.

A program that is killed leaves its pod, which the kubelet ends; the next run in the namespace deletes what is that old.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from kubectl_slurm.access.kinds import CONFIG_MAPS, PODS, Kind
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.access.tokens import Clock
from kubectl_slurm.errors import MissingRight
from kubectl_slurm.facts import reading

PAUSE: Final = 0.3
OLD: Final = timedelta(minutes=15)
"""Age of what no run waits for any more."""

Json = Mapping[str, Any]


def fresh_name() -> str:
    """A name that no other run has."""
    return f"kubectl-slurm-{secrets.token_hex(5)}"


@contextmanager
def created(kube: Kubernetes, pod: Json, config_map: Json) -> Iterator[str]:
    """Create a pod and the ConfigMap that it mounts; yields their name, and deletes both.

    Raises
    ------
    MissingRight
        The user may not create one of them.
    KubernetesError
        The API server refuses one: a quota or an admission policy, say.
    """
    with _created(kube, CONFIG_MAPS, config_map), _created(kube, PODS, pod):
        yield str(pod["metadata"]["name"])


@contextmanager
def _created(kube: Kubernetes, kind: Kind, body: Json) -> Iterator[None]:
    name = str(body["metadata"]["name"])
    try:
        kube.create(kind, body)
    except MissingRight:
        raise
    except BaseException:
        # It may be there: the answer was lost, or the user interrupts.
        kube.delete(kind, name)
        raise
    try:
        yield
    finally:
        kube.delete(kind, name)


def ended(kube: Kubernetes, name: str, patience: float, clock: Clock) -> Json:
    """The pod once it has ended, or as it is when patience ends."""
    waited = 0.0
    while True:
        pod = kube.get(PODS, name)
        if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"} or waited >= patience:
            return pod
        clock.sleep(PAUSE)
        waited += PAUSE


def sweep(kube: Kubernetes, marks: Mapping[str, str], clock: Clock) -> None:
    """Delete what earlier runs have left that were killed."""
    selector = ",".join(f"{name}={value}" for name, value in marks.items())
    for kind in (PODS, CONFIG_MAPS):
        for obj in kube.objects(kind, selector=selector, most=100):
            made = reading.moment(obj["metadata"].get("creationTimestamp"))
            if made is not None and clock.now() - made > OLD:
                kube.delete(kind, str(obj["metadata"]["name"]))

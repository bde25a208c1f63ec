"""Whose a pod is: what a refusal leads to, and which pod comes in the place of another. Pure."""

from __future__ import annotations

from typing import Final

from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.parts import controller_of

INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation of a pod of an Indexed Job."""

_JOB: Final = "Job"
_ENDING: Final = frozenset({_JOB, "DaemonSet"})


def may_fail(pod: Object) -> bool:
    """Whether a pod that is refused may fail: its controller, if it has one, makes a new one only with pauses.

    Others, such as ReplicaSets, would make new ones without end.
    """
    kind = controller_of(pod).get("kind")
    return kind is None or kind in _ENDING


def is_of_job(pod: Object) -> bool:
    """Whether a Job has made a pod, as it makes all of its pods: its template cannot be changed.

    Others have kinds of this name whose pods differ, each with a template and a name of its own.
    """
    controller = controller_of(pod)
    return (str(controller.get("apiVersion") or "").partition("/")[0], controller.get("kind")) == ("batch", _JOB)


def place(pod: Object) -> str:
    """The place that a pod takes among the pods of its controller; empty for one without a controller.

    A pod of a Job is as good as each other, or as each of its index; a pod of another controller is known by its name.
    """
    controller, metadata = controller_of(pod), pod["metadata"]
    uid = str(controller.get("uid") or "")
    if not uid:
        return ""
    index = (metadata.get("annotations") or {}).get(INDEX)
    if index is not None:
        return f"{uid}/{index}"
    return f"{uid}/" if is_of_job(pod) else f"{uid}/{metadata['name']}"

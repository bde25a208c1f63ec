"""What tests write that play the kubelets of an API server without machines."""

from __future__ import annotations

from typing import Final

from slinky_operator.kube.objects import Object

ALIVE: Final = [
    {"key": f"node.kubernetes.io/{one}", "operator": "Exists"}
    for one in ("not-ready", "unreachable", "network-unavailable")
]
"""Tolerations of pods on Nodes of which no kubelet says that they live."""


def ended(container: str = "c", *, code: int = 0, message: str = "") -> Object:
    """The status of a pod whose container has ended."""
    done = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
    about = {"name": container, "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    state = {"terminated": {**done, "containerID": "", "startedAt": None, "finishedAt": None}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{**about, "state": state}]}

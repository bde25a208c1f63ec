"""The API server's audit log: who wrote what, and when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

POD_NAME = "authentication.kubernetes.io/pod-name"
"""Where a bound service account token says which pod it was made for."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write, successful or not.

    Attributes
    ----------
    at
        When the API server received it.
    pod
        Pod that sent it; empty if it was none.
    user
        Who asked.
    verb, resource, namespace, name
        What was asked for; `resource` with its subresource after a slash.
    code
        HTTP status of the answer.
    body
        The request's body where the policy keeps it (Leases).
    """

    at: datetime
    pod: str
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    body: dict[str, Any]


def events(log: Path) -> Iterator[dict[str, Any]]:
    """Read all that is in the log; what has no end of line yet the API server is about to write."""
    *whole, _ = log.read_bytes().split(b"\n")
    yield from map(json.loads, whole)


def writes(log: Path) -> Iterator[Write]:
    """Read all writes in the log, in the order in which they were answered."""
    for event in events(log):
        if event["stage"] != "ResponseComplete":
            continue
        about = event.get("objectRef", {})
        yield Write(
            at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
            pod=event["user"].get("extra", {}).get(POD_NAME, [""])[0],
            user=event["user"].get("username", ""),
            verb=event["verb"],
            resource="/".join(filter(None, (about.get("resource", ""), about.get("subresource", "")))),
            namespace=about.get("namespace", ""),
            name=about.get("name", ""),
            code=event.get("responseStatus", {}).get("code", 0),
            body=event.get("requestObject", {}),
        )


def pod_deletions(log: Path, namespace: str) -> list[Write]:
    """Return the deletions of pods in a namespace that were sent by pods, so not by the test."""
    return [
        one
        for one in writes(log)
        if one.pod and one.verb == "delete" and one.resource == "pods" and one.namespace == namespace and one.code < 300
    ]


def made_pods(log: Path, namespace: str) -> Counter[str]:
    """Return how often a pod of each name was made in a namespace by pods, so by the operator."""
    return Counter(
        one.name
        for one in writes(log)
        if one.pod and (one.verb, one.resource, one.namespace, one.code) == ("create", "pods", namespace, 201)
    )

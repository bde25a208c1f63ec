"""What the Kubernetes API says, as dictionaries, and how a collection and its changes are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as its JSON says."""

Objects = list[Object]
"""Several of them; the name `list` is taken inside the client."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a list call."""

    items: Objects
    resource_version: str
    next_page: str
    """Token for the next page; empty on the last one."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole collection at one version."""

    items: Objects
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch: `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`."""

    type: str
    object: Object


WatchEvents = list[WatchEvent]


def is_ready(obj: Mapping[str, Any]) -> bool:
    """Whether a pod or Node is ready, as its kubelet says."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)

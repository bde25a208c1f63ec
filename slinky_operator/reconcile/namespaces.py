"""Labels of Namespaces, read one by one: nobody watches Namespaces, since that needs a right over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NAMESPACES, Resource

VALID_S: Final = 30.0
"""Seconds for which labels that were read count."""


class Getter(Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Read one object."""
        ...


class NamespaceLabels:
    """The labels of Namespaces, each read at most every `VALID_S`.

    Parameters
    ----------
    kube
        Reads Namespaces.
    clock
        Monotonic seconds.
    """

    def __init__(self, kube: Getter, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, str] | None]] = {}

    async def of(self, namespace: str) -> Mapping[str, str] | None:
        """Read the labels of a Namespace; None if it is gone, or the operator may not read it.

        Raises
        ------
        KubeError
            The API server failed, or refused for another reason than a missing right.
        """
        known = self._known.get(namespace)
        if known is not None and self._clock() - known[0] < VALID_S:
            return known[1]
        try:
            found: Mapping[str, Any] | None = (await self._kube.get(NAMESPACES, namespace))["metadata"].get("labels")
            labels: Mapping[str, str] | None = found or {}
        except (errors.Forbidden, errors.NotFound):
            labels = None
        self._known = {key: one for key, one in self._known.items() if self._clock() - one[0] < VALID_S}
        self._known[namespace] = self._clock(), labels
        return labels

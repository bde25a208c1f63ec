"""Labels of Namespaces, read one by one: nobody watches Namespaces, since that needs a right over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import NAMESPACES
from slinky_operator.reconcile.text import cut

VALID_S: Final = 30.0
"""Seconds for which what was read counts."""

_LONGEST: Final = 320
"""Characters of an annotation: a namespace, a slash and a name."""


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """What a Namespace says of itself."""

    labels: Mapping[str, str] = field(default_factory=dict)
    sylabs_cluster: str = ""
    """The Cluster for its jobs of the kinds of sylabs' operators, from its annotation; empty without one."""


class NamespaceReader:
    """What Namespaces say of themselves, each read at most every `VALID_S`.

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
        self._known: dict[str, tuple[float, NamespaceFacts | None]] = {}

    async def read(self, namespace: str) -> NamespaceFacts | None:
        """Read a Namespace; None if it is gone, or the operator may not read it.

        Raises
        ------
        KubeError
            The API server failed, or refused for another reason than a missing right.
        """
        known = self._known.get(namespace)
        if known is not None and self._clock() - known[0] < VALID_S:
            return known[1]
        try:
            found = _facts((await self._kube.get(NAMESPACES, namespace))["metadata"])
        except (errors.Forbidden, errors.NotFound):
            found = None
        self._known = {key: one for key, one in self._known.items() if self._clock() - one[0] < VALID_S}
        self._known[namespace] = self._clock(), found
        return found

    async def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Read the labels of a Namespace, as `read` does."""
        found = await self.read(namespace)
        return None if found is None else found.labels


def _facts(metadata: Mapping[str, Any]) -> NamespaceFacts:
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    named = annotations.get(labels.ANNOTATION_SYLABS_JOBS, "").strip()
    return NamespaceFacts(metadata.get("labels") or {}, cut(named, _LONGEST))

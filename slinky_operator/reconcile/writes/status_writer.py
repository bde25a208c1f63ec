"""Writes a status: one merge patch, and none if nothing differs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher
from slinky_operator.kube.resources import Resource

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """A status that has been written."""

    patch: Mapping[str, Any]
    """What differed."""
    answer: Object
    """The object in the API server's answer."""


class StatusWriter:
    """Writes the status of objects of one kind.

    Parameters
    ----------
    resource
        The kind.
    kube
        The API server.
    """

    def __init__(self, resource: Resource, kube: StatusPatcher) -> None:
        self._resource = resource
        self._kube = kube

    async def write(self, obj: Object, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Written | None:
        """Write a status if it differs from the wanted one.

        Parameters
        ----------
        obj
            The object; its uid is part of the patch, so that a new object of the same name is not changed.
        stored
            The status that the object has, as far as the operator may change it.
        wanted
            The wanted status.

        Returns
        -------
        Written or None
            None if nothing differs, or if the object is gone.

        Raises
        ------
        KubeError
            The API server failed or refused.
        """
        patch = patch_between(stored, wanted)
        if not patch:
            return None
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        try:
            answer = await self._kube.patch_status(self._resource, name, patch, namespace, uid=metadata["uid"])
        except errors.NotFound:
            logger.debug("%s %s/%s went before its status was written", self._resource.kind, namespace, name)
            return None
        return Written(patch, answer)


def patch_between(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns `stored` into `wanted`; empty if they are the same.

    A merge patch does not change what it does not name: a field to be removed is set to None.
    """
    patch: dict[str, Any] = {}
    for key in {*stored, *wanted}:
        old, new = stored.get(key), wanted.get(key)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            patch[key] = patch_between(old, new)
        else:
            patch[key] = new
    return patch

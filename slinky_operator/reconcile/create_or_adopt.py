"""Creates an object of a known name; one that is there already will do if it is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource


class NameTaken(Exception):
    """An object of the name we need is somebody else's; the text names it."""


class Creator(Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create an object."""
        ...

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Read an object."""
        ...


async def create_or_adopt(kube: Creator, resource: Resource, body: Object, is_ours: Callable[[Object], bool]) -> Object:
    """Create an object, or take the one of its name that is ours.

    May be repeated: an earlier pass may have made the object without living to see the answer.

    Parameters
    ----------
    body
        The object with its name and namespace.
    is_ours
        Whether an object of that name, as the API server has it, is the one that was to be created.

    Returns
    -------
    Object
        The object as the API server has it.

    Raises
    ------
    NameTaken
        The object of that name is somebody else's.
    KubeError
        What the API server could not do.
    """
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace")
    try:
        return await kube.create(resource, body)
    except errors.AlreadyExists:
        found = await kube.get(resource, name, namespace)
        if not is_ours(found):
            raise NameTaken(f"there is a {resource.kind} {name} that is not ours") from None
        return found

"""Creates an object of a known name; one that exists is used if it is the operator's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator, Getter
from slinky_operator.kube.resources import Resource


class NameTaken(Exception):
    """An object of the needed name belongs to somebody else; the text names it."""


class CreatorAndGetter(Creator, Getter, Protocol):
    """Both calls that are made."""


async def create_or_adopt(
    kube: CreatorAndGetter, resource: Resource, body: Object, is_ours: Callable[[Object], bool]
) -> Object:
    """Create an object, or return the existing one of its name if it is the operator's.

    Safe to repeat: an earlier pass may have created the object and ended before it saw the answer.

    Parameters
    ----------
    body
        The object with its name and namespace.
    is_ours
        Whether an object of that name, as the API server has it, is the one to be created.

    Returns
    -------
    Object
        The object as the API server has it.

    Raises
    ------
    NameTaken
        The object of that name belongs to somebody else.
    KubeError
        The API server failed or refused.
    """
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace")
    try:
        return await kube.create(resource, body)
    except errors.AlreadyExists:
        found = await kube.get(resource, name, namespace)
        if not is_ours(found):
            raise NameTaken(f"there is a {resource.kind} {name} that is not ours") from None
        return found

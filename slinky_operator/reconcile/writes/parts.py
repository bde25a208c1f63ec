"""Parts of what controllers write that are the same for all: conditions, owner references, the stored status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

from pydantic import ValidationError

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import ApiModel, ApiObject, Condition
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.runtime.printable import printable_lines

LONGEST: Final = 4096
"""Characters of the message of a condition."""

S = TypeVar("S", bound=ApiModel)


def condition(kind: str, reason: str = Reason.AS_EXPECTED, message: str = "", *, holds: bool | None) -> Condition:
    """A condition; `holds` is None if it is not known whether it holds.

    When it began to hold, and of which generation it tells, is added by those who merge it into a status.
    """
    status: Literal["True", "False", "Unknown"] = "Unknown" if holds is None else "True" if holds else "False"
    return Condition(
        type=str(kind), status=status, reason=str(reason), message=printable_lines(message[:LONGEST])[:LONGEST]
    )


def owner_reference(resource: Resource, owner: ApiObject, *, blocks: bool | None = None) -> dict[str, Any]:
    """The controller of an object, as one of its owner references.

    Parameters
    ----------
    resource
        The kind of the owner.
    owner
        The owner.
    blocks
        Whether a foreground deletion of the owner waits for the object. That needs the right to update the finalizers
        of the owner. None leaves it out.
    """
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    return reference if blocks is None else {**reference, "blockOwnerDeletion": blocks}


def controller_of(obj: Object) -> Mapping[str, Any]:
    """The owner reference of an object's controller; empty without one."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), {})


def stored_status(model: type[S], obj: Object) -> S:
    """The status of an object; an empty one if nobody has written it, or nobody can read it."""
    try:
        return model.model_validate(obj.get("status") or {})
    except ValidationError:
        return model()

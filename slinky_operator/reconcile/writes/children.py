"""When a child object has to be written: if it is missing, lacks a wanted field, or has one no longer wanted.

Comparing instead of writing each time keeps a pass that changes nothing free of requests. There are two questions:

- Is everything that the operator wants in the live object? What the API server adds (defaults) and what others add
  (annotations, sidecars) does not matter.
- Is everything that the operator has applied still wanted? The API server keeps the list of fields that it has applied
  (`kube.cache.managed_fields`). A container, variable or privilege that is no longer wanted is on that list, what
  others have added is not. For an object without such a list (for example restored from a backup) only the first
  question is asked, until a write for another reason creates one. What another field manager owns as well stays.

An admission webhook or a controller may change an object as it is written. The result of such a write is remembered
(`Settled`), so that the same body is not written again and again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.cache.managed_fields import Fields, fields_of, has_leftovers
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator, Getter
from slinky_operator.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Child:
    """A wanted object."""

    resource: Resource
    body: Object

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name: its key among the Cluster's children."""
        return self.resource.kind, self.name

    @property
    def digest(self) -> str:
        """Distinguishes two bodies."""
        return _digest(self.body)


@dataclass(frozen=True, slots=True)
class Settled:
    """What the API server has made of an object that was written, if it differs from what was sent."""

    wanted: str
    """Digest of the body that was written."""

    live: str
    """Digest of the result."""

    @classmethod
    def of(cls, child: Child, live: Object) -> Settled:
        """Build it from what was written and the result."""
        about = {
            key: value
            for key, value in live["metadata"].items()
            if key not in {"managedFields", "resourceVersion", "generation"}
        }
        return cls(child.digest, _digest({**live, "metadata": about, "status": None}))


def has_settled(child: Child, live: Object, settled: Settled | None) -> bool:
    """Whether writing `child` again would leave `live` unchanged."""
    return settled is not None and settled.wanted == child.digest and settled == Settled.of(child, live)


def applied_fields(live: Object) -> Fields | None:
    """Fields of an object that the operator has applied; `None` if that is not known."""
    return fields_of(live, labels.FIELD_MANAGER)


def is_current(wanted: Object, live: Object) -> bool:
    """Whether everything in `wanted` is in `live`, and nothing beyond that was applied by the operator."""
    fields = applied_fields(live) if "metadata" in live else None
    return shows(wanted, live) and not (fields is not None and has_leftovers(fields, wanted, live))


def shows(wanted: Object, live: Object) -> bool:
    """Whether everything in `wanted` is in `live`."""
    # Data are compared as a whole: a file that is no longer wanted would otherwise stay.
    if any((wanted.get(field) or {}).keys() != (live.get(field) or {}).keys() for field in ("data", "binaryData")):
        return False
    # So are selectors: with one more label in it, a budget protects fewer pods.
    if "selector" in (wanted.get("spec") or {}) and wanted["spec"]["selector"] != (live.get("spec") or {}).get(
        "selector"
    ):
        return False
    return _contains(live, {key: value for key, value in wanted.items() if key not in {"apiVersion", "kind"}})


_KEYS: Final = ("name", "mountPath", "containerPort", "port")
_SUFFIXES: Final = {
    "n": "1e-9", "u": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15", "E": "1e18",
    "Ki": "1024", "Mi": "1048576", "Gi": "1073741824", "Ti": "1099511627776",
    "Pi": "1125899906842624", "Ei": "1152921504606846976",
}  # fmt: skip


def _contains(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        # Most are equal, which takes no line of Python to see.
        if live == wanted:
            return True
        if not isinstance(live, dict):
            return not wanted and live is None
        return all(_contains(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return live == wanted or _contains_list(live if isinstance(live, list) else [], wanted)
    if wanted is None or live is None:
        return wanted is None or wanted in ("", False, 0)
    return bool(live == wanted) or str(live) == str(wanted) or quantity(live) == quantity(wanted) is not None


def _contains_list(live: list[Any], wanted: list[Any]) -> bool:
    if not all(isinstance(item, dict) for item in wanted):
        return len(live) == len(wanted) and all(_contains(*pair) for pair in zip(live, wanted, strict=True))
    for key in _KEYS:
        if wanted and all(key in item for item in wanted) and len({item[key] for item in wanted}) == len(wanted):
            found = {item.get(key): item for item in live if isinstance(item, dict)}
            return all(item[key] in found and _contains(found[item[key]], item) for item in wanted)
    return len(live) == len(wanted) and all(_contains(*pair) for pair in zip(live, wanted, strict=True))


def quantity(value: Any) -> Decimal | None:
    """A Kubernetes quantity as a number, `None` if it is none; the API server rewrites quantities in its own form."""
    text = str(value)
    for length in (2, 1):
        factor = _SUFFIXES.get(text[-length:])
        if factor is not None:
            return _decimal(text[:-length], factor)
    return _decimal(text, "1")


def _decimal(text: str, factor: str) -> Decimal | None:
    try:
        return Decimal(text) * Decimal(factor)
    except InvalidOperation:
        return None


def _digest(body: Object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()[:16]


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

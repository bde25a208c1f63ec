"""What ResourceClaims of a pod ask for, as devices that Slurm counts: what it cannot keep is refused. Pure.

Slurm knows how many devices of which class a task needs, and nothing else. So a request has exactly one class and a
count; a rule about the devices would be broken by the ones that Slurm chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.bridge.device_claims import claims_of_pod
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import named

MOST: Final = 32
"""Devices of a claim: the API server takes no more in its status."""

_PATH: Final = "spec.resourceClaims"


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Devices of one class for a pod."""

    claim: str
    """Name of the claim in the pod."""
    request: str
    """Name of the request in the claim."""
    device_class: str
    kind: str
    """The generic resource, with its type if it has one."""
    count: int


@dataclass(frozen=True, slots=True)
class ClaimsPending:
    """A pod of which a ResourceClaim is not there yet."""

    message: str


def device_requests(
    pod: Object, claims: Mapping[str, Object], classes: Mapping[str, str]
) -> tuple[DeviceRequest, ...] | ClaimsPending:
    """What the claims of a pod ask for.

    Parameters
    ----------
    claims
        The ResourceClaims that are there, by their names in the pod.
    classes
        Classes that Slurm counts, with the generic resource that each is.

    Raises
    ------
    InvalidJob
        For what Slurm cannot keep.
    """
    found: list[DeviceRequest] = []
    names = claims_of_pod(pod)
    for one in pod["spec"].get("resourceClaims") or ():
        name = str(one.get("name"))
        claim = claims.get(name)
        if claim is None:
            made = names.get(name)
            words = f"ResourceClaim {made[:253]} does not exist" if made else "its ResourceClaim is not made yet"
            return ClaimsPending(f"{_PATH}[{name[:63]}]: {words}: Kubernetes makes it of its ResourceClaimTemplate")
        found += _of_claim(name, claim, classes)
    return tuple(found)


def _of_claim(name: str, claim: Object, classes: Mapping[str, str]) -> list[DeviceRequest]:
    path = f"{_PATH}[{name[:63]}].devices"
    devices = (claim.get("spec") or {}).get("devices") or {}
    found = [_request(name, one, path, classes) for one in devices.get("requests") or ()]
    total = sum(one.count for one in found)
    if total > MOST:
        raise InvalidJob(f"{path}.requests", f"ask for {total} devices, and a claim has {MOST} at most")
    if total > 1 and devices.get("constraints"):
        reason = "Slurm chooses the devices and knows no such rule: leave it out"
        raise InvalidJob(f"{path}.constraints", reason)
    return found


def _request(claim: str, request: Mapping[str, Any], path: str, classes: Mapping[str, str]) -> DeviceRequest:
    name = str(request.get("name"))
    here = f"{path}.requests[{name[:63]}]"
    exactly = request.get("exactly")
    if not isinstance(exactly, dict):
        raise InvalidJob(f"{here}.firstAvailable", "Slurm is asked for devices of one class: write exactly")
    for field, reason in _problems(exactly):
        raise InvalidJob(f"{here}.exactly.{field}", reason)
    device_class = str(exactly.get("deviceClassName"))
    kind = classes.get(device_class)
    if kind is None:
        known = f"but {named(list(classes), 20)}" if classes else "and no other"
        reason = (
            f"Slurm counts no devices of class {device_class[:253]} here, {known}; the administrator of the Cluster "
            "can add it in spec.jobs.bridge.gres"
        )
        raise InvalidJob(f"{here}.exactly.deviceClassName", reason)
    count = exactly.get("count")
    return DeviceRequest(claim, name, device_class, kind, count if isinstance(count, int) else 1)


def _problems(exactly: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if exactly.get("adminAccess"):
        yield "adminAccess", "Slurm gives devices to one pod each: leave it out"
    if exactly.get("allocationMode") == "All":
        yield "allocationMode", "Slurm is asked for a number of devices: write ExactCount, and count"
    if exactly.get("selectors"):
        yield "selectors", "Slurm chooses the devices and knows no such rule: choose a class whose devices all fit"
    if exactly.get("capacity"):
        yield "capacity", "Slurm gives whole devices: leave it out"

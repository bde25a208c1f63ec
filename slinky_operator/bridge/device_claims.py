"""Which devices ResourceClaims have, and whose claims they are. Pure.

A claim is the bridge's if a pod names it that waits for Slurm or was placed by it. All other claims are somebody
else's: what they have, Slurm does not give away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.devices import DeviceKey
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object

OF_POOL: Final = "of pool"
"""Index of the cache of claims over `<driver>/<pool>` of the devices that they have."""

OF_CLAIM: Final = "of claim"
"""Index of the cache of pods that Slurm places over `<namespace>/<claim>`."""


def allocated(claim: Object) -> tuple[DeviceKey, ...]:
    """The devices that a claim has; those of administrators, who look only, do not count."""
    return tuple(
        (str(one.get("driver")), str(one.get("pool")), str(one.get("device")))
        for one in results_of(claim)
        if not one.get("adminAccess")
    )


def results_of(claim: Object) -> Sequence[Mapping[str, Any]]:
    """The devices that a claim has, as they stand in its status; empty if it has none."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def is_allocated(claim: Object) -> bool:
    """Whether a claim has been given devices."""
    return bool((claim.get("status") or {}).get("allocation"))


def nodes_of(claim: Object) -> list[str]:
    """Names of the Nodes on which the devices of a claim are, as its status has them."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    fields = [one for term in terms for one in term.get("matchFields") or () if one.get("key") == "metadata.name"]
    return [str(name) for one in fields for name in one.get("values") or ()]


def claims_of_pod(pod: Object) -> dict[str, str]:
    """Names of the ResourceClaims of a pod, by their names in it: those that it names, and those made for it."""
    found: dict[str, str] = {}
    made = {
        one.get("name"): one.get("resourceClaimName")
        for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    for one in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = one.get("resourceClaimName") or made.get(one.get("name"))
        if name:
            found[str(one.get("name"))] = str(name)
    return found


def is_bridged(pod: Object) -> bool:
    """Whether a pod with the label of the bridge waits for Slurm, or was placed by it."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    is_placed = labels.ANNOTATION_BRIDGE_SLURMJOB in (pod["metadata"].get("annotations") or {})
    return is_placed or any(one.get("name") == labels.GATE_BRIDGE for one in gates)


def is_of_bridge(claim: Object, pods: Store) -> bool:
    """Whether a claim belongs to a pod that Slurm places.

    Parameters
    ----------
    pods
        The cache of these pods.
    """
    metadata = claim["metadata"]
    return any(is_bridged(pod) for pod in pods.find(OF_CLAIM, f"{metadata.get('namespace')}/{metadata['name']}"))


def holders(pools: Iterable[tuple[str, str]], claims: Store) -> dict[DeviceKey, list[Object]]:
    """Which claims have which device of some pools, by driver and name: nothing keeps two from having one."""
    found: dict[DeviceKey, list[Object]] = {}
    for driver, pool in pools:
        for claim in claims.find(OF_POOL, f"{driver}/{pool}"):
            for place in allocated(claim):
                found.setdefault(place, []).append(claim)
    return found


def by_pool(claim: Object) -> list[str]:
    """Indexer for `OF_POOL`."""
    return sorted({f"{driver}/{pool}" for driver, pool, _ in allocated(claim)})


def by_claim(pod: Object) -> list[str]:
    """Indexer for `OF_CLAIM`."""
    namespace = pod["metadata"].get("namespace")
    return [f"{namespace}/{name}" for name in claims_of_pod(pod).values()]


def prune_claim(obj: Object) -> None:
    """Shorten a ResourceClaim, in place: parameters of drivers are not kept."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp")
    obj["metadata"] = {key: metadata[key] for key in kept if key in metadata}
    devices = spec.get("devices") or {}
    obj["spec"] = {"devices": {key: devices[key] for key in ("requests", "constraints") if key in devices}}
    shown: dict[str, Any] = {}
    if status.get("allocation"):
        given = status["allocation"]
        results = [
            {key: one[key] for key in ("request", "driver", "pool", "device", "adminAccess") if key in one}
            for one in results_of(obj)
        ]
        shown["allocation"] = {"devices": {"results": results}, "nodeSelector": given.get("nodeSelector")}
    if status.get("reservedFor"):
        shown["reservedFor"] = status["reservedFor"]
    obj["status"] = shown

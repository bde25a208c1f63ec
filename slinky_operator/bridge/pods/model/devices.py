"""Which devices a pod gets of those that Slurm has given to its job, and what is still to be written. Pure.

Slurm gives a job indices on each node. The pods of the job on that node share them out by their tasks: the first takes
the first ones, and so on. That follows from the allocation and from the number of the task, both of which are written
down and stay, so it comes out the same however often it is worked out, and no device has two pods.

What an index means, the feature of the node in Slurm says (`slinky_operator.bridge.devices`). It is asked for after the
job was seen to run: a node with a job is never made again.

A ResourceClaim gets its devices before the pod loses its gate. The gate is lifted by a later pass, once the cache shows
the claim with them: it then shows all that was written before, too, so a device that another claim has had since is
seen. Devices of a claim that nobody uses, and that are not those of the job, are taken back first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slinky_operator.bridge.device_claims import is_allocated, results_of
from slinky_operator.bridge.devices import Device, DeviceKey
from slinky_operator.bridge.pods.model.snapshot import GroupJob, Member, Snapshot
from slinky_operator.bridge.pods.model.translation.device_requests import DeviceRequest
from slinky_operator.bridge.pods.model.translation.request import Request
from slinky_operator.kube.objects import Object
from slurm_client.notation import gres


@dataclass(frozen=True, slots=True)
class Allocate:
    """Give a ResourceClaim its devices, or take them back."""

    member: Member
    job: GroupJob | None
    """The job whose devices these are; None to take back."""
    claim: Object
    allocation: Mapping[str, Any] | None = None
    """What goes into the status, without parameters of drivers; None to take back."""
    classes: tuple[tuple[str, Object], ...] = ()
    """The requests of the claim, with the classes that they name."""


@dataclass(frozen=True, slots=True)
class Given:
    """The devices of a pod."""

    shown: str = ""
    """For its annotation: devices by claim."""
    writes: tuple[Allocate, ...] = ()
    """What is to be written before its gate is lifted."""


def given(snapshot: Snapshot, job: GroupJob, member: Member, slot: int, nodes: Sequence[str]) -> Given | str:
    """The devices of a pod; why it cannot have them now.

    Parameters
    ----------
    slot
        Which task of the job the pod is.
    nodes
        The node of each task.
    """
    request = member.request
    if not isinstance(request, Request) or not request.devices:
        return Given()
    if snapshot.devices_unknown:
        return snapshot.devices_unknown
    found = _share_of(snapshot, job, request.devices, slot, nodes)
    if isinstance(found, str):
        return found
    writes: list[Allocate] = []
    for name, claim in member.claims.items():
        own = [(one, device) for one, device in found if one.claim == name]
        if not own:
            continue
        step = _write(snapshot, job, member, claim, own, nodes[slot])
        if isinstance(step, str):
            return step
        if step is not None:
            writes.append(step)
    return Given(_shown(found), tuple(writes))


def taken_back(members: Sequence[Member]) -> list[Allocate]:
    """Devices of pods that wait, and that no job of theirs has."""
    return [
        Allocate(one, None, claim)
        for one in members
        for claim in one.claims.values()
        if is_allocated(claim) and not _users(claim)
    ]


def results(claim: Object) -> list[tuple[str, str, str, str]]:
    """The devices of a claim, to be compared."""
    return [
        (str(one.get("request")), str(one.get("driver")), str(one.get("pool")), str(one.get("device")))
        for one in results_of(claim)
    ]


def with_parameters(allocation: Mapping[str, Any], claim: Object, classes: Sequence[tuple[str, Object]]) -> Object:
    """An allocation with the parameters of drivers, as the scheduler of Kubernetes writes them: classes first.

    Parameters
    ----------
    claim
        As the API server has it.
    classes
        The requests of the claim, with the classes that they name.
    """
    config = [
        {**one, "source": "FromClass", "requests": [request]}
        for request, found in classes
        for one in (found.get("spec") or {}).get("config") or ()
    ]
    asked = ((claim.get("spec") or {}).get("devices") or {}).get("config") or ()
    config += [{**one, "source": "FromClaim"} for one in asked]
    devices = {**allocation["devices"], **({"config": config} if config else {})}
    return {**allocation, "devices": devices}


def _share_of(
    snapshot: Snapshot, job: GroupJob, requests: Sequence[DeviceRequest], slot: int, nodes: Sequence[str]
) -> list[tuple[DeviceRequest, Device]] | str:
    """The devices of one task, for each request in turn."""
    node = nodes[slot]
    before = nodes[:slot].count(node)
    numbered = snapshot.numbered.get(node)
    if numbered is None:
        return f"Slurm does not show node {node}"
    if numbered.devices.problem:
        return f"devices of Node {node} are not known now: {numbered.devices.problem}"
    indices = _indices(job, node)
    left: dict[str, list[Device]] = {}
    for kind in dict.fromkeys(one.kind for one in requests):
        count = sum(one.count for one in requests if one.kind == kind)
        given_here = indices.get(kind)
        if given_here is None or len(given_here) < (before + 1) * count:
            return f"Slurm does not say which {kind} of node {node} job {job.status.job_id} has, or has given it fewer"
        devices = numbered.devices.numbered(numbered.word, kind.partition(":")[0])
        mine = given_here[before * count : (before + 1) * count]
        if devices is None or any(at >= len(devices) or devices[at].kind != kind for at in mine):
            return f"Node {node} has other devices than those of which Slurm has made its node"
        left[kind] = [devices[at] for at in mine]
    return [(one, left[one.kind].pop(0)) for one in requests for _ in range(one.count)]


def _indices(job: GroupJob, node: str) -> dict[str, tuple[int, ...]]:
    """What a job has on a node, by generic resource with its type."""
    found: dict[str, tuple[int, ...]] = {}
    for one in job.status.allocation or ():
        for text in one.gres if one.node == node else ():
            try:
                parsed = gres.parse(text)
            except ValueError:
                # Its devices count as not named: the claim is not written, and the pod shows that Slurm does not say
                # which it has.
                continue
            for entry in parsed:
                if entry.indices is not None:
                    kind = f"{entry.name}:{entry.type}" if entry.type else entry.name
                    found[kind] = (*found.get(kind, ()), *entry.indices)
    return found


def _write(
    snapshot: Snapshot,
    job: GroupJob,
    member: Member,
    claim: Object,
    own: Sequence[tuple[DeviceRequest, Device]],
    node: str,
) -> Allocate | str | None:
    """What is to be written into a claim; None if it stands there, a text if it cannot be."""
    wanted = [(one.request, *device.key) for one, device in own]
    stands = is_allocated(claim) and results(claim) == wanted
    rival = _rival(snapshot.holders, [device.key for _, device in own], claim)
    is_used = bool(_users(claim))
    if is_allocated(claim) and not is_used and (rival or not stands):
        return Allocate(member, None, claim)
    problem = _problem(member, claim, is_ours=stands or not is_allocated(claim)) or rival
    missing = next((one.device_class for one, _ in own if one.device_class not in snapshot.classes), None)
    if missing is not None:
        problem = problem or f"DeviceClass {missing} does not exist"
    if problem or stands:
        return problem or None
    entries = [{"request": r, "driver": driver, "pool": pool, "device": name} for r, driver, pool, name in wanted]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    body = {"devices": {"results": entries}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    classes = {one.request: snapshot.classes[one.device_class] for one, _ in own}
    return Allocate(member, job, claim, body, tuple(classes.items()))


def _problem(member: Member, claim: Object, *, is_ours: bool) -> str:
    """Why nothing can be written into a claim; empty if something can.

    Parameters
    ----------
    is_ours
        Whether it has no devices, or those that it is to have.
    """
    about = claim["metadata"]
    if about.get("deletionTimestamp"):
        return f"ResourceClaim {about['name']} is being deleted"
    if any(one != member.uid for one in _users(claim)):
        return f"ResourceClaim {about['name']} is used by another pod: each pod needs one of its own"
    return "" if is_ours else f"ResourceClaim {about['name']} has other devices, and is in use"


def _rival(holders: Mapping[DeviceKey, Sequence[Object]], keys: Sequence[DeviceKey], claim: Object) -> str:
    """Who else has one of some devices; empty if nobody has."""
    for key in keys:
        for other in holders.get(key, ()):
            about = other["metadata"]
            if about.get("uid") != claim["metadata"].get("uid"):
                title = f"ResourceClaim {about.get('namespace')}/{about['name']}"
                return f"{title} has device {key[2]} of pool {key[1]}: waits until it is free"
    return ""


def _users(claim: Object) -> list[str]:
    """Uids of what uses a claim."""
    return [str(one.get("uid")) for one in (claim.get("status") or {}).get("reservedFor") or ()]


def _shown(found: Sequence[tuple[DeviceRequest, Device]]) -> str:
    by_claim: dict[str, list[str]] = {}
    for one, device in found:
        by_claim.setdefault(one.claim, []).append(device.name)
    return "; ".join(f"{name}={','.join(devices)}" for name, devices in by_claim.items())

"""Whether the volumes of nodes have room: job output, slurmd's spool, and the disks of Kubernetes Nodes.

Job log servers look at job output. slurmd's spool, and job output without a claim, are on the disk of the Kubernetes
Node, whose kubelet looks at it and evicts pods, with their jobs, before it is full. A spool that is full Slurm itself
notices, with the first job that is to start there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason, find
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model.pods import output_room, scheduling
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.pods.scheduling import Fit
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import layout
from slinky_operator.nodeset.report import out_of_service
from slinky_operator.reconcile.text import joined, named
from slinky_operator.runtime.printable import printable_lines

KIND: Final = NodeSetCondition.VOLUMES_HAVE_ROOM

REASONS: Final = frozenset({Reason.VOLUME_FULL, Reason.VOLUME_NEARLY_FULL, Reason.NODE_DISK_PRESSURE})
"""Troubles of volumes: nodes with them serve, and the NodeSet is Ready."""

_EFFECT: Final = (
    "When it is full, what jobs write there is cut off, and jobs may fail with No space left on device. Remove old "
    "output, or enlarge the volume"
)

Told = tuple[Reason, str, str, frozenset[str]]
"""Reason, text, a brief form, and the pods concerned."""


def told(snapshot: Snapshot) -> list[Told]:
    """What there is to report; what was stored stays while pods that it names were not asked by this process yet."""
    found = _by_reason([*_spools(snapshot), *_output(snapshot), *_disks(snapshot)])
    stored = find(snapshot.nodeset.status.conditions, KIND)
    if stored is not None and stored.status == "False" and stored.reason != Reason.NODE_DISK_PRESSURE:
        was = output_room.named_in(snapshot.nodeset.status)
        pods = {volume: [pod.name for pod in of] for volume, of in output_room.by_volume(snapshot.pods).items()}
        unasked = frozenset(
            name for volume, names in pods.items() if volume not in snapshot.rooms for name in was.intersection(names)
        )
        if unasked:
            return [(Reason(stored.reason), stored.message, "", unasked)]
    return found


def conditions(snapshot: Snapshot, found: Sequence[Told]) -> Iterable[Condition]:
    """The condition; none where no server looks and no kubelet complains."""
    if found:
        yield _condition("False", found[0][0], "; ".join(text for _, text, _, _ in found))
        return
    volumes = output_room.by_volume(snapshot.pods)
    if not volumes:
        return
    seen = {volume: snapshot.rooms[volume] for volume in volumes if volume in snapshot.rooms}
    silent = [f"{_name(volume, volumes[volume])}: {one.why}" for volume, one in seen.items() if one.why]
    if silent:
        yield _condition("Unknown", Reason.VOLUME_SILENT, f"Nothing is known of a volume. {joined(sorted(silent))}")
    elif any(one.room is not None for one in seen.values()):
        yield _condition("True", Reason.AS_EXPECTED, "")
    else:
        stored = find(snapshot.nodeset.status.conditions, KIND)
        yield stored or _condition("Unknown", Reason.CONNECTING, "no job log server has reported its free space")


def _by_reason(found: Sequence[Told]) -> list[Told]:
    """One for each reason: an Event is identified by its reason and its object."""
    alike: dict[Reason, list[Told]] = {}
    for one in found:
        alike.setdefault(one[0], []).append(one)
    return [
        (
            reason,
            "; ".join(text for _, text, _, _ in of),
            "; ".join(brief for _, _, brief, _ in of),
            frozenset[str]().union(*(names for _, _, _, names in of)),
        )
        for reason, of in alike.items()
    ]


def _spools(snapshot: Snapshot) -> Iterable[Told]:
    """Nodes whose spool was full when a job was to start there, as Slurm has noticed."""
    full = [
        member.pod
        for member in snapshot.aside
        if member.record is not None and out_of_service.is_spool_full(member.record)
    ]
    if not full:
        return
    names = named([pod.name for pod in full])
    told_of = (
        f"slurmd's spool is full on {names}: Slurm has drained these nodes, and holds the jobs that were to start "
        "there; jobs that run go on. Make room, resume the nodes (scontrol update NodeName=NAME State=RESUME), and "
        "release the jobs (scontrol release JOB)"
    )
    yield Reason.VOLUME_FULL, told_of, f"spool full on {names}", frozenset(pod.name for pod in full)


def _output(snapshot: Snapshot) -> Iterable[Told]:
    volumes = output_room.by_volume(snapshot.pods)
    low = sorted(
        (int(100 * seen.room.share), _name(volume, volumes[volume]), seen.room, volume)
        for volume, seen in snapshot.rooms.items()
        if volume in volumes and seen.is_low and seen.room is not None
    )
    if not low:
        return
    reason = Reason.VOLUME_FULL if low[0][2].is_full else Reason.VOLUME_NEARLY_FULL
    texts = [f"{name} has {room.left()}" for _, name, room, _ in low]
    brief = f"{low[0][1]} is {'full' if low[0][2].is_full else 'nearly full'}"
    brief += f", and {len(low) - 1} more" if len(low) > 1 else ""
    names = frozenset(pod.name for _, _, _, volume in low for pod in volumes[volume][:1])
    yield reason, f"{joined(texts)}. {_EFFECT}", brief, names


def _disks(snapshot: Snapshot) -> Iterable[Told]:
    pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        host = snapshot.host_of(pod)
        if host is not None and host.disk_pressure and not pod.deleting:
            pods.setdefault(host.name, []).append(pod)
    closed = frozenset(_closed(snapshot)) - pods.keys()
    if not pods and not closed:
        return
    texts = [f"Node {host} (pods {named([pod.name for pod in of])})" for host, of in sorted(pods.items())]
    texts += [f"Node {host} (no pod)" for host in sorted(closed)]
    told_of = (
        f"kubelets report DiskPressure: {joined(texts)}. slurmd's spool and job output without a claim are on these "
        "disks. The kubelet may evict pods with their jobs, which Slurm then requeues or fails, and no pod starts there"
    )
    brief = f"disk pressure on Nodes {named(sorted(pods.keys() | closed))}"
    names = frozenset(pod.name for of in pods.values() for pod in of) | closed
    yield Reason.NODE_DISK_PRESSURE, told_of, brief, names


def _closed(snapshot: Snapshot) -> Iterable[str]:
    """Nodes that would have a pod of the NodeSet but for their disk pressure, and may have lost it for that."""
    nodeset = snapshot.nodeset
    if nodeset.mode is not ScalingMode.DAEMON_SET or snapshot.hosts is None:
        return
    pressed = [host for host in snapshot.hosts.values() if host.disk_pressure]
    pod_spec = layout.pod_spec_of(nodeset) if pressed else {}
    for host in pressed:
        if scheduling.fit(pod_spec, replace(host, disk_pressure=False)) is Fit.RUN:
            yield host.name


def _name(volume: str, pods: Sequence[Pod]) -> str:
    """A volume by the first pod that mounts it, and its claim, if it has one."""
    first, more = pods[0], f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    return f"job-output of {first.name}{more}{f' ({volume})' if first.output_claim else ''}"


def _condition(status: str, reason: Reason, message: str) -> Condition:
    return Condition.model_validate(
        {"type": KIND, "status": status, "reason": reason, "message": printable_lines(message)[:4096]}
    )

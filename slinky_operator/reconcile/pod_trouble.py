"""Why a daemon's pod does not start, from the scheduler, the kubelet and the daemon's last output. Pure.

Without a running pod of a daemon, Slurm's clients only see a failed connection. What Kubernetes knows of the pod is
reported instead; in a form that changes neither with the clock nor with each attempt of the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut, named, stamp
from slinky_operator.slurm.pods.exit_messages import LONGEST, short, unscheduled

SETTLED: Final = timedelta(seconds=20)
"""How long a new pod may be without a Node or an image before it is reported: a claim is bound within seconds."""

SLOW: Final = timedelta(seconds=60)
"""How long the kubelet may take to create containers before it is reported."""

MOMENT: Final = timedelta(seconds=60)
"""How long a container that ended before must run until its last exit is no longer reported."""

TERMINATING: Final = "Terminating"
UNSCHEDULABLE: Final = "Unschedulable"
NO_POD: Final = "NoPod"
_PULLING: Final = "ImagePullBackOff"
_CRASHING: Final = "CrashLoopBackOff"
_IMAGE: Final = frozenset({_PULLING, "ErrImagePull", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName"})
_CREATING: Final = frozenset({None, "", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class DaemonTrouble:
    """Why one daemon does not start."""

    daemon: str
    reason: str
    """The kubelet's reason, one word."""

    message: str
    """For people."""

    passing: bool = False
    """Whether every restart looks like this for a moment: not reported while Slurm answers."""

    @override
    def __str__(self) -> str:
        return self.message


def of_pod(daemon: str, pod: Object, wall: datetime) -> Iterable[DaemonTrouble]:
    """Why a pod of a daemon does not start, at the time of day `wall`; nothing if it does, or was just created."""
    if not is_settled(pod, wall):
        return
    found = _why(pod, wall)
    if found is not None:
        reason, words = found
        message = f"{daemon}'s pod {pod['metadata']['name']} does not start: {words}"
        # An evicted pod is kept for inspection, and has a successor.
        yield DaemonTrouble(daemon, reason, message, passing=(pod.get("status") or {}).get("phase") == "Failed")


def words(pod: Object, wall: datetime) -> str:
    """Why a pod does not start, without its name; empty if it does, or was just created."""
    found = _why(pod, wall) if is_settled(pod, wall) else None
    return found[1] if found is not None else ""


def _why(pod: Object, wall: datetime) -> tuple[str, str] | None:
    """A reason and a message about a pod that does not start."""
    status = pod.get("status") or {}
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            said = cut(str(one.get("message") or one.get("reason") or "no word"), LONGEST)
            return UNSCHEDULABLE, unscheduled(said)
    if status.get("phase") == "Failed":
        reason = status.get("reason") or "Failed"
        return reason, cut(": ".join(filter(None, (reason, status.get("message")))), LONGEST)
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    found = (_of_container(container, pod, wall) for container in containers)
    known = next((one for one in found if one is not None), None)
    return known or _slow(pod, containers, wall)


def _of_container(status: Mapping[str, Any], pod: Object, wall: datetime) -> tuple[str, str] | None:
    name = status.get("name", "")
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason = waiting.get("reason")
    ended = _ended(status, reason, wall)
    if ended is not None:
        return _CRASHING, f"{name} has ended: {_end(ended, name, pod)}"
    if reason in _CREATING:
        return None
    image = status.get("image") or ""
    text = waiting.get("message") or ""
    if reason in _IMAGE:
        # The kubelet shows one cause alternately with two reasons.
        reason = _PULLING if reason == "ErrImagePull" else reason
        text = text.removeprefix(f'Back-off pulling image "{image}": ').removeprefix("ErrImagePull: ")
        text = f"image {image}{f': {text}' if text else ''}"
    return str(reason), f"{name}: {cut(f'{reason}: {text}' if text else str(reason), LONGEST)}"


def _ended(status: Mapping[str, Any], waits_for: str | None, wall: datetime) -> Mapping[str, Any] | None:
    """The last exit of a container in a crash loop, or one that has just failed; `None` for any other."""
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated")
    now = state.get("terminated")
    if now is not None:
        return now if now.get("exitCode") else None
    if waits_for == _CRASHING:
        return last or {}
    # Between two exits it runs for a moment, or is about to. A container that has started since no longer counts.
    running = state.get("running")
    if running is not None and (status.get("started") or not _is_young(running, wall)):
        return None
    again = not status.get("ready") and status.get("restartCount", 0) > 1 and waits_for in _CREATING
    return last if again and last is not None and last.get("exitCode") else None


def _is_young(running: Mapping[str, Any], wall: datetime) -> bool:
    since = running.get("startedAt")
    return since is not None and wall - datetime.fromisoformat(since) < MOMENT


def _end(ended: Mapping[str, Any], name: str, pod: Object) -> str:
    """How a container has ended: its output, or where to read it."""
    code, reason = ended.get("exitCode"), ended.get("reason")
    how = f"exit code {'unknown' if code is None else code}" + (
        f" ({reason})" if reason not in {None, "", "Error", "Completed"} else ""
    )
    about = pod["metadata"]
    logs = f"kubectl -n {about.get('namespace', 'default')} logs {about['name']} -c {name} --previous has its log"
    return f"{how}: {short(ended.get('message') or '') or logs}"


def _slow(pod: Object, containers: Iterable[Mapping[str, Any]], wall: datetime) -> tuple[str, str] | None:
    """Containers that the kubelet has not created for a long time: it shows the cause only in Events."""
    names = [container["name"] for container in containers if (container.get("state") or {}).get("waiting")]
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    if not names or wall - created <= SLOW:
        return None
    about = pod["metadata"]
    describe = f"kubectl -n {about.get('namespace', 'default')} describe pod {about['name']}"
    words = (
        f"{named(names)}: not created yet, since {stamp(created)}; an image is being pulled, or a volume cannot be "
        f"mounted ({describe} says which)"
    )
    return "ContainerCreating", words


def is_settled(obj: Object, wall: datetime) -> bool:
    """Whether an object is old enough that its state is no longer the initial one."""
    created = obj["metadata"].get("creationTimestamp")
    return created is not None and wall - datetime.fromisoformat(created) > SETTLED

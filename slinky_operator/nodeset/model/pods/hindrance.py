"""Why a pod does not run: the messages of the scheduler and the kubelet, in a form that does not change with the clock.

The kubelet shows an image that it cannot pull alternately as ErrImagePull and as ImagePullBackOff, with the same cause
behind two texts; here both are one. A container that ends repeatedly is shown as waiting, running and terminated in
turn; here it is one hindrance until a run has lasted longer than the kubelet's back-off. The number of crashes is left
out for the same reason. Whether a slurmd may have run in the pod is read by `pod_facts`, and what is done about the pod
is decided by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api.conditions import PodCondition, Reason
from slinky_operator.reconcile.text import cut, moment
from slinky_operator.slurm.pods.exit_messages import short, unscheduled

_SLURMD: Final = "slurmd"

GRACE: Final = timedelta(seconds=20)
"""How long a pod may be without a Node before it is reported: a claim is bound within seconds."""

BACK_OFF: Final = timedelta(minutes=10)
"""How long a container must run until the kubelet restarts it without back-off."""

LONGEST: Final = 300
"""Characters shown of a message of the scheduler or the kubelet."""

_IMAGE: Final = frozenset(
    {
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_NOT_CREATED: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PostStartHookError",
        "PreCreateHookError",
        "PreStartHookError",
        "RunContainerError",
    }
)
_CRASHING: Final = "CrashLoopBackOff"

_BACK_OFF: Final = re.compile(r'^Back-off pulling image "[^"]*"(?:: )?(?:ErrImagePull: )?')


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a pod does not run."""

    reason: Reason
    text: str
    """For people; it follows the names of pods."""
    since: datetime | None = None
    """Since when, if Kubernetes shows it."""
    brief: str = field(default="", compare=False)
    """A short form that follows a number of pods; if empty, the text is used."""
    until: datetime | None = None
    """When it is over unless the container has ended again; None if only a change in the status ends it."""

    def is_over(self, now: datetime) -> bool:
        """Whether the container has run long enough since it crashed."""
        return self.until is not None and now >= self.until

    def is_told(self, now: datetime) -> bool:
        """Whether it has lasted long enough to be reported, and is not over."""
        if self.is_over(now):
            return False
        return self.reason is not Reason.UNSCHEDULABLE or self.since is None or now - self.since >= GRACE

    def left(self, now: datetime) -> float | None:
        """Seconds until it is reported, or is no longer; None if time changes nothing."""
        if self.until is not None:
            return None if self.is_over(now) else (self.until - now).total_seconds()
        return None if self.since is None or self.is_told(now) else (self.since + GRACE - now).total_seconds()


def read(obj: Mapping[str, Any], time: datetime | None) -> Hindrance | None:
    """Read from a pod why it does not run; None if it runs or is starting.

    Parameters
    ----------
    obj
        The pod as the API server returns it.
    time
        When its condition PodScheduled last changed.
    """
    status: Mapping[str, Any] = obj.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = cut(str(condition.get("message") or "the scheduler does not say why"), LONGEST)
            # What follows the first sentence is about preemption.
            few = words.partition(". ")[0].removesuffix(".")
            return Hindrance(Reason.UNSCHEDULABLE, unscheduled(words), time, f"not scheduled: {few}")
    images = dict(_images(obj.get("spec") or {}))
    for shown in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        found = _of_container(shown, images) or _between_crashes(obj, shown, images)
        if found is not None:
            return found
    return None


def _of_container(shown: Mapping[str, Any], images: Mapping[str, str]) -> Hindrance | None:
    waiting = (shown.get("state") or {}).get("waiting") or {}
    word, said = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    name = str(shown.get("name") or "")
    image = images.get(name) or str(shown.get("image") or "")
    if word in _IMAGE:
        detail = cut(_BACK_OFF.sub("", said), LONGEST)
        plain = "ImagePullBackOff" if word == "ErrImagePull" else word
        text = f"container {name} cannot get image {image} ({plain})"
        return Hindrance(
            Reason.IMAGE_PULL_BACK_OFF, f"{text}: {detail}" if detail else text, brief=f"without image {image}"
        )
    if word in _NOT_CREATED:
        text = f"container {name} cannot be created ({word})"
        return Hindrance(
            Reason.CONTAINER_NOT_CREATED,
            f"{text}: {cut(said, LONGEST)}" if said else text,
            brief=f"not created: {cut(said, LONGEST) or word}",
        )
    if word == _CRASHING:
        return Hindrance(
            Reason.CRASH_LOOP_BACK_OFF,
            f"container {name} of image {image} {_ended(_last_end(shown))}",
            brief=f"crashing in container {name}",
        )
    return None


def _between_crashes(obj: Mapping[str, Any], shown: Mapping[str, Any], images: Mapping[str, str]) -> Hindrance | None:
    """The hindrance of a crash-looping container while it runs between two crashes or has just ended.

    A container that is started for the second time has not waited before.
    """
    state = shown.get("state") or {}
    if "waiting" in state or int(shown.get("restartCount") or 0) <= 1 or not _was_short(_last_end(shown)):
        return None
    until = None
    if "running" in state:
        started = moment(state["running"].get("startedAt"))
        if started is None or _is_well(obj, shown, started):
            return None
        until = started + BACK_OFF
    elif "terminated" not in state or shown.get("ready"):
        # An init container that has finished is reported as ready.
        return None
    name = str(shown.get("name") or "")
    image = images.get(name) or str(shown.get("image") or "")
    text = f"container {name} of image {image} {_ended(_last_end(shown))}"
    return Hindrance(Reason.CRASH_LOOP_BACK_OFF, text, brief=f"crashing in container {name}", until=until)


def _is_well(obj: Mapping[str, Any], shown: Mapping[str, Any], started: datetime) -> bool:
    """Whether a restarted container has shown that it works: by its own probe, or slurmd by registering.

    Without a probe a container is reported as ready as soon as it runs.
    """
    name, spec = shown.get("name"), obj.get("spec") or {}
    if any(one.get("name") == name and one.get("readinessProbe") for one in _containers(spec)):
        return bool(shown.get("ready"))
    if name != _SLURMD:
        return False
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == PodCondition.REGISTERED and one.get("status") == "True":
            registered = moment(one.get("lastTransitionTime"))
            return registered is not None and registered >= started
    return False


def _last_end(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a container last ended; empty if it never did."""
    found: Mapping[str, Any] = (shown.get("state") or {}).get("terminated") or {}
    return found or (shown.get("lastState") or {}).get("terminated") or {}


def _was_short(ended: Mapping[str, Any]) -> bool:
    """Whether a container ended before it had run for as long as the back-off; one that never started did."""
    begin, end = moment(ended.get("startedAt")), moment(ended.get("finishedAt"))
    if begin is None or end is None or begin.timestamp() <= 0:
        return bool(ended)
    return end - begin < BACK_OFF


def _ended(ended: Mapping[str, Any]) -> str:
    text = f"exits repeatedly (CrashLoopBackOff), last with exit code {ended.get('exitCode', '?')}"
    why = str(ended.get("reason") or "")
    if why and why != "Error":
        text += f" ({why})"
    said = cut(short(str(ended.get("message") or "")), LONGEST)
    return f"{text}: {said}" if said else text


def _images(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    return ((str(one.get("name")), str(one.get("image") or "")) for one in _containers(spec))


def _containers(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))

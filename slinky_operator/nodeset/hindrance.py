"""Why a pod does not run: what the scheduler and the kubelet say of it, in words that do not change with the clock.

The kubelet shows an image that it cannot pull as ErrImagePull and as ImagePullBackOff in turn, with the same cause
behind two texts; here both are one. How often a container has crashed is left out for the same reason. Whether a slurmd
may have run in the pod is told by `facts`, and what is done about the pod by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.words import cut

GRACE: Final = timedelta(seconds=20)
"""How long a pod may be without a Node before it is reported: a claim is bound within seconds."""

LONGEST: Final = 300
"""Characters shown of what the scheduler or the kubelet says."""

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
    """For people, to follow the names of pods."""
    since: datetime | None = None
    """Since when, where Kubernetes says so."""
    brief: str = field(default="", compare=False)
    """The same in few words, to follow a number of pods; the text where empty."""

    def is_told(self, now: datetime) -> bool:
        """Whether it has lasted long enough to be reported."""
        return self.reason is not Reason.UNSCHEDULABLE or self.since is None or now - self.since >= GRACE

    def left(self, now: datetime) -> float | None:
        """Seconds until it is reported; None if it is already."""
        return None if self.since is None or self.is_told(now) else (self.since + GRACE - now).total_seconds()


def read(obj: Mapping[str, Any], time: datetime | None) -> Hindrance | None:
    """Read from a pod why it does not run; None if it runs, or is on its way.

    Parameters
    ----------
    obj
        The pod as the API server gives it.
    time
        When its condition PodScheduled became what it is.
    """
    status: Mapping[str, Any] = obj.get("status") or {}
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            words = cut(str(one.get("message") or "the scheduler does not say why"), LONGEST)
            # What comes after the first sentence is about preemption.
            few = words.partition(". ")[0].removesuffix(".")
            return Hindrance(Reason.UNSCHEDULABLE, f"not scheduled: {words}", time, f"not scheduled: {few}")
    images = dict(_images(obj.get("spec") or {}))
    for shown in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        found = _of_container(shown, images)
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
            f"container {name} of image {image} {_ended(shown)}",
            brief=f"crashing in container {name}",
        )
    return None


def _ended(shown: Mapping[str, Any]) -> str:
    ended = (shown.get("lastState") or {}).get("terminated") or {}
    text = f"ends again and again (CrashLoopBackOff), last with exit code {ended.get('exitCode', '?')}"
    why = str(ended.get("reason") or "")
    if why and why != "Error":
        text += f" ({why})"
    said = cut(str(ended.get("message") or ""), LONGEST)
    return f"{text}: {said}" if said else text


def _images(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    containers: Sequence[Mapping[str, Any]] = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return ((str(one.get("name")), str(one.get("image") or "")) for one in containers)

"""Messages of daemons, kubelets and schedulers, shortened for a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from slinky_operator.kube.objects import Object

LONGEST: Final = 400
"""Maximum characters of a message of the kubelet or scheduler."""

MAX_LINES: Final = 4
"""Maximum number of lines."""

_PREFIX: Final = re.compile(r"^(?:\[[^\]]*\]\s*)?(?:slurm(?:ctld|d)[^:\s]*:\s+)?")
_NOISE: Final = re.compile(
    r"MailProg is invalid|Could not open \w+ state file|Trying backup|GPU detection failed|differs from hardware"
    r"|lib wasn't found"
)
"""Lines about an empty state or a plain machine, which are always logged."""


def short(text: str) -> str:
    """The lines that matter, in order, joined by slashes; empty if there are none."""
    lines = [_PREFIX.sub("", line.strip()) for line in text.splitlines()]
    said = [line for line in lines if line and _NOISE.search(line) is None]
    grave = [line for line in said if "fatal" in line or "error" in line]
    return " / ".join(dict.fromkeys((grave or said)[-MAX_LINES:]))


def last_words(statuses: Iterable[Object], container: str) -> str:
    """The last output of a container that is not ready; empty if it has not ended."""
    for one in statuses:
        if one.get("name") == container and not one.get("ready"):
            states: tuple[Any, ...] = (
                (one.get("state") or {}).get("terminated"),
                (one.get("lastState") or {}).get("terminated"),
            )
            return short(next((state.get("message") or "" for state in states if state), ""))
    return ""


def stuck(pod: Object) -> str:
    """Why a pod does not start, as its scheduler and kubelet report; empty if they report nothing."""
    status = pod.get("status") or {}
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"not scheduled: {one.get('message') or one.get('reason') or 'no word'}"[:LONGEST]
    containers = status.get("containerStatuses") or ()
    # A sidecar that waits to be restarted holds up no pod whose containers run.
    runs = any("running" in (one.get("state") or {}) for one in containers)
    for one in (*(() if runs else status.get("initContainerStatuses") or ()), *containers):
        words = held_up(one)
        if words:
            return f"{one['name']}: {words}"
    return ""


def held_up(status: Object) -> str:
    """Why a container waits, by its status; empty if it does not, or is only being created."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") in {None, "", "ContainerCreating", "PodInitializing"}:
        return ""
    return ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))[:LONGEST]

"""Messages of daemons, kubelets and schedulers, shortened for a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

Object = Mapping[str, Any]

LONGEST: Final = 400
"""Maximum characters of a message of the kubelet or scheduler."""

MAX_LINES: Final = 4
"""Maximum number of lines."""

_UNBOUND: Final = "unbound immediate PersistentVolumeClaims"
"""What the scheduler says of a pod with a claim that has no volume."""

_NO_VOLUME: Final = (
    "its claim has no volume, kubectl describe pvc says why: if there is no default StorageClass, create one, or name "
    "one in storageClassName"
)

_ASKED: Final = "Terminate signal "
"""What slurmctld of 24.11 and 26.05 logs when it is asked to end, by a signal or by `scontrol shutdown`."""

OLD: Final = timedelta(seconds=10)
"""A line that is so much older than the last one is not why a daemon has ended."""

_PREFIX: Final = re.compile(r"^(?:\[(?P<at>[^\]]*)\]\s*)?(?:slurm(?:ctld|d|restd)[^:\s]*:\s+)?")
_GRAVE: Final = re.compile(r"^(?:error|fatal)\b")
_NOISE: Final = re.compile(
    # An empty state, a plain machine.
    r"MailProg is invalid|Could not open \w+ state file|Trying backup|GPU detection failed|differs from hardware"
    r"|lib wasn't found|power_save module disabled"
    # Accounting that is left out of a trial, or not wanted.
    r"|accounting information gathered, but not stored|can only be used with SlurmDBD, ignoring"
    r"|You can not have AccountingStorageEnforce set"
    # What Slurm passes over, as it says itself.
    r"|please ignore error|latest value used|\b(?:is invalid|option),? ignored|Ignoring invalid"
    r"|is invalid, reset to|Resetting CPUs|Could not find configured group"
    # The line before it says the same, with a number of a file that nobody sees.
    r"|^error: Parse error in file \S*/slurm\.conf line \d+"
    # A slow machine.
    r"|High latency for \d+ calls"
    # Less than an error.
    r"|^debug\d?:"
)
"""Lines that a daemon logs, and goes on."""


def short(text: str) -> str:
    """The lines that are the fault, in order, joined by slashes; empty if there are none.

    Of more than `MAX_LINES` the first stay, which are nearest to the cause, and the last, with which the daemon ends.
    """
    said = [line for line in map(_read, text.splitlines()) if line.words and _NOISE.search(line.words) is None]
    faults = [line for line in said if _GRAVE.match(line.words)] or [
        line for line in said if "fatal" in line.words or "error" in line.words
    ]
    last = next((line.at for line in reversed(faults) if line.at is not None), None)
    recent = [line.words for line in faults if last is None or line.at is None or last - line.at <= OLD]
    told = list(dict.fromkeys(recent or [line.words for line in said]))
    if recent and len(told) > MAX_LINES:
        told = [*told[: MAX_LINES // 2], *told[-(MAX_LINES // 2) :]]
    return " / ".join(told[-MAX_LINES:])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a log, without what is in front of each."""

    at: datetime | None
    words: str


def _read(line: str) -> _Line:
    prefix = _PREFIX.match(line.strip())
    assert prefix is not None  # noqa: S101 - it matches nothing, too
    return _Line(_time(prefix["at"] or ""), line.strip()[prefix.end() :])


def _time(text: str) -> datetime | None:
    """A time as daemons log it; None if it is none."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None) if text else None
    except ValueError:
        return None


def ended(pod: Object) -> dict[str, Mapping[str, Any]]:
    """How the containers of a pod have ended, by name."""
    return {
        one["name"]: one["state"]["terminated"]
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        if (one.get("state") or {}).get("terminated")
    }


def last_words(statuses: Iterable[Object], container: str) -> str:
    """The last output of a container that is not ready; empty if it has not ended."""
    for statuse in statuses:
        if statuse.get("name") == container and not statuse.get("ready"):
            states: tuple[Any, ...] = (
                (statuse.get("state") or {}).get("terminated"),
                (statuse.get("lastState") or {}).get("terminated"),
            )
            return short(next((state.get("message") or "" for state in states if state), ""))
    return ""


def fault_of(pod: Object, container: str) -> str:
    """The last output of a container that has failed; empty if it has ended in order, which is no word on its files."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return "" if ended_in_order(pod, container) else last_words(statuses, container)


def ended_in_order(pod: Object, container: str) -> bool:
    """Whether a container has last ended since it was asked to, which is no fault, whatever it had logged before.

    By its exit code where the kubelet asked. A slurmctld that an administrator ends (`scontrol shutdown`) ends below a
    first process that was asked nothing, and exits with 1: there the last thing that slurmctld says decides.
    """
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if one.get("name") == container:
            states = ((one.get(key) or {}).get("terminated") for key in ("state", "lastState"))
            last = next(filter(None, states), None) or {}
            _, asked, since = str(last.get("message") or "").rpartition(_ASKED)
            return last.get("exitCode") == 0 or (bool(asked) and "fatal" not in since)
    return False


def stuck(pod: Object) -> str:
    """Why a pod does not start, as its scheduler and kubelet report; empty if they report nothing."""
    status = pod.get("status") or {}
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return unscheduled(str(one.get("message") or one.get("reason") or "no word"))
    containers = status.get("containerStatuses") or ()
    # A sidecar that waits to be restarted holds up no pod whose containers run.
    runs = any("running" in (container.get("state") or {}) for container in containers)
    for one in (*(() if runs else status.get("initContainerStatuses") or ()), *containers):
        words = held_up(one)
        if words:
            return f"{one['name']}: {words}"
    return ""


def unscheduled(message: str) -> str:
    """Why a pod has no Node, as the scheduler says, and what to do where its message does not lead there."""
    advice = f"; {_NO_VOLUME}" if _UNBOUND in message else ""
    return f"not scheduled: {message[:LONGEST]}{advice}"


def held_up(status: Object) -> str:
    """Why a container waits, by its status; empty if it does not, or is only being created."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") in {None, "", "ContainerCreating", "PodInitializing"}:
        return ""
    return ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))[:LONGEST]

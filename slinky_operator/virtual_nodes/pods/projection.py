"""The status of a pod that shows its SlurmJob. Pure.

The API server takes no container of such a pod back from its end, so an end is written only once Slurm's is final. A
job that Slurm runs again waits meanwhile, with its end before as the last state. A job that was given up since its
Cluster is gone has no end: it may run on, and a pod that had ended would be made again beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import Reason as ConditionReason
from slinky_api.conditions import SlurmJobCondition, find, is_true
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs.phases import Phase, Reason
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut, stamp

LONGEST: Final = 1000
"""Characters of a message."""

ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that run no more."""

CANCELLED: Final = 143
"""Exit code of what was ended by SIGTERM."""

_WORDS: Final[Mapping[str, str]] = {
    Reason.EXIT_CODE: "Error",
    Reason.OUT_OF_MEMORY: "OOMKilled",
}
"""Reasons by which users of Kubernetes know an end."""

_ENDED_BY_SLURM: Final = frozenset({Reason.CANCELLED, Reason.DEADLINE, Reason.PREEMPTED, Reason.TIMEOUT})
_HIGHEST: Final = 255
_RUNS: Final = frozenset({Phase.RUNNING.value, Phase.SUSPENDED.value, Phase.ENDING.value})


def is_finished(job: SlurmJobStatus) -> bool:
    """Whether the job of a SlurmJob has ended, and will not run again."""
    return is_true(job.conditions, SlurmJobCondition.FINISHED)


def is_given_up(job: SlurmJobStatus) -> bool:
    """Whether the job of a SlurmJob may run on, in a Slurm whose Cluster is gone."""
    finished = find(job.conditions, SlurmJobCondition.FINISHED)
    return finished is not None and finished.status == "True" and finished.reason == ConditionReason.CLUSTER_GONE


def shows_end(pod: Object) -> bool:
    """Whether a pod shows that its job has ended; that Kubernetes itself has marked it as failed is no sign of it."""
    return "terminated" in (_container(pod).get("state") or {})


@dataclass(frozen=True, slots=True)
class Frame:
    """What surrounds the status of a container.

    Parameters
    ----------
    pod
        The pod.
    now
        The time.
    address
        Of the virtual Node; empty if it is not known.
    is_node_ready
        Whether Kubernetes takes the Node for ready: if not, its controller says that the pod is not, either.
    """

    pod: Object
    now: datetime
    address: str = ""
    is_node_ready: bool = True


def of_job(frame: Frame, job: SlurmJobStatus) -> Object:
    """The status that shows a SlurmJob."""
    now, before = frame.now, _container(frame.pod)
    container = {**_blank(frame.pod), **_restarts(before, job, now)}
    if is_given_up(job):
        unknown = {"reason": str(ConditionReason.CLUSTER_GONE), **_message(job.summary)}
        container |= {"state": {"waiting": unknown}}
        return _status(frame, _phase(frame.pod), container, unknown["reason"])
    if is_finished(job):
        return _ended(frame, container, _end(job, before, now))
    if job.state in _RUNS:
        is_running = job.state == Phase.RUNNING
        started = stamp(job.start_time) if job.start_time else _started(before) or stamp(now)
        container |= {"state": {"running": {"startedAt": started}}, "started": True, "ready": is_running}
        return _status(frame, "Running", container, "" if is_running else job.reason or job.state)
    waiting = {"reason": job.reason or "Queued", **_message(job.summary)}
    container |= {"state": {"waiting": waiting}}
    phase = "Running" if (job.restarts or 0) and _phase(frame.pod) == "Running" else "Pending"
    return _status(frame, phase, container, waiting["reason"])


def waits(frame: Frame, reason: str, message: str) -> Object:
    """The status of a pod that has no job, and may get one."""
    container = {**_blank(frame.pod), **_kept(_container(frame.pod))}
    container |= {"state": {"waiting": {"reason": reason, **_message(message)}}}
    return _status(frame, "Pending", container, reason)


def refused(frame: Frame, reason: str, message: str) -> Object:
    """The status of a pod that gets no job, and whose controller makes another only so many times."""
    stored = frame.pod.get("status") or {}
    status = {**stored, "phase": "Failed", "reason": reason, "message": cut(message, LONGEST)}
    return {**status, "startTime": stored.get("startTime") or stamp(frame.now)}


def over(frame: Frame, reason: str, message: str) -> Object:
    """The status of a pod whose job is no more, and has left no other end."""
    before, now = _container(frame.pod), stamp(frame.now)
    end: dict[str, Any] = {"exitCode": CANCELLED, "reason": reason, **_message(message)}
    end |= {"startedAt": _started(before) or now, "finishedAt": now}
    return _ended(frame, {**_blank(frame.pod), **_kept(before)}, end)


def left(frame: Frame, message: str) -> Object:
    """The status of a pod without which its job runs on: it has failed, and its container has not ended."""
    return refused(frame, "JobKept", message)


def _ended(frame: Frame, container: Object, end: Mapping[str, Any]) -> Object:
    is_good = end["exitCode"] == 0
    ended = {**container, "state": {"terminated": dict(end)}}
    return _status(frame, "Succeeded" if is_good else "Failed", ended, "PodCompleted" if is_good else "PodFailed")


def _end(job: SlurmJobStatus, before: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    finished = stamp(job.end_time) if job.end_time else stamp(now)
    started = stamp(job.start_time) if job.start_time else _started(before) or finished
    end: dict[str, Any] = {"startedAt": started, "finishedAt": finished}
    if job.job_id is not None:
        end["containerID"] = _container_id(job.job_id)
    if job.state == Phase.SUCCEEDED:
        return {**end, "exitCode": 0, "reason": "Completed"}
    code = job.exit_code or (128 + job.signal if job.signal else 0)
    if not 0 < code <= _HIGHEST:
        code = CANCELLED if job.reason in _ENDED_BY_SLURM else 1
    reason = _WORDS.get(job.reason, job.reason or "Error")
    return {**end, "exitCode": code, "reason": reason, **_message(job.summary)}


def _blank(pod: Object) -> dict[str, Any]:
    """What each status of the container has, as the API server stores it: lists are compared whole."""
    container = (pod["spec"].get("containers") or [{}])[0]
    return {
        "name": str(container.get("name", "")),
        "image": str(container.get("image", "")),
        "imageID": "",
        "lastState": {},
        "restartCount": 0,
        "ready": False,
        "started": False,
    }


def _kept(before: Mapping[str, Any]) -> dict[str, Any]:
    return {key: before[key] for key in ("restartCount", "lastState", "containerID") if before.get(key)}


def _restarts(before: Mapping[str, Any], job: SlurmJobStatus, now: datetime) -> dict[str, Any]:
    """How often Slurm has run the job again, and how it ended before."""
    known, count = int(before.get("restartCount") or 0), job.restarts or 0
    kept = _kept(before)
    if job.job_id is not None:
        kept["containerID"] = _container_id(job.job_id)
    if count <= known:
        return kept
    end = {"exitCode": CANCELLED, "reason": "Requeued", "finishedAt": stamp(now)}
    started = _started(before)
    if started:
        end["startedAt"] = started
    return {**kept, "restartCount": count, "lastState": {"terminated": end}}


def _message(text: str) -> dict[str, str]:
    """A message, if there is one: the API server stores no empty one."""
    return {"message": cut(text, LONGEST)} if text else {}


def _container_id(number: int) -> str:
    return f"slurm://{number}"


def _container(pod: Object) -> Mapping[str, Any]:
    """The status of the container as it is shown."""
    found = (pod.get("status") or {}).get("containerStatuses") or [{}]
    first: Mapping[str, Any] = found[0]
    return first


def _started(before: Mapping[str, Any]) -> str:
    state = before.get("state") or {}
    return str((state.get("running") or state.get("terminated") or {}).get("startedAt") or "")


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _status(frame: Frame, phase: str, container: Object, not_ready: str) -> Object:
    """The whole status; `not_ready` is why the pod is not ready, and empty if it is."""
    stored, now = frame.pod.get("status") or {}, stamp(frame.now)
    status = {**stored, "phase": phase, "containerStatuses": [container]}
    status["startTime"] = stored.get("startTime") or now
    if frame.address:
        status |= {"hostIP": frame.address, "hostIPs": [{"ip": frame.address}]}
    wanted = {"Initialized": "", "ContainersReady": not_ready, "Ready": not_ready}
    conditions = list(stored.get("conditions") or ())
    if not not_ready and not frame.is_node_ready:
        # The Node's controller writes that pods are not ready; it would be written to and fro.
        known = {one.get("type") for one in conditions}
        wanted = {kind: why for kind, why in wanted.items() if kind not in known}
    by_type = {str(one.get("type")): one for one in conditions}
    others = [one for one in conditions if one.get("type") not in wanted]
    status["conditions"] = [
        *others,
        *(_condition(by_type.get(kind, {}), kind, why, now) for kind, why in wanted.items()),
    ]
    # What was said of a pod that waited is over.
    return {key: value for key, value in status.items() if key not in {"reason", "message"} or phase in ENDED}


def _condition(before: Mapping[str, Any], kind: str, why_not: str, now: str) -> Mapping[str, Any]:
    """A condition; as it is stored, with what the API server has added, if it says the same."""
    value = "False" if why_not else "True"
    if before.get("status") == value and (before.get("reason") or "") == why_not:
        return before
    since = before.get("lastTransitionTime") if before.get("status") == value else None
    reason = {"reason": why_not} if why_not else {}
    return {"type": kind, "status": value, **reason, "lastTransitionTime": since or now}

"""One pod as a share of a job, and what its job asks for besides: the same for all pods of a group. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from slinky_api import labels
from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.bridge.pods.model.membership import GroupKind, asked_kind
from slinky_operator.bridge.pods.model.translation import job_annotations
from slinky_operator.bridge.pods.model.translation.device_requests import DeviceRequest
from slinky_operator.bridge.pods.model.translation.features import features
from slinky_operator.bridge.pods.model.translation.job_annotations import FIELDS, USER
from slinky_operator.bridge.pods.model.translation.resources import Share, share_of
from slinky_operator.jobs import external, parameters, tenants
from slinky_operator.jobs.annotated_fields import PARAMETERS
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.nodes.bridge_gres import gres_by_class, gres_by_resource
from slurm_client import JobSpec

_FOLLOWS: Final = {
    "memory_per_cpu": "follows from the requests of the containers",
    "tres_per_task": "follows from the requests of the containers",
    "memory_per_tres": "follows from the requests of the containers",
    "cpus_per_tres": "follows from the requests of the containers",
    "required_nodes": "a job that names a node fails once it is gone: use nodeSelector, with featureLabels",
    "excluded_nodes": "use nodeSelector, with featureLabels",
    "overcommit": "each pod has CPUs of its own",
    "tres_per_job": "follows from the requests of the containers",
    "tres_per_socket": "follows from the requests of the containers",
    "ntasks_per_tres": "follows from the number of pods",
    "hold": "write spec.suspend of the SlurmJob",
}
"""Parameters that would contradict the pods."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one pod asks for.

    Parameters
    ----------
    share
        What it has of its job.
    fields
        The spec of a SlurmJob as users write it, as JSON with sorted keys: without Cluster, tasks and share.
    user
        The user that the pod names; None for none.
    ignored
        Names of annotations without effect.
    devices
        What its ResourceClaims ask for; its share has them, too.
    """

    share: Share
    fields: str = "{}"
    user: str | None = None
    ignored: tuple[str, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()

    def spec(self, tasks: int) -> dict[str, Any]:
        """The spec of a SlurmJob for so many pods, but for its Cluster and user."""
        spec: dict[str, Any] = json.loads(self.fields)
        own: dict[str, Any] = {"memory_per_cpu": -(-self.share.memory_mib // self.share.cpus)}
        gres = ",".join(f"gres/{name}={count}" for name, count in self.share.gres)
        if gres:
            own |= {"tres_per_task": gres}
        given = {**spec.pop(PARAMETERS, {}), **own}
        return {**spec, "external": {}, "tasks": tasks, "cpusPerTask": self.share.cpus, PARAMETERS: given}

    def fits(self, spec: Mapping[str, Any]) -> bool:
        """Whether a pod fits into a task of a SlurmJob that exists, no matter who has written it."""
        wanted, given = self.spec(1), spec.get(PARAMETERS)
        if not isinstance(given, dict) or not isinstance(spec.get("external"), dict):
            return False
        has_memory = isinstance(given.get("memory_per_cpu"), int)
        return (
            spec.get("cpusPerTask") == wanted["cpusPerTask"]
            and spec.get("features") == wanted.get("features")
            and has_memory
            and given["memory_per_cpu"] >= wanted[PARAMETERS]["memory_per_cpu"]
            and given.get("tres_per_task") == wanted[PARAMETERS].get("tres_per_task")
        )


LONGEST_GRACE_S: Final = 600
"""Seconds that a pod may take to end: so long it keeps a Node that Slurm has given to the next job already."""


def request_of(
    pod: Object,
    kind: GroupKind,
    bridge: Bridge,
    owner: Mapping[str, str],
    deadline_s: object,
    devices: tuple[DeviceRequest, ...] = (),
) -> Request:
    """Translate a pod.

    Parameters
    ----------
    pod
        The pod.
    kind
        Of its group.
    bridge
        What the administrator says of Nodes.
    owner
        Annotations of the object that holds the group together.
    deadline_s
        Seconds that this object may take; None for no limit.
    devices
        What the ResourceClaims of the pod ask for.

    Raises
    ------
    InvalidJob
        With the path of the field, and what to do.
    """
    _check(pod, kind)
    if pod["spec"].get("resourceClaims") and not devices:
        raise InvalidJob("spec.resourceClaims", "ask for no devices that Slurm counts")
    found = job_annotations.asked({**_inherited(owner), **(pod["metadata"].get("annotations") or {})})
    _check_gres(found.gres, bridge)
    share = _share(share_of(pod, gres_by_resource(bridge), [(one.kind, one.count) for one in devices]), found)
    fields = dict(found.fields)
    user = fields.pop(USER, None)
    for name, reason in _FOLLOWS.items():
        if name in fields.get(PARAMETERS, {}):
            raise InvalidJob(f"{FIELDS.path(PARAMETERS)}.{name}", reason)
    fields["features"] = features(pod, bridge, fields.get("features"))
    seconds = [one for one in (pod["spec"].get("activeDeadlineSeconds"), deadline_s) if isinstance(one, int)]
    if seconds and "time" not in fields:
        fields["time"] = str(max(1, -(-min(seconds) // 60)))
    return Request(share, json.dumps(fields, sort_keys=True), user, found.ignored, devices)


def check(request: Request, granted: tenants.Grant) -> None:
    """Check what can be known before a SlurmJob is made.

    Raises
    ------
    InvalidJob
        With the field.
    """
    fields = request.spec(1)
    try:
        spec = SlurmJobSpec.model_validate({key: value for key, value in fields.items() if key != "external"})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidJob(FIELDS.path(str(first["loc"][0])), first["msg"].removeprefix("Value error, ")) from None
    external.check(spec)
    for _ in parameters.wishes(spec.parameters):
        pass
    _ = tenants.restrict(JobSpec(account=spec.account, partition=spec.partition, qos=spec.qos), granted)


def _inherited(owner: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in owner.items()
        if key.startswith(labels.SLURMJOB_PREFIX) or key.removeprefix(labels.BRIDGE_PREFIX) in FIELDS.fields
    }


def _share(own: Share, found: job_annotations.Asked) -> Share:
    """The share of a pod: annotations may ask for more than its requests, not for less."""
    for name, wanted, least in (
        ("cpu-per-task", found.cpus, own.cpus),
        ("mem-per-node", found.memory_mib, own.memory_mib),
    ):
        if wanted is not None and wanted < least:
            raise InvalidJob(job_annotations.path(name), f"is less than the containers request, {least}")
    counted = dict(own.gres)
    twice = next((name for name, _ in found.gres if name in counted), None)
    if twice is not None:
        raise InvalidJob(job_annotations.path("gres"), f"the containers request {twice}, too: remove one of them")
    gres = tuple(sorted((counted | dict(found.gres)).items()))
    return Share(found.cpus or own.cpus, found.memory_mib or own.memory_mib, gres)


def _check(pod: Object, kind: GroupKind) -> None:
    """Refuse what Slurm cannot keep."""
    spec = pod["spec"]
    if asked_kind(pod) not in {"", GroupKind.JOB, GroupKind.POD}:
        raise InvalidJob(f"metadata.annotations[{labels.LABEL_BRIDGE_GROUP}]", "must be Job or Pod")
    if spec.get("nodeName"):
        raise InvalidJob("spec.nodeName", "Slurm chooses the Node: leave it out")
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace > LONGEST_GRACE_S:
        reason = f"must be {LONGEST_GRACE_S} at most, since Slurm has given the Node away by then, not {grace}"
        raise InvalidJob("spec.terminationGracePeriodSeconds", reason)
    if kind is GroupKind.POD:
        return
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        if (affinity.get(name) or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            reason = "Slurm places the pods of a group together and knows no such rule: leave it out, or prefer it"
            raise InvalidJob(f"spec.affinity.{name}", reason)
    if any(one.get("whenUnsatisfiable") != "ScheduleAnyway" for one in spec.get("topologySpreadConstraints") or ()):
        reason = "Slurm places the pods of a group and knows no such rule: leave it out, or write ScheduleAnyway"
        raise InvalidJob("spec.topologySpreadConstraints", reason)


def _check_gres(asked: Iterable[tuple[str, int]], bridge: Bridge) -> None:
    """Refuse devices without a claim: Slurm would count them, and the pod would not have them."""
    names = {kind.partition(":")[0] for kind in gres_by_class(bridge).values()}
    for kind, _ in asked:
        if kind.partition(":")[0] in names:
            reason = f"{kind} are devices of ResourceClaims here: ask for them in spec.resourceClaims"
            raise InvalidJob(job_annotations.path("gres"), reason)

"""Which fields of a pod are used, which are ignored, and which are refused, with what to do. Pure.

The lists name every field of `PodSpec` and of `Container` in the API of Kubernetes 1.35; a field that a later one adds
is refused, so that nothing that a user asks for is dropped without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object

CONTAINER: Final = "spec.containers[0]"
"""Path of the only container."""

USED: Final = frozenset({"activeDeadlineSeconds", "containers", "nodeName", "os", "restartPolicy", "volumes"})
"""Fields of the spec of a pod that say something of its job."""

IGNORED: Final = frozenset(
    {
        "affinity",
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostname",
        "imagePullSecrets",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "schedulerName",
        "schedulingGates",
        "serviceAccount",
        "serviceAccountName",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "workloadRef",
    }
)
"""Fields that are done with once the pod is bound, or that are set by default and mean nothing outside Kubernetes."""

_HOST: Final = "the job runs on a node of Slurm, outside Kubernetes. Remove it"
REFUSED: Final[Mapping[str, str]] = {
    "hostAliases": _HOST,
    "hostIPC": _HOST,
    "hostNetwork": _HOST,
    "hostPID": _HOST,
    "hostUsers": _HOST,
    "hostnameOverride": _HOST,
    "initContainers": "a Slurm job runs one container. Do their work in the container itself",
    "readinessGates": "nothing outside Slurm decides whether a job is ready. Remove it",
    "resourceClaims": "Slurm allocates no devices of resource claims: request nvidia.com/gpu",
    "resources": "write the resources of the container instead",
    "runtimeClassName": "how images run is decided by the Cluster's administrator, in spec.jobs.virtualNodes.runtime",
    "setHostnameAsFQDN": _HOST,
    "shareProcessNamespace": "a Slurm job runs one container. Remove it",
}
"""Fields of the spec that are refused if they ask for something."""

CONTAINER_USED: Final = frozenset(
    {"args", "command", "env", "envFrom", "image", "name", "ports", "resources", "volumeMounts", "workingDir"}
)
CONTAINER_IGNORED: Final = frozenset(
    {"imagePullPolicy", "resizePolicy", "terminationMessagePath", "terminationMessagePolicy"}
)
_PROBE: Final = "no kubelet runs probes on nodes of Slurm. Remove it"
_TERMINAL: Final = "a batch job has no terminal. Remove it"
CONTAINER_REFUSED: Final[Mapping[str, str]] = {
    "lifecycle": "no kubelet runs hooks on nodes of Slurm. Do their work in the container itself",
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "restartPolicy": "Slurm starts a container once. Remove it",
    "restartPolicyRules": "Slurm starts a container once. Remove it",
    "startupProbe": _PROBE,
    "stdin": _TERMINAL,
    "stdinOnce": _TERMINAL,
    "tty": _TERMINAL,
    "volumeDevices": "block devices of claims are not on nodes of Slurm. Remove it",
}
"""The same of the container."""

_CONTEXT_IGNORED: Final = frozenset(
    {"allowPrivilegeEscalation", "appArmorProfile", "readOnlyRootFilesystem", "runAsNonRoot", "seccompProfile"}
)
"""Limits that a job of a plain user keeps, or that namespaces with the restricted policy demand of each pod."""

_USER: Final = "the job runs as the Slurm user that the Cluster's administrator has chosen for the namespace. Remove it"
_NO_RIGHTS: Final = "a job has no rights beyond those of its user. Remove it"
_CONTEXT_REFUSED: Final[Mapping[str, str]] = {
    "fsGroup": _USER,
    "fsGroupChangePolicy": _USER,
    "privileged": _NO_RIGHTS,
    "procMount": _NO_RIGHTS,
    "runAsGroup": _USER,
    "runAsUser": _USER,
    "seLinuxChangePolicy": _NO_RIGHTS,
    "seLinuxOptions": _NO_RIGHTS,
    "supplementalGroups": _USER,
    "supplementalGroupsPolicy": _USER,
    "sysctls": _NO_RIGHTS,
    "windowsOptions": "jobs run on Linux. Remove it",
}


def check(pod: Object) -> None:
    """Refuse what a Slurm job cannot give.

    Raises
    ------
    InvalidJob
        With the path of the field, and what to do.
    """
    spec = pod["spec"]
    _check(spec, "spec", USED | IGNORED | {"securityContext"}, REFUSED)
    _check_context(spec.get("securityContext") or {}, "spec.securityContext")
    if spec.get("restartPolicy") == "Always":
        reason = "Always would run the job again for ever: write Never, or OnFailure, which counts as Never"
        raise InvalidJob("spec.restartPolicy", reason)
    system = (spec.get("os") or {}).get("name", "linux")
    if system != "linux":
        raise InvalidJob("spec.os.name", f"jobs run on linux, not on {system}")
    containers = spec.get("containers") or []
    if len(containers) != 1:
        raise InvalidJob("spec.containers", f"a Slurm job runs one container, and the pod has {len(containers)}")
    _check_container(containers[0])


def _check_container(container: Object) -> None:
    _check(container, CONTAINER, CONTAINER_USED | CONTAINER_IGNORED | {"securityContext"}, CONTAINER_REFUSED)
    context = container.get("securityContext") or {}
    capabilities = context.get("capabilities") or {}
    if capabilities.get("add"):
        raise InvalidJob(f"{CONTAINER}.securityContext.capabilities.add", _NO_RIGHTS)
    rest = {key: value for key, value in context.items() if key != "capabilities"}
    _check_context(rest, f"{CONTAINER}.securityContext")
    for number, port in enumerate(container.get("ports") or ()):
        if port.get("hostPort"):
            raise InvalidJob(f"{CONTAINER}.ports[{number}].hostPort", _HOST)


def _check_context(context: Mapping[str, Any], path: str) -> None:
    _check(context, path, _CONTEXT_IGNORED, _CONTEXT_REFUSED)


def _check(fields: Mapping[str, Any], path: str, taken: frozenset[str], refused: Mapping[str, str]) -> None:
    for name in _asked(fields):
        if name in taken:
            continue
        reason = refused.get(name, "is a field that this operator does not know. Remove it")
        raise InvalidJob(f"{path}.{name}", reason)


def _asked(fields: Mapping[str, Any]) -> Iterator[str]:
    """Fields that ask for something: false is the default of every switch but one."""
    for name, value in fields.items():
        if value or (name == "hostUsers" and value is False) or (value == 0 and value is not False):
            yield name

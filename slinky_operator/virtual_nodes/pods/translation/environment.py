"""Variables of a container as those of its job, and references to them in its command, as kubelets resolve both. Pure.

A Secret would be in clear text in the SlurmJob, in the request to slurmrestd and in slurmctld's state, so none is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.virtual_nodes.pods.translation.pod_fields import CONTAINER

ConfigMaps = Mapping[str, Mapping[str, str] | None]
"""Data of ConfigMaps of the pod's namespace, by name; None for one that does not exist."""

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]*)\))")
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_READABLE: Final = (
    "a Secret would be readable in the SlurmJob and in Slurm: keep it in a file that only the user of the job can read"
)


def variables_of(pod: Object, config_maps: ConfigMaps) -> dict[str, str]:
    """Return the variables of the container.

    Parameters
    ----------
    pod
        The pod.
    config_maps
        Those that `names_of_config_maps` names.

    Raises
    ------
    InvalidJob
        For a Secret, a ConfigMap or a key that does not exist, and a field that only a kubelet knows.
    """
    container = pod["spec"]["containers"][0]
    found: dict[str, str] = {}
    for number, source in enumerate(container.get("envFrom") or ()):
        found |= _all_of(source, f"{CONTAINER}.envFrom[{number}]", config_maps)
    for number, variable in enumerate(container.get("env") or ()):
        path = f"{CONTAINER}.env[{number}]"
        if variable.get("valueFrom"):
            value = _value_from(pod, variable["valueFrom"], f"{path}.valueFrom", config_maps)
        else:
            value = expanded(str(variable.get("value") or ""), found)
        if value is not None:
            found[_checked(str(variable["name"]), f"{path}.name")] = value
    return found


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by the value of a variable; one that is not known stays as it is, and ``$$`` is a dollar."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else variables.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


def names_of_config_maps(pod: Object) -> frozenset[str]:
    """Names of the ConfigMaps that the variables of the container and the volumes of the pod come from."""
    spec = pod.get("spec") or {}
    containers: Sequence[Any] = spec.get("containers") or ()
    sources = (
        reference
        for container in containers[:1]
        for one in (*(container.get("envFrom") or ()), *(container.get("env") or ()))
        for reference in (one.get("configMapRef"), (one.get("valueFrom") or {}).get("configMapKeyRef"))
    )
    volumes = (one.get("configMap") for one in spec.get("volumes") or ())
    return frozenset(str(one["name"]) for one in (*sources, *volumes) if one and one.get("name"))


def _all_of(source: Mapping[str, Any], path: str, config_maps: ConfigMaps) -> Iterator[tuple[str, str]]:
    if source.get("secretRef"):
        raise InvalidJob(f"{path}.secretRef", _READABLE)
    reference = source.get("configMapRef") or {}
    data = _data(reference, f"{path}.configMapRef", config_maps)
    prefix = str(source.get("prefix") or "")
    return iter([(_checked(prefix + key, f"{path}.configMapRef"), value) for key, value in (data or {}).items()])


def _value_from(pod: Object, source: Mapping[str, Any], path: str, config_maps: ConfigMaps) -> str | None:
    """The value of a variable; None for one whose optional source does not exist."""
    for name in ("secretKeyRef", "fileKeyRef"):
        if source.get(name):
            reason = _READABLE if name == "secretKeyRef" else "needs an init container, which a Slurm job does not have"
            raise InvalidJob(f"{path}.{name}", reason)
    if source.get("fieldRef"):
        return _field(pod, str(source["fieldRef"].get("fieldPath") or ""), f"{path}.fieldRef")
    if source.get("resourceFieldRef"):
        return _resource(pod, source["resourceFieldRef"], f"{path}.resourceFieldRef")
    if source.get("configMapKeyRef"):
        reference = source["configMapKeyRef"]
        data = _data(reference, f"{path}.configMapKeyRef", config_maps)
        key = str(reference.get("key") or "")
        if data is not None and key in data:
            return data[key]
        if not reference.get("optional"):
            where = f"ConfigMap {reference.get('name')}"
            raise InvalidJob(f"{path}.configMapKeyRef.key", f"{where} has no key {key}: add it, or make it optional")
        return None
    raise InvalidJob(path, "names no source that is known here")


def _data(reference: Mapping[str, Any], path: str, config_maps: ConfigMaps) -> Mapping[str, str] | None:
    data = config_maps.get(str(reference.get("name") or ""))
    if data is None and not reference.get("optional"):
        words = f"there is no ConfigMap {reference.get('name')} in this namespace: create it, and the pod again"
        raise InvalidJob(f"{path}.name", words)
    return data


def _field(pod: Object, field: str, path: str) -> str:
    metadata = pod["metadata"]
    keyed = _KEYED.fullmatch(field)
    if keyed is not None:
        return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
    known = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": pod["spec"].get("nodeName"),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName"),
    }
    if field not in known:
        reason = f"{field[:100]} is not known before the job starts, or not at all outside Kubernetes"
        raise InvalidJob(f"{path}.fieldPath", reason)
    return str(known[field] or "")


def _resource(pod: Object, reference: Mapping[str, Any], path: str) -> str:
    kind, _, name = str(reference.get("resource") or "").partition(".")
    resources = pod["spec"]["containers"][0].get("resources") or {}
    value = quantity((resources.get(kind) or {}).get(name)) if kind in {"limits", "requests"} else None
    if value is None:
        raise InvalidJob(f"{path}.resource", f"the container does not set {kind}.{name}"[:200])
    divisor = quantity(reference.get("divisor") or "1") or Decimal(1)
    return str((value / (divisor or Decimal(1))).to_integral_value(ROUND_CEILING))


def _checked(name: str, path: str) -> str:
    if not _NAME.fullmatch(name):
        reason = f"{name[:60]!r} must be letters, digits and '_', beginning with a letter or '_'"
        raise InvalidJob(path, reason)
    return name

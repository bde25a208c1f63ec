"""Claims created from `volumeClaimTemplates`: one of each for every pod, named `<claim>-<pod>`, as StatefulSets do.

A claim outlives its pod and serves the next one of that name. It has no owner reference: whether it is deleted depends
on `persistentVolumeClaimRetentionPolicy` and on its annotation, see `claim_retention`. A claim belongs to a NodeSet by
a label with the NodeSet's name, so a NodeSet that is recreated under that name finds it again; any other claim of such
a name belongs to somebody else and is never used, changed or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS
from slinky_operator.nodeset.model.pods import pod_names

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Retention(StrEnum):
    """What happens to a claim whose pod was removed by a scale-in, the strictest last."""

    DELETE = "Delete"
    WITH_NODESET = "DeleteWithNodeSet"
    RETAIN = "Retain"


_STRICTNESS: Final = tuple(Retention)


def stricter(one: Retention, other: Retention) -> Retention:
    """The one of two that keeps a claim longer."""
    return max(one, other, key=_STRICTNESS.index)


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A claim of a NodeSet, as the cache shows it."""

    name: str
    uid: str
    pod: str
    """Name of the pod that uses it."""
    deleting: bool = False
    retention: Retention | None = None
    """Its annotation; None while its pod exists or is to be recreated."""


def read(obj: Mapping[str, Any]) -> VolumeClaim:
    """Read a claim of the NodeSet."""
    metadata = obj["metadata"]
    pod = (metadata.get("labels") or {}).get(labels.LABEL_POD_NAME) or ""
    return VolumeClaim(metadata["name"], metadata["uid"], pod, "deletionTimestamp" in metadata, _retention(metadata))


def _retention(metadata: Mapping[str, Any]) -> Retention | None:
    given = (metadata.get("annotations") or {}).get(labels.ANNOTATION_CLAIM_RETENTION)
    if given is None:
        return None
    return Retention(given) if given in _STRICTNESS else Retention.RETAIN


def is_ours(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a claim belongs to this NodeSet, or belonged to an earlier one of its name."""
    own = obj["metadata"].get("labels") or {}
    return bool(own.get(labels.LABEL_NODESET_NAME) == nodeset.name)


def template_name(template: Mapping[str, Any]) -> str:
    """Name of a claim template; empty if it has none, or is of another shape, which `pod_spec.validation` refuses."""
    metadata = template.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def name(template: str, pod: str) -> str:
    """Name of the claim of a pod from a template."""
    return f"{template}-{pod}"


def names(nodeset: NodeSet, pod: str) -> list[str]:
    """Names of all claims of a pod."""
    return [name(template_name(template), pod) for template in nodeset.spec.volume_claim_templates]


def build(nodeset: NodeSet, pod: str) -> Iterator[dict[str, Any]]:
    """Build the claims of a pod."""
    selector = nodeset.spec.selector
    for template in nodeset.spec.volume_claim_templates:
        metadata = template.get("metadata") or {}
        yield {
            "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
            "kind": PERSISTENTVOLUMECLAIMS.kind,
            "metadata": {
                "name": name(template_name(template), pod),
                "namespace": nodeset.namespace,
                "labels": {
                    **(selector.match_labels if selector is not None else {}),
                    **(metadata.get("labels") or {}),
                    labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
                    **own_labels(nodeset, pod),
                },
                "annotations": {
                    key: value
                    for key, value in (metadata.get("annotations") or {}).items()
                    if key != labels.ANNOTATION_CLAIM_RETENTION
                },
            },
            "spec": dict(template.get("spec") or {}),
        }


def own_labels(nodeset: NodeSet, pod: str) -> dict[str, str]:
    """Labels that identify a claim."""
    return {
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_POD_NAME: pod,
    }


def volumes(nodeset: NodeSet, pod: str) -> list[dict[str, Any]]:
    """Volumes of a pod, named like the templates; they replace any others of these names."""
    found = [template_name(template) for template in nodeset.spec.volume_claim_templates]
    return [{"name": one, "persistentVolumeClaim": {"claimName": name(one, pod)}} for one in found]


def check(nodeset: NodeSet, reserved: Collection[str]) -> Iterator[tuple[str, str]]:
    """Why claims cannot be created: fields, with reasons. `reserved_names` are the operator's volumes."""
    seen: set[str] = set()
    for place, template in enumerate(nodeset.spec.volume_claim_templates):
        field = f"spec.volumeClaimTemplates[{place}].metadata.name"
        one = template_name(template)
        if not one:
            yield field, "is missing"
        elif one in seen:
            yield field, f"{one} is there twice"
        elif one in reserved:
            yield field, f"{one} is the operator's volume"
        elif _DNS_LABEL.fullmatch(one) is None:
            yield field, "must be a DNS label: the volume of the pod has that name too"
        seen.add(one)


def next_ordinals(nodeset: NodeSet, claims: Iterable[VolumeClaim], held: Collection[int], count: int) -> list[int]:
    """The ordinals of the next pods: first those with a claim waiting, then the lowest free ones.

    A pod that was lost or updated returns to its claim before one that was removed by a scale-in.

    Parameters
    ----------
    claims
        The NodeSet's claims.
    held
        Ordinals of existing pods.
    count
        How many pods to create.
    """
    if count <= 0:
        return []
    waiting: dict[int, bool] = {}
    for claim in claims:
        number = pod_names.ordinal(nodeset.name, claim.pod)
        if not claim.deleting and number is not None and number not in held:
            waiting[number] = waiting.get(number, True) and claim.retention is not None
    returning = sorted(waiting, key=lambda number: (waiting[number], number))[:count]
    return [*returning, *pod_names.lowest_free({*held, *returning}, count - len(returning))]


def why_blocked(claims: Sequence[VolumeClaim], pod: str) -> str | None:
    """Why a pod cannot be created because of its claims, or None if it can."""
    going = [claim.name for claim in claims if claim.pod == pod and claim.deleting]
    return f"claim {going[0]} of an earlier pod is still being deleted" if going else None

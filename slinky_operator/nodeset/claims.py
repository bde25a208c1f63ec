"""Claims made from `volumeClaimTemplates`: one of each for every pod, named `<claim>-<pod>`, as StatefulSets name them.

A claim outlives its pod and serves the next one of that name. It has no owner: whether it goes is up to
`persistentVolumeClaimRetentionPolicy`, and the operator deletes it, by uid, once no pod uses it. A claim belongs to
a NodeSet by a label with the NodeSet's name, which a NodeSet that is created anew under that name finds again; any
other claim in its place is somebody else's and is never used, changed or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS
from slinky_operator.nodeset import ordinals

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a NodeSet, as the cache shows it."""

    name: str
    uid: str
    pod: str
    """Name of the pod it is for."""
    deleting: bool = False


def read(obj: Mapping[str, Any]) -> Claim:
    """Read a claim of ours."""
    metadata = obj["metadata"]
    pod = (metadata.get("labels") or {}).get(labels.LABEL_POD_NAME) or ""
    return Claim(metadata["name"], metadata["uid"], pod, "deletionTimestamp" in metadata)


def is_ours(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a claim is this NodeSet's, or was that of an earlier one of its name."""
    own = obj["metadata"].get("labels") or {}
    return bool(own.get(labels.LABEL_NODESET_NAME) == nodeset.name)


def template_name(template: Mapping[str, Any]) -> str:
    """Name of a claim template; empty if it has none."""
    return str((template.get("metadata") or {}).get("name") or "")


def name(template: str, pod: str) -> str:
    """Name of the claim that a pod has from a template."""
    return f"{template}-{pod}"


def names(nodeset: NodeSet, pod: str) -> list[str]:
    """Names of all claims of a pod."""
    return [name(template_name(template), pod) for template in nodeset.spec.volume_claim_templates]


def build(nodeset: NodeSet, pod: str) -> Iterator[dict[str, Any]]:
    """Make the claims of a pod."""
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
                "annotations": dict(metadata.get("annotations") or {}),
            },
            "spec": dict(template.get("spec") or {}),
        }


def own_labels(nodeset: NodeSet, pod: str) -> dict[str, str]:
    """Labels by which a claim is found again."""
    return {
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_POD_NAME: pod,
    }


def volumes(nodeset: NodeSet, pod: str) -> list[dict[str, Any]]:
    """Volumes of a pod, named like the templates; they stand in for any others of these names."""
    found = [template_name(template) for template in nodeset.spec.volume_claim_templates]
    return [{"name": one, "persistentVolumeClaim": {"claimName": name(one, pod)}} for one in found]


def check(nodeset: NodeSet, reserved: Collection[str]) -> Iterator[tuple[str, str]]:
    """What keeps claims from being made: fields, with reasons. `reserved` are volumes that are the operator's."""
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


def next_ordinals(nodeset: NodeSet, claims: Iterable[Claim], held: Collection[int], count: int) -> list[int]:
    """The ordinals of the next pods: first those whose claims wait for one, then the lowest free."""
    if count <= 0:
        return []
    waiting = {ordinals.ordinal(nodeset.name, claim.pod) for claim in claims if not claim.deleting}
    returning = sorted(one for one in waiting if one is not None and one not in held)[:count]
    return [*returning, *ordinals.lowest_free({*held, *returning}, count - len(returning))]


def left_over(
    nodeset: NodeSet, claims: Iterable[Claim], standing: Collection[str], wanted: Collection[str]
) -> tuple[Claim, ...]:
    """Claims of pods that went with a scale-in.

    One whose pod would be called otherwise now, with more digits or fewer, has not: its ordinal is still there.

    Parameters
    ----------
    nodeset
        The NodeSet.
    claims
        The NodeSet's claims.
    standing
        Names of all its pods, those on their way out too.
    wanted
        Names of pods that are to be created, now or later.
    """
    kept = {*standing, *wanted}
    numbers = {ordinals.ordinal(nodeset.name, pod) for pod in kept} - {None}
    return tuple(
        one
        for one in claims
        # One that names no pod was not made here: nobody can say whose it is.
        if one.pod
        and not one.deleting
        and one.pod not in kept
        and ordinals.ordinal(nodeset.name, one.pod) not in numbers
    )


def why_blocked(claims: Sequence[Claim], pod: str) -> str | None:
    """Why a pod cannot be created for its claims' sake, or None if it can."""
    going = [one.name for one in claims if one.pod == pod and one.deleting]
    return f"claim {going[0]} of an earlier pod is still being deleted" if going else None

"""Merges a user's template over that of a daemon: the user's settings win, except for the daemon's identity.

slurmctld is found by its host name, and each daemon by its labels; the operator's files, probes and arguments are for
the daemon's container. A template that changes these is rejected by field, and the daemon stays unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_operator.slurm.pod_templates.shapes import misfits
from slinky_operator.slurm.pod_templates.templates import POD_TEMPLATE, RefusedFragment, merge
from slinky_operator.slurm.pods import pod_ownership

_REFUSED_SPEC: Final = ("hostname", "subdomain", "nodeName", "hostNetwork")
_REFUSED_CONTAINER: Final = ("command", "args")


def fitted(generated: Mapping[str, Any], fragment: Mapping[str, Any], container: str) -> dict[str, Any]:
    """Merge a fragment over the generated template of a daemon.

    Parameters
    ----------
    generated, fragment
        Pod templates, the second as the user wrote it.
    container
        Name of the daemon's container.

    Raises
    ------
    RefusedFragment
        It cannot be merged, or would change the daemon's identity.
    """
    for field, reason in misfits(fragment, POD_TEMPLATE):
        raise RefusedFragment(field, reason)
    spec = fragment.get("spec") or {}
    for field in _REFUSED_SPEC:
        if spec.get(field):
            raise RefusedFragment(f"spec.{field}", "is the operator's: the daemon is found by its name")
    if spec.get("restartPolicy") not in {None, "Always"}:
        raise RefusedFragment("spec.restartPolicy", "must be Always")
    merged = merge(generated, fragment)
    _check_labels(generated["metadata"]["labels"], merged.get("metadata", {}).get("labels") or {})
    before = {item["name"]: item for item in generated["spec"]["containers"]}
    after = {item["name"]: item for item in merged.get("spec", {}).get("containers") or ()}
    for name in before:
        if name not in after:
            raise RefusedFragment("spec.containers", f"lacks {name}, which is the operator's")
    for field in _REFUSED_CONTAINER:
        if after[container].get(field) != before[container].get(field):
            raise RefusedFragment(
                f"spec.containers[{container}].{field}", "is the operator's: it is what the pod is for"
            )
    return merged


def _check_labels(generated: Mapping[str, str], labels: Mapping[str, str]) -> None:
    for label, value in generated.items():
        if labels.get(label) != value:
            raise RefusedFragment(f"metadata.labels[{label}]", "is the operator's: the daemon is found by it")
    for label in labels:
        if label.startswith(pod_ownership.OWN_PREFIXES) and label not in generated:
            raise RefusedFragment(f"metadata.labels[{label}]", "is the operator's: it says whose a pod is")

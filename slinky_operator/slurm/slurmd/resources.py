"""What slurmd's container may use: the resources of the spec, with those of the template merged over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.pod_templates.templates import merge
from slinky_operator.slurm.slurmd.launch import SLURMD


def own_container(nodeset: NodeSet) -> Mapping[str, Any]:
    """Slurmd's container in the user's template, before it is merged; empty if there is none."""
    pod_spec = (nodeset.spec.template or {}).get("spec") or {}
    return next((item for item in pod_spec.get("containers") or () if item.get("name") == SLURMD), {})


def of(nodeset: NodeSet, containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The resources of slurmd's container.

    Parameters
    ----------
    containers
        Those of the template, before it is merged.

    Raises
    ------
    RefusedFragment
        The template's resources cannot be merged.
    """
    given = nodeset.spec.resources.to_dict() if nodeset.spec.resources is not None else {}
    own = next((item for item in containers if item.get("name") == SLURMD), {})
    return merge(given, own.get("resources") or {})

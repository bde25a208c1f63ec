"""An image with its options and its resources as fields of a SlurmJob."""

from __future__ import annotations

from typing import Any

from slinky_api.sylabs.wlm import WlmJobSpec
from slinky_operator.jobs.faces import apptainer, bundle
from slinky_operator.jobs.faces.image_folder import script
from slinky_operator.jobs.faces.site import Runtime, Site
from slinky_operator.jobs.refusal import InvalidJob


def fields_of(spec: WlmJobSpec, site: Site) -> dict[str, Any]:
    """Return the fields that stand for image, options and resources.

    Raises
    ------
    InvalidJob
        For an image or an option that cannot run here, and for more nodes than can see the image.
    """
    resources = spec.resources
    by_apptainer = site.runtime is Runtime.APPTAINER
    has_folder = not by_apptainer or apptainer.needs_folder(spec.image, spec.options)
    if has_folder and resources.nodes > 1 and not site.is_folder_shared:
        reason = "only the first node of a job gets the image, since nodes share no folder here: write 1"
        raise InvalidJob("spec.resources.nodes", reason)
    lines = (apptainer if by_apptainer else bundle).lines(spec.image, spec.options, resources.cpu_per_node)
    fields: dict[str, Any] = {"script": script(lines, folder=site.folder if has_folder else None)}
    if resources.nodes:
        fields |= {"nodes": str(resources.nodes), "tasks": resources.nodes}
    if resources.cpu_per_node:
        fields["cpus_per_task"] = resources.cpu_per_node
    if resources.mem_per_node:
        fields["memory"] = f"{resources.mem_per_node}M"
    if resources.wall_time:
        fields["time"] = str(-(-resources.wall_time // 60))
    return fields

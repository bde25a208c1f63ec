"""An image with its options and its resources as fields of a SlurmJob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from slinky_api.sylabs.wlm import ContainerOptions, WlmJobSpec
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation import apptainer, bundle, pyxis
from slinky_operator.sylabs.translation.image_folder import script
from slinky_operator.sylabs.translation.site import Runtime, Site

_LINES: Final[Mapping[Runtime, Callable[[str, ContainerOptions, int], Iterator[str]]]] = {
    Runtime.APPTAINER: apptainer.lines,
    Runtime.SLURM: bundle.lines,
    Runtime.PYXIS: pyxis.lines,
}


def fields_of(spec: WlmJobSpec, site: Site) -> dict[str, Any]:
    """Return the fields that stand for image, options and resources.

    Raises
    ------
    InvalidJob
        For an image or an option that cannot run here, and for more nodes than can see the image.
    """
    resources = spec.resources
    has_folder = _needs_folder(spec, site.runtime)
    if has_folder and resources.nodes > 1 and not site.is_folder_shared:
        reason = "only the first node of a job gets the image, since nodes share no folder here: write 1"
        raise InvalidJob("spec.resources.nodes", reason)
    lines = _LINES[site.runtime](spec.image, spec.options, resources.cpu_per_node)
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


def _needs_folder(spec: WlmJobSpec, runtime: Runtime) -> bool:
    """Whether the job fetches its image by itself; pyxis does that on each node."""
    if runtime is Runtime.APPTAINER:
        return apptainer.needs_folder(spec.image, spec.options)
    return runtime is Runtime.SLURM

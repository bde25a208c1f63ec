"""The ways in which images run on nodes, and what the script of each does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from slinky_api.sylabs.wlm import ContainerOptions
from slinky_operator.jobs.images import apptainer, bundle, pyxis
from slinky_operator.jobs.images.program import THE_IMAGES_OWN, Program


class Runtime(StrEnum):
    """How an image runs."""

    APPTAINER = "Apptainer"
    SLURM = "Slurm"
    """By ``srun --container``, with a bundle that skopeo and umoci make; the nodes need oci.conf."""
    PYXIS = "Pyxis"
    """By ``srun --container-image``, where the nodes have pyxis and enroot."""


_LINES: Final[Mapping[Runtime, Callable[[str, ContainerOptions, int, Program], Iterator[str]]]] = {
    Runtime.APPTAINER: apptainer.lines,
    Runtime.SLURM: bundle.lines,
    Runtime.PYXIS: pyxis.lines,
}


def lines_of(
    runtime: Runtime, image: str, options: ContainerOptions, cpus: int, program: Program = THE_IMAGES_OWN
) -> Iterator[str]:
    """Give the lines of the script that runs an image.

    Parameters
    ----------
    runtime
        How images run.
    image
        The image.
    options
        How this one runs.
    cpus
        CPUs on each node, 0 for Slurm's default.
    program
        What runs in it.

    Raises
    ------
    InvalidJob
        For an image or an option that cannot run in this way.
    """
    return _LINES[runtime](image, options, cpus, program)


def needs_folder(runtime: Runtime, image: str, options: ContainerOptions) -> bool:
    """Whether the job fetches its image by itself; pyxis does that on each node."""
    if runtime is Runtime.APPTAINER:
        return apptainer.needs_folder(image, options)
    return runtime is Runtime.SLURM

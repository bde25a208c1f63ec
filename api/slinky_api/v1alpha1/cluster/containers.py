"""Containers in Slurm: `srun --container` in a Cluster."""

from typing import Annotated, Final

from pydantic import Field

from slinky_api.v1alpha1.common import SET, ApiModel
from slinky_api.v1alpha1.rules import Text, matching

_FOLDER: Final = matching(
    r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+",
    "must be an absolute path of letters, digits, '.', '_' and '-', no part of which begins with '.'",
)


class Containers(ApiModel):
    """OCI containers in Slurm, which crun starts as the user of the job, without root's rights."""

    mounts: Annotated[
        tuple[Annotated[str, Text(_FOLDER, at_least=2, at_most=128, by_pattern=True)], ...], Field(max_length=8), SET
    ] = ()
    """Folders of the nodes that every container sees at the same path, for example /home. A node that does not have one
    leaves it out. Default: none; a container sees what its bundle mounts."""

"""The script that runs an image with ``srun --container``.

skopeo fetches the image, umoci makes a bundle of it, Slurm starts the bundle with the runtime of oci.conf. srun always
replaces the command of a bundle, so the image's own is read from it (jq). Without oci.conf Slurm ignores a container
and would run that command on the node itself: the script ends before.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from slinky_api.sylabs.wlm import ContainerOptions
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.image_folder import FOLDER, on_each_node

_TRANSPORT: Final = "docker://"
_BUNDLE: Final = f"{FOLDER}/bundle"
_LAYOUT: Final = f"{FOLDER}/image:job"
_COMMAND: Final = '.process.args | select(type == "array" and length > 0) | @sh'
_TAKEN: Final = frozenset({"allow_unsigned"})
"""Options that hold in any case: which signatures are asked for is in the policy.json of the nodes."""


def lines(image: str, options: ContainerOptions, cpus: int) -> Iterator[str]:
    """Give the lines of the script.

    Parameters
    ----------
    image
        The image.
    options
        How it runs.
    cpus
        CPUs on each node, 0 for Slurm's default.

    Raises
    ------
    InvalidJob
        For an image or an option that needs Apptainer.
    """
    for name, field in ContainerOptions.model_fields.items():
        if name not in _TAKEN and getattr(options, name) != field.default:
            reason = "needs Apptainer; images run by srun --container here. Remove it, or ask the administrator"
            raise InvalidJob(f"spec.options.{field.alias or name}", reason)
    if not image.startswith(_TRANSPORT) or image == _TRANSPORT:
        raise InvalidJob("spec.image", f"must begin with {_TRANSPORT}: images run by srun --container here")
    yield "configuration=${SLURM_CONF:-/etc/slurm/slurm.conf}"
    yield (
        '[ -e "${configuration%/*}/oci.conf" ]'
        " || { echo 'This node has no oci.conf: Slurm would ignore the container.' >&2; exit 1; }"
    )
    yield f"skopeo --tmpdir {FOLDER} copy --quiet {shlex.quote(image)} oci:{_LAYOUT}"
    yield f"umoci unpack --rootless --image {_LAYOUT} {_BUNDLE}"
    yield (
        f"arguments=$(jq -er {shlex.quote(_COMMAND)} {_BUNDLE}/config.json)"
        " || { echo 'The image has no command that could be run.' >&2; exit 1; }"
    )
    yield 'eval "set -- $arguments"'
    yield on_each_node(f"--container={_BUNDLE}", '"$@"', cpus=cpus)

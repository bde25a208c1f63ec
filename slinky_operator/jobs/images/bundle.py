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
from slinky_operator.jobs.images.image_folder import FOLDER, on_each_node
from slinky_operator.jobs.images.program import THE_IMAGES_OWN, Program
from slinky_operator.jobs.refusal import InvalidJob

_TRANSPORT: Final = "docker://"
_BUNDLE: Final = f"{FOLDER}/bundle"
_LAYOUT: Final = f"{FOLDER}/image:job"
_COMMAND: Final = '.process.args | select(type == "array" and length > 0) | @sh'
_ENTRY_POINT: Final = ".config.Entrypoint // [] | @sh"
_CHANGED: Final = f"{FOLDER}/config.json"
_TAKEN: Final = frozenset({"allow_unsigned"})
"""Options that hold in any case: which signatures are asked for is in the policy.json of the nodes."""


def lines(image: str, options: ContainerOptions, cpus: int, program: Program = THE_IMAGES_OWN) -> Iterator[str]:
    """Give the lines of the script.

    Parameters
    ----------
    image
        The image.
    options
        How it runs.
    cpus
        CPUs on each node, 0 for Slurm's default.
    program
        What runs in the image.

    Raises
    ------
    InvalidJob
        For an image, an option or a program that needs Apptainer.
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
    for bind in program.binds:
        options_of_mount = '["rbind","ro"]' if bind.is_read_only else '["rbind","rw"]'
        change = f'.mounts += [{{destination: $to, source: $from, type: "bind", options: {options_of_mount}}}]'
        to = shlex.quote(bind.target)
        yield f"jq --arg from {bind.source} --arg to {to} {shlex.quote(change)} {_BUNDLE}/config.json >{_CHANGED}"
        yield f"mv {_CHANGED} {_BUNDLE}/config.json"
    yield from _arguments(program)
    yield on_each_node(f"--container={_BUNDLE}", '"$@"', *program.words, cpus=cpus)


def _arguments(program: Program) -> Iterator[str]:
    """Have in the shell's arguments what stands before the words of the program: the image's own."""
    if program.command:
        yield "set --"
        return
    if program.arguments:
        read = f"arguments=$(skopeo inspect --config oci:{_LAYOUT} | jq -r {shlex.quote(_ENTRY_POINT)})"
    else:
        read = f"arguments=$(jq -er {shlex.quote(_COMMAND)} {_BUNDLE}/config.json)"
    yield f"{read} || {{ echo 'The image has no command that could be run.' >&2; exit 1; }}"
    yield 'eval "set -- $arguments"'

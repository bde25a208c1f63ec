"""The script that runs an image with Apptainer.

The image is pulled once, by the script itself. A signature is in the image file, so images that Apptainer converts from
those of other registries have none to verify.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from slinky_api.sylabs.wlm import ContainerOptions
from slinky_operator.jobs.images.image_folder import FOLDER, on_each_node
from slinky_operator.jobs.images.program import THE_IMAGES_OWN, Program
from slinky_operator.jobs.refusal import InvalidJob

TRANSPORTS: Final = ("docker", "https", "library", "oras")
"""Where images come from."""

LOCAL_FILE: Final = "local.file"
"""What the path of an image file on the nodes begins with."""

_UNSIGNED: Final = "docker"

_FLAGS: Final = {
    "clean_env": "--cleanenv",
    "fake_root": "--fakeroot",
    "ipc": "--ipc",
    "pid": "--pid",
    "no_privs": "--no-privs",
    "writable": "--writable",
}


def needs_folder(image: str, options: ContainerOptions) -> bool:
    """Whether the image is copied: from elsewhere, or to be written to."""
    return options.writable or not image.startswith(LOCAL_FILE)


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
        For an image that Apptainer does not find in the way in which it is written.
    """
    if image.startswith(LOCAL_FILE):
        file = shlex.quote(path_of(image))
        is_signed = True
    else:
        transport, separator, _ = image.partition("://")
        if not separator or transport not in TRANSPORTS:
            known = ", ".join(f"{each}://" for each in TRANSPORTS)
            raise InvalidJob("spec.image", f"must begin with one of {known}, or with {LOCAL_FILE} and a path")
        file = f"{FOLDER}/image.sif"
        is_signed = transport != _UNSIGNED
        yield f"APPTAINER_TMPDIR={FOLDER} apptainer pull {file} {shlex.quote(image)}"
    if is_signed and not options.allow_unsigned:
        yield f"apptainer verify {file}"
    if options.writable:
        # An image file cannot be written to; a tree can.
        yield f"APPTAINER_TMPDIR={FOLDER} apptainer build --sandbox {FOLDER}/tree {file}"
        file = f"{FOLDER}/tree"
    verb = "exec" if program.command else "run"
    yield on_each_node("apptainer", verb, *_options(options), *_of_node(program), file, *program.words, cpus=cpus)


def _options(options: ContainerOptions) -> Iterator[str]:
    for name, flag in _FLAGS.items():
        if getattr(options, name):
            yield flag
    if options.app is not None:
        yield shlex.quote(f"--app={options.app}")
    if options.host_name is not None:
        yield shlex.quote(f"--hostname={options.host_name}")
    for bind in options.binds:
        yield shlex.quote(f"--bind={bind}")


def _of_node(program: Program) -> Iterator[str]:
    if program.folder:
        yield shlex.quote(f"--pwd={program.folder}")
    for bind in program.binds:
        yield f"--bind={bind.source}:{shlex.quote(bind.target)}{':ro' if bind.is_read_only else ''}"


def path_of(image: str) -> str:
    """Return the path of an image file on the nodes.

    Raises
    ------
    InvalidJob
        There is none.
    """
    path = image.removeprefix(LOCAL_FILE)
    if not path:
        raise InvalidJob("spec.image", f"must have a path after {LOCAL_FILE}")
    # Neither an option nor an address.
    return path if path.startswith("/") else f"./{path}"

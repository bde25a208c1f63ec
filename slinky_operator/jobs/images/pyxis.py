"""The script that runs an image with pyxis, a plugin of srun that has enroot fetch, unpack and start it on each node.

pyxis runs the words after srun's options, never the image's own command. Into each image enroot writes a script,
``/etc/rc``, which runs the image's entry point and command if it is given no words (enroot, ``docker.sh``). Without the
plugin srun refuses the options, and nothing runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from slinky_api.sylabs.wlm import ContainerOptions
from slinky_operator.jobs.images import apptainer
from slinky_operator.jobs.images.image_folder import on_each_node
from slinky_operator.jobs.images.program import THE_IMAGES_OWN, Bind, Program
from slinky_operator.jobs.refusal import InvalidJob

_TRANSPORT: Final = "docker://"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*", re.ASCII)
"""What enroot reads as registry, image and tag; it reads ``@`` and ``#`` as ends of other parts."""

_COMMAND: Final = "sh /etc/rc"
_MEANT: Final = frozenset({"allow_unsigned", "binds", "fake_root", "writable"})
_MOST_PARTS: Final = 3
"""Of a mount: source, destination and flags."""


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
        For an image that enroot does not find as it is written, and an option that pyxis does not have.
    """
    for name, field in ContainerOptions.model_fields.items():
        if name not in _MEANT and getattr(options, name) != field.default:
            reason = "needs Apptainer; images run by pyxis here. Remove it, or ask the administrator"
            raise InvalidJob(f"spec.options.{field.alias or name}", reason)
    words = [f"--container-image={_image(image, options)}"]
    words.append("--container-writable" if options.writable else "--container-readonly")
    words.append("--container-remap-root" if options.fake_root else "--no-container-remap-root")
    if program.folder:
        words.append(f"--container-workdir={program.folder}")
    mounts = [*(shlex.quote(_mount(bind)) for bind in options.binds), *map(_bound, program.binds)]
    mounted = (f"--container-mounts={','.join(mounts)}",) if mounts else ()
    words_within = program.words if program.command else (_COMMAND, *program.words)
    yield on_each_node(*map(shlex.quote, words), *mounted, *words_within, cpus=cpus)


def _image(image: str, options: ContainerOptions) -> str:
    if image.startswith(apptainer.LOCAL_FILE):
        if not options.allow_unsigned:
            reason = "must be true for an image file: pyxis, by which images run here, verifies no signatures"
            raise InvalidJob("spec.options.allowUnsigned", reason)
        return apptainer.path_of(image)
    name = image.removeprefix(_TRANSPORT)
    if not image.startswith(_TRANSPORT) or not _NAME.fullmatch(name):
        reason = (
            f"must begin with {_TRANSPORT} and have registry, name and tag, or with {apptainer.LOCAL_FILE} and a path: "
            "images run by pyxis here"
        )
        raise InvalidJob("spec.image", reason)
    host, slash, rest = name.partition("/")
    is_registry = slash and ("." in host or ":" in host or host == "localhost")
    return f"{_TRANSPORT}{host}#{rest}" if is_registry else image


def _bound(bind: Bind) -> str:
    return f"{bind.source}:{shlex.quote(bind.target)}{':ro' if bind.is_read_only else ''}"


def _mount(bind: str) -> str:
    """Write a mount as pyxis reads it: commas separate mounts, and a plus flags."""
    source, *more = bind.split(":")
    if "," in bind or not source or len(more) >= _MOST_PARTS:
        raise InvalidJob("spec.options.binds", f"{bind[:100]!r} must be source:destination or source:destination:ro")
    return ":".join((source, *(more or (source,))))

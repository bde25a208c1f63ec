"""What runs in an image, and what it sees of the node that it runs on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the node that the image sees.

    Parameters
    ----------
    source
        Its path on the node, as a word of the script.
    target
        Its path in the image: absolute, without commas and colons.
    is_read_only
        Whether the image must not write to it.
    """

    source: str
    target: str
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """What runs in an image.

    Parameters
    ----------
    command
        In place of the image's entry point and command; none for those.
    arguments
        Behind `command` or, without one, behind the entry point, in place of the image's command.
    folder
        Where it starts in the image; empty for what the image says.
    binds
        What it sees of the node.
    """

    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    folder: str = ""
    binds: tuple[Bind, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Command and arguments, quoted."""
        return tuple(map(shlex.quote, (*self.command, *self.arguments)))


THE_IMAGES_OWN: Final = Program()
"""The image's own entry point and command."""

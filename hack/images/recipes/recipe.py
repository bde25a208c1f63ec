"""What the recipes of all image sets have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from hack.images.names import ImageSet
from hack.images.tools.buildah import Buildah


@dataclass(frozen=True)
class Built:
    """What a build gave.

    Attributes
    ----------
    images
        Full names, with tags, of the images in the archive.
    slurm
        Slurm's version as the images tell it, None where there is no Slurm.
    notices
        Sentences somebody should read.
    """

    images: list[str]
    slurm: str | None = None
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Recipe(ABC):
    """How one image set is made.

    Attributes
    ----------
    repository
        Root of the source tree.
    one
        The set.
    """

    repository: Path
    one: ImageSet

    @abstractmethod
    def inputs(self) -> str:
        """Fingerprint of all files and settings that go in."""

    @abstractmethod
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Write ``<set>.tar``, and what else belongs to the set, into the folder `target`."""

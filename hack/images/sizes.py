"""How large each image may be when it is unpacked, and a table of what they are.

A bound is a tenth above what was measured, so that what makes an image grow is seen in the change that does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.images.tools import contents

LARGEST: Final[Mapping[str, int]] = {
    "busybox": 5,
    "login": 152,
    "mariadb": 162,
    "slapd": 150,
    "slurm-operator": 120,
    "slurmctld": 136,
    "slurmd": 150,
    "slurmd-entrypoint": 150,
    "slurmd-oci": 196,
    "slurmdbd": 136,
    "slurmrestd": 134,
    "sssd": 143,
}
"""Megabytes (10**6 bytes) of all files, by the image's name without registry and tag."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one image weighs.

    Attributes
    ----------
    image
        The image.
    unpacked
        Bytes of all its files.
    """

    image: contents.Image
    unpacked: int

    @property
    def name(self) -> str:
        """The image's name without registry and tag."""
        return self.image.names[0].rpartition("/")[2].partition(":")[0]

    @property
    def largest(self) -> int:
        """How many bytes it may have."""
        return LARGEST[self.name] * 10**6


def measure(archive: Path) -> list[Size]:
    """Measure all images of an archive."""
    with contents.opened(archive) as opened:
        return [Size(image, sum(opened.files(image).values())) for image in opened.images()]


def table(sizes: Sequence[Size]) -> str:
    """Lay out sizes for people."""
    rows = [f"{'image':44} {'unpacked':>9} {'bound':>8} {'packed':>8}  {'user':18}"]
    rows += [
        f"{one.image.names[0]:44} {one.unpacked / 1e6:6.1f} MB {one.largest / 1e6:5.0f} MB "
        f"{one.image.packed / 1e6:5.1f} MB  {one.image.user or 'root':18}"
        for one in sizes
    ]
    return "\n".join(row.rstrip() for row in rows)

"""Which Slurm an image has, as far as its tag shows: `place:series.patch`, such as `slinky/slurmd:26.05.5`. Pure.

Who may have which image is left to those who ask.
"""

from __future__ import annotations

import re
from typing import Final

TAGGED: Final = re.compile(
    r"(?P<place>.+):(?P<series>[0-9]+\.[0-9]+)(?:\.(?P<patch>[0-9]+))?(?:[-_+][^:/]*)?", re.ASCII
)
"""An image whose tag is a version."""

_RELEASE: Final = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:[-_+].*)?", re.ASCII)


def is_newer_patch(new: str, old: str) -> bool:
    """Whether an image is of a later patch release of the same series in the same repository."""
    one, other = TAGGED.fullmatch(new), TAGGED.fullmatch(old)
    if one is None or other is None or not one["patch"] or not other["patch"]:
        return False
    same = one.group("place", "series") == other.group("place", "series")
    return same and int(one["patch"]) > int(other["patch"])


def is_older(new: str, old: str) -> bool:
    """Whether an image is of an older Slurm than another, as far as their tags show."""
    one, other = TAGGED.fullmatch(new), TAGGED.fullmatch(old)
    if one is None or other is None:
        return False
    series, other_series = _numbers(one["series"]), _numbers(other["series"])
    if series != other_series or not one["patch"] or not other["patch"]:
        return series < other_series
    return int(one["patch"]) < int(other["patch"])


def is_within(image: str, release: str) -> bool:
    """Whether an image is known to be of a release or of an older one.

    Parameters
    ----------
    release
        As Slurm's daemons name theirs: `26.05.5`.
    """
    one, other = TAGGED.fullmatch(image), _RELEASE.fullmatch(release)
    if one is None or other is None or not one["patch"]:
        return False
    return (*_numbers(one["series"]), int(one["patch"])) <= tuple(map(int, other.groups()))


def _numbers(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))

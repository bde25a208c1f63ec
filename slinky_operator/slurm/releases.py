"""Releases of Slurm: which one an image has, and which step from one to another its daemons take. Pure.

A release is `<year>.<month>.<patch>`. There have been two a year since 24.05, in May and November. A daemon reads the
state and the messages of the three releases before its own (from 24.11 on; release notes of Slurm, "Upgrading"), and
nothing of a newer one: slurmctld ends at once with `Can not recover … state, incompatible version`.

The release of an image is known as far as its tag shows it: `place:series.patch`, such as `slinky/slurmd:26.05.5`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from typing_extensions import override

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


WIDEST: Final = 3
"""Most releases that one step may be wide."""

_WRITTEN: Final = re.compile(r"(?:^|[^0-9.])([0-9]{2})\.([0-9]{2})(?:\.([0-9]{1,4}))?(?![0-9])", re.ASCII)
_AUTUMN: Final = 11


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Slurm.

    Parameters
    ----------
    year, month
        The series: `26.05`.
    patch
        `None` if it is not known.
    """

    year: int
    month: int
    patch: int | None = None

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Find the release in a text such as `slurm-wlm 26.05.5`; `None` if there is none."""
        found = _WRITTEN.search(text[:200])
        if found is None or not 1 <= int(found[2]) <= 12:  # noqa: PLR2004 - months
            return None
        return cls(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)

    @classmethod
    def of_image(cls, image: str) -> Self | None:
        """The release in the tag of an image; `None` if the tag is no version."""
        found = TAGGED.fullmatch(image)
        return None if found is None else cls.read(f"{found['series']}.{found['patch'] or ''}".rstrip("."))

    @property
    def series(self) -> tuple[int, int]:
        """Year and month."""
        return self.year, self.month

    @property
    def number(self) -> int:
        """How many releases came before it, counted from an arbitrary one: two a year."""
        return 2 * self.year + (self.month >= _AUTUMN)

    @override
    def __str__(self) -> str:
        series = f"{self.year:02}.{self.month:02}"
        return series if self.patch is None else f"{series}.{self.patch}"


def problem_of_step(old: Release, new: Release) -> str:
    """Why slurmctld must not go from one release to another; empty if it may.

    A patch release may be lowered: all of a series read the same state.
    """
    if new.series < old.series:
        return (
            f"Slurm {new} cannot read the state that Slurm {old} has written, and jobs would be lost. Name an image of "
            f"Slurm {old.year:02}.{old.month:02} or newer"
        )
    if new.number - old.number > WIDEST:
        return (
            f"Slurm {new} reads the state of the {WIDEST} releases before it, and Slurm {old} is older. Upgrade to a "
            "release in between first"
        )
    return ""

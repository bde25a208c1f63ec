"""The image sets, the Debian suites behind them, and the names images get. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hack.images.errors import ImagesError, UnknownImageSet

REGISTRY = "localhost/slinky"

#: The suite the images that are not Slurm's are based on.
DEFAULT_SUITE = "trixie"

#: Slurm versions (as year.month) and the Debian suite that carries each.
SLURM_SUITES = {"24.11": "trixie", "26.05": "sid"}

#: The series of MariaDB in `DEFAULT_SUITE`; the tag of its image.
MARIADB = "11.8"

#: The series of SSSD in `DEFAULT_SUITE`; the tag of its image.
SSSD = "2.10"

#: Stages of containers/slurm/Dockerfile that become images.
SLURM_IMAGES = ("slurmctld", "slurmd", "slurmrestd", "slurmdbd", "login")

#: slurmd with an OCI runtime: its folder in containers/, and the beginning of the names of its sets.
SLURMD_OCI = "slurmd-oci"

#: Images for tests, made of slurmd's, with the Slurm version they are made of: folders of containers/.
TEST_IMAGES = {"slurmd-entrypoint": "26.05"}


@dataclass(frozen=True)
class ImageSet:
    """Images that are built and shipped together, in one archive.

    Attributes
    ----------
    name
        What callers ask for.
    suite
        The Debian suite of the base image, None where there is no base image.
    slurm
        The Slurm version expected, None where there is no Slurm.
    summary
        One line for the list.
    """

    name: str
    suite: str | None
    slurm: str | None
    summary: str


SETS = {
    one.name: one
    for one in (
        ImageSet("busybox", None, None, f"{REGISTRY}/busybox:1: busybox and pause"),
        *(
            ImageSet(f"slurm-{slurm}", suite, slurm, f"{', '.join(SLURM_IMAGES)} {slurm} from Debian {suite}")
            for slurm, suite in SLURM_SUITES.items()
        ),
        *(
            ImageSet(f"{SLURMD_OCI}-{slurm}", suite, slurm, f"slurmd {slurm} with crun, skopeo and umoci")
            for slurm, suite in SLURM_SUITES.items()
        ),
        ImageSet("mariadb", DEFAULT_SUITE, None, f"{REGISTRY}/mariadb:{MARIADB}, for slurmdbd"),
        ImageSet("identity", DEFAULT_SUITE, None, f"{REGISTRY}/sssd:{SSSD}, and slapd for tests"),
        ImageSet("operator", DEFAULT_SUITE, None, f"{REGISTRY}/slurm-operator:dev"),
    )
}


SYNC = ImageSet("operator-sync", DEFAULT_SUITE, None, "the operator for `skaffold dev --profile=local-sync`")
"""Built when it is asked for by name; no test and no demo needs it."""


def image_set(name: str) -> ImageSet:
    """Find a set by name.

    Raises
    ------
    UnknownImageSet
        There is none.
    """
    if name == SYNC.name:
        return SYNC
    if name not in SETS:
        raise UnknownImageSet(name, list(SETS))
    return SETS[name]


def slurm_set(slurm: str) -> ImageSet:
    """Find the set of a Slurm version such as ``26.05``.

    Raises
    ------
    UnknownImageSet
        There is none.
    """
    if slurm not in SLURM_SUITES:
        raise UnknownImageSet(slurm, list(SLURM_SUITES))
    return SETS[f"slurm-{slurm}"]


def slurmd_oci_set(slurm: str) -> ImageSet:
    """Find the set of slurmd with an OCI runtime.

    Raises
    ------
    UnknownImageSet
        There is none for that Slurm version.
    """
    return SETS[slurm_set(slurm).name.replace("slurm", SLURMD_OCI, 1)]


def parse_version(text: str) -> str:
    """Take the version out of what ``slurmctld -V`` prints (``slurm-wlm 24.11.5``).

    Raises
    ------
    ImagesError
        No version in there.
    """
    match = re.search(r"\b(\d\d\.\d\d\.\d+)(?:[-~.\w]*)\b", text)
    if match is None:
        raise ImagesError(f"no Slurm version in {text.strip()!r}")
    return match[1]


def series(version: str) -> str:
    """Shorten a version to its series: ``24.11`` for ``24.11.5``."""
    return ".".join(version.split(".")[:2])


def slurm_tags(wanted: str, actual: str) -> list[str]:
    """Tags of a Slurm image: the series asked for, the series that came, and the full version.

    They are two unless Debian has moved on to another series.
    """
    return list(dict.fromkeys((wanted, series(actual), actual)))


def moved_notice(wanted: str, actual: str, suite: str) -> str | None:
    """Words for a suite that no longer carries the series it is used for, or None if it does."""
    if series(actual) == wanted:
        return None
    return (
        f"WARNING: Debian {suite} carries Slurm {actual}, not {wanted}: the images tagged {wanted} contain {actual} "
        f"and are tagged {series(actual)} and {actual} too; tests written for {wanted} run against {actual}"
    )

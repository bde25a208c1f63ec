"""Trees with all Slurm daemons of one version, and with MariaDB, for tests that run real daemons in a chroot.

The trees are shared: leave them unchanged. To write, mount an overlay over one, or bind folders of their
own over ``/etc/slurm``, ``/run``, ``/var/spool`` and ``/var/lib/slurm`` in a mount namespace of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hack.images.build import folder
from hack.images.names import image_set, slurm_set, slurmd_oci_set
from hack.machine.progress import say


def ensure(slurm: str, progress: Callable[[str], None] = say) -> Path:
    """Give the tree of a Slurm version, building it if it is not in the cache.

    It holds slurmctld, slurmd, slurmrestd, slurmdbd, sackd and the client commands. The version in it is what
    ``hack.images.build.slurm_version`` says.

    Parameters
    ----------
    slurm
        The series, ``24.11`` or ``26.05``.
    progress
        Takes lines for people.

    Raises
    ------
    ImagesError
        One of its kinds.
    """
    return folder(slurm_set(slurm), progress) / "rootfs"


def ensure_oci(slurm: str, progress: Callable[[str], None] = say) -> Path:
    """Give the tree of a Slurm version that also has crun, skopeo, umoci and jq, building it if it is not in the cache.

    Parameters
    ----------
    slurm
        The series, ``24.11`` or ``26.05``.
    progress
        Takes lines for people.

    Raises
    ------
    ImagesError
        One of its kinds.
    """
    return folder(slurmd_oci_set(slurm), progress) / "rootfs"


def ensure_mariadb(progress: Callable[[str], None] = say) -> Path:
    """Give the tree with mariadbd and its entrypoint, building it if it is not in the cache.

    Parameters
    ----------
    progress
        Takes lines for people.

    Raises
    ------
    ImagesError
        One of its kinds.
    """
    return folder(image_set("mariadb"), progress) / "rootfs"

"""What an administrator says once about a site, for all objects of the old kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.slurm.naming import JOB_OUTPUT_FOLDER

_FOLDER: Final = re.compile(r"/[A-Za-z0-9._/-]{0,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Placement:
    """What a label of a virtual node means to Slurm; neither, if all nodes are meant.

    Parameters
    ----------
    partition
        The partition.
    features
        Features that nodes must have, as for ``--constraint``.
    """

    partition: str = ""
    features: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """One site.

    Parameters
    ----------
    labels
        What ``label=value`` in a node selector means, for labels of the site's own:
        ``wlm.sylabs.io/cuda=10`` could be the feature ``cuda10``.
    runtime
        How images run.
    folder
        A folder on the nodes in which jobs may make folders of their own for images. An absolute path.
    is_folder_shared
        Whether all nodes of a job see the same files there.
    shared_volume
        A claim in each namespace of a tenant that nodes mount too, as SlurmJobs name it; None if there is none.
    logs
        Whether each job gets a pod with its output.
    pods
        Whether a pod on a virtual Node shows each job, in place of that.
    partitions
        Partitions that Slurm has, of those that a node selector may stand for.
    cluster
        Namespace and name of the Cluster whose administrator has said all this, for messages.

    Raises
    ------
    ValueError
        For a folder that is no absolute path of letters, digits, dots, dashes and underscores.
    """

    labels: Mapping[str, Placement] = field(default_factory=dict)
    runtime: Runtime = Runtime.SLURM
    folder: str = "/tmp"  # noqa: S108 - jobs make folders of their own in it, and fail if those exist
    is_folder_shared: bool = False
    shared_volume: Mapping[str, str] | None = None
    logs: bool = False
    pods: bool = False
    partitions: frozenset[str] = frozenset()
    cluster: str = ""

    @property
    def shared_folder(self) -> str:
        """The folder of jobs whose files are copied to where they start: all nodes of a job see it."""
        return JOB_OUTPUT_FOLDER if self.shared_volume is None else self.shared_volume["mountPath"]

    def __post_init__(self) -> None:
        """Check the folder: programs read a colon in it as the end of a path."""
        if not _FOLDER.fullmatch(self.folder):
            raise ValueError(f"the folder for images must be a plain absolute path, not {self.folder[:60]!r}")

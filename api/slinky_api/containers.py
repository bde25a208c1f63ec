"""The containers that settings, charts and commands name: daemons of a Cluster, and what runs beside them.

A new daemon is a line in `CONTAINERS`. From it follow the label and the names of its objects (`slurm.naming`), the flag
and the variable of its default image (`settings`), its name in the values of the chart (`hack.packaging`), and that
`kubectl slurm logs` takes it. How its objects are made is in its part of a Cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["CONTAINERS", "RELEASE", "Container", "components", "with_images"]

RELEASE: Final = "26.05"
"""The release of Slurm in default images."""


@dataclass(frozen=True, slots=True)
class Container:
    """One of them.

    Attributes
    ----------
    name
        Of the container, and of its image in a registry: lower-case letters and digits, since an option and a variable
        of the operator are named after it.
    component
        Value of ``app.kubernetes.io/component`` on the pods and objects of a daemon of a Cluster, which are named after
        it; empty for what is none.
    version
        Tag of its default image if that is no release of Slurm.
    has_image
        Whether it has an image of its own; what has none is in the operator's.
    what
        What texts call its image; its name if empty.
    """

    name: str
    component: str = ""
    version: str = ""
    has_image: bool = True
    what: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z][a-z0-9]*", self.name):
            raise ValueError(f"container {self.name!r}: a name has lower-case letters and digits only")

    @property
    def default_image(self) -> str:
        """Its image if nobody names one."""
        return f"slinky/{self.name}:{self.version or RELEASE}"

    @property
    def title(self) -> str:
        """What texts call its image."""
        return self.what or self.name


CONTAINERS: Final[tuple[Container, ...]] = (
    Container("slurmctld", "controller"),
    Container("slurmd"),
    Container("slurmrestd", "restapi"),
    Container("slurmdbd", "accounting"),
    Container("login", what="login pods"),
    Container("sssd", version="2.10", what="SSSD, for Clusters with users from SSSD"),
    Container("mariadb", "database", version="11.8", what="MariaDB for slurmdbd"),
    Container("exporter", "exporter", has_image=False),
)


def components() -> Mapping[str, str]:
    """Daemons of a Cluster: the value of ``app.kubernetes.io/component`` by container."""
    return {one.name: one.component for one in CONTAINERS if one.component}


def with_images() -> tuple[Container, ...]:
    """Those that have images of their own."""
    return tuple(one for one in CONTAINERS if one.has_image)

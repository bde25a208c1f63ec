"""The program that makes home folders, and whether a Cluster wants it. Pure.

It runs where users arrive: on a node as the first prolog of a job, in a login pod when a session begins. The program
itself, and what makes it safe beside folders of users, is in `make-home.sh`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_operator.slurm.conf.syntax.directives import Directive

PROLOG: Final = "homes-prolog"
"""Name of its file beside slurm.conf; no script of a user's begins like this."""

LINE: Final = Directive("Prolog", PROLOG)
"""Its line in slurm.conf, before all other prologs: they may want to find the home."""

TWICE: Final = f"a file {PROLOG} is given already: rename it, or set spec.identity.homes.create to false"

_FOLDER: Final = "FOLDER_OF_HOMES"


def folder_of(spec: ClusterSpec) -> str:
    """Folder in which homes are made; empty if none are: unless the spec says so, those of lines of passwd are."""
    identity = spec.identity
    if identity is None or identity.homes is None:
        return ""
    wanted = identity.passwd is not None if identity.homes.create is None else identity.homes.create
    return identity.homes.mount_path if wanted else ""


def program(folder: str) -> str:
    """The program for homes below a folder, whose path the schema has checked."""
    return _text().replace(_FOLDER, folder)


@cache
def _text() -> str:
    return resources.files("slinky_operator.slurm.conf").joinpath("make-home.sh").read_text(encoding="utf-8")

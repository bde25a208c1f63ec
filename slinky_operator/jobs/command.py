"""What runs: a script as it is, or one that starts a program with its arguments.

A program and its arguments are quoted for the shell, each in single quotes, in which a shell expands nothing; so no
text can end its argument, and none begins a line of its own that a shell would run.
"""

from __future__ import annotations

import shlex

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.refusal import InvalidJob


def script_of(spec: SlurmJobSpec) -> str:
    """Return the script of a job.

    Raises
    ------
    InvalidJob
        For neither or both of script and command, and for a command that no shell can start.
    """
    if spec.script is not None and spec.command:
        raise InvalidJob("spec.command", "excludes spec.script: give one of both")
    if spec.script is not None:
        return spec.script
    if not spec.command:
        reason = "needs spec.command, or write spec.script" if spec.args else "is missing, and so is spec.command"
        raise InvalidJob("spec.args" if spec.args else "spec.script", reason)
    program = spec.command[0]
    if not program or program.startswith("-"):
        raise InvalidJob("spec.command[0]", "must be the name or the path of a program")
    return f"#!/bin/sh\nexec {shlex.join((*spec.command, *spec.args))}\n"


def arguments_of(spec: SlurmJobSpec, name: str) -> tuple[str, ...] | None:
    """Return the arguments of the script, after a first one that slurmd replaces by the script's path."""
    return (name, *spec.args) if spec.script is not None and spec.args else None

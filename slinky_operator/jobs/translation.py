"""A job object's spec as one submission to slurmrestd.

The lines of the script and the fields of the spec are read together, by sbatch's own rules: fields stand where sbatch
has its command line, behind the lines, and win. A line that loses is reported, and must be right all the same, as for
sbatch; one that a field excludes (``--mem-per-cpu`` beside ``memory``) loses too.

A program and its arguments are quoted for the shell, each in single quotes, in which a shell expands nothing; so no
text can end its argument, and none begins a line of its own that a shell would run.

What a data parser lacks is refused by the client when it is sent (`slurm_client.errors.NotSupported`). Who the user is,
and which partitions, accounts and QOS may be asked for, is for the caller to decide: what is asked for is in the
result.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Final

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs import environment, external, parameters
from slinky_operator.jobs.options import NO_LINE, Conflict, Wish, divided, fields_by_option
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.task_sets import Array
from slurm_client import JobSpec
from slurm_client.errors import InvalidDirective
from slurm_client.notation import sbatch
from slurm_client.notation.sbatch import Directive, Parsed

_SCRIPT = "spec.script"
_OTHER_WORDS = {
    "--uid": parameters.IDENTITY,
    "--gid": parameters.IDENTITY,
    "--cluster": parameters.ONE_CLUSTER,
    "--clusters": parameters.ONE_CLUSTER,
}
"""Reasons for which the client would speak of its own calls."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be sent for a job object.

    Parameters
    ----------
    job
        The job, complete.
    conflicts
        Lines of the script against which fields have won.
    without_effect
        Lines and fields that change nothing about the job, with the reason.
    array
        The tasks of the job, if it is an array.
    components
        The parts of a job that has such, of which `job` is the first.
    """

    job: JobSpec
    conflicts: tuple[Conflict, ...]
    without_effect: tuple[str, ...]
    array: Array | None = None
    components: tuple[JobSpec, ...] = ()


def translate(
    spec: SlurmJobSpec,
    *,
    name: str,
    user: str = "",
    mark: str = "",
    now: datetime | None = None,
    zone: tzinfo = UTC,
    is_external: bool = False,
) -> Submission:
    """Make a submission of a spec.

    Parameters
    ----------
    spec
        What is asked for.
    name
        Name of the job, where the script gives none; sbatch takes that of the script's file.
    user
        The user whose job it is, for the variables USER and LOGNAME.
    mark
        What tells whose job it is when slurmctld is asked for it; kept in the job's ``extra``.
    now, zone
        The time that ``--begin=now+1hour`` and ``--begin=16:00`` count from, and where.
    is_external
        Whether it is a job without a script.

    Raises
    ------
    InvalidJob
        With the field, the line of the script if it is about one, and the reason.
    """
    if is_external:
        external.check(spec)
    script = script_of(spec) if not is_external else None
    own = environment.variables_of(spec)
    wishes = (*field_wishes(spec), *parameters.wishes(spec.parameters))
    fields = fields_by_option(wishes)
    try:
        lines = sbatch.directives(script) if script is not None else ()
        _refuse_mark(lines)
        kept, replaced, conflicts = divided(lines, wishes)
        wanted = (*kept, *(directive for wish in wishes for directive in wish.directives))
        parsed = sbatch.combine(wanted, script=script, replaced=replaced, now=now, zone=zone, environment=own)
        array = _array(parsed)
    except InvalidDirective as error:
        raise _invalid(error, fields) from None
    job = _completed(parsed, spec, name, mark)
    if is_external:
        return Submission(external.without_script(job), (), _idle(parsed, fields))
    export = next((each for each in reversed(parsed.directives) if each.option == "--export"), None)
    variables, overruled = environment.complete(job, own, export, user)
    return Submission(replace(job, environment=variables), (*conflicts, *overruled), _idle(parsed, fields), array)


def _completed(parsed: Parsed, spec: SlurmJobSpec, name: str, mark: str) -> JobSpec:
    job = parsed.spec
    return replace(
        job,
        name=job.name or name,
        extra=mark or None,
        arguments=arguments_of(spec, name),
    )


def _array(parsed: Parsed) -> Array | None:
    text = parsed.spec.array
    if not text:
        return None
    try:
        return Array.read(text)
    except ValueError as error:
        raise parsed.sources["array"].refused(str(error)) from None


def _refuse_mark(lines: tuple[Directive, ...]) -> None:
    for line in lines:
        if line.option == "--extra":
            raise line.refused(parameters.REFUSED["extra"])


def _invalid(error: InvalidDirective, fields: Mapping[str, str]) -> InvalidJob:
    """Say what is wrong by the names that the user has written: those of fields, or options in lines."""
    named = re.sub(r"--[a-z][a-z-]*", lambda match: fields.get(match[0], match[0]), error.reason)
    if error.line == NO_LINE and error.option in fields:
        return InvalidJob(fields[error.option], named)
    named = _OTHER_WORDS.get(error.option, named)
    reason = f"{error.option}: {named}" if error.option else named
    return InvalidJob(_SCRIPT, reason, error.line)


def _idle(parsed: Parsed, fields: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{directive.option} in line {directive.line} of the script: {reason}"
        if directive.line != NO_LINE
        else f"{fields.get(directive.option, directive.option)}: {reason}"
        for directive, reason in parsed.without_effect.items()
    )


def script_of(spec: SlurmJobSpec) -> str:
    """Return the script of a job.

    Raises
    ------
    InvalidJob
        For neither or both of script and command, and for a command that no shell can start.
    """
    if spec.script is not None and spec.command:
        raise InvalidJob("spec.command", "cannot be set together with spec.script")
    if spec.script is not None:
        return spec.script
    if not spec.command:
        reason = "requires spec.command or spec.script" if spec.args else "is required, unless spec.command is set"
        raise InvalidJob("spec.args" if spec.args else "spec.script", reason)
    program = spec.command[0]
    if not program or program.startswith("-"):
        raise InvalidJob("spec.command[0]", "must be the name or the path of a program")
    return f"#!/bin/sh\nexec {shlex.join((*spec.command, *spec.args))}\n"


def arguments_of(spec: SlurmJobSpec, name: str) -> tuple[str, ...] | None:
    """Return the arguments of the script, after a first one that slurmd replaces by the script's path."""
    return (name, *spec.args) if spec.script is not None and spec.args else None


_OPTIONS: Final = {
    "partition": "--partition",
    "account": "--account",
    "qos": "--qos",
    "nodes": "--nodes",
    "tasks": "--ntasks",
    "cpus_per_task": "--cpus-per-task",
    "gres": "--gres",
    "time": "--time",
    "features": "--constraint",
    "array": "--array",
    "working_directory": "--chdir",
    "output": "--output",
    "error": "--error",
}
_BINARY_UNIT: Final = re.compile(r"([0-9]{1,15}[KMGT])i(?:B)?")


def field_wishes(spec: SlurmJobSpec) -> Iterator[Wish]:
    """Give what the fields of a spec ask for, but for its script, variables and parameters."""
    for name, option in _OPTIONS.items():
        value = getattr(spec, name)
        if value is not None:
            yield Wish(path(name), ((option, str(value)),))
    if spec.memory is not None:
        # Units of Slurm are binary: 4G and 4Gi are the same.
        binary = _BINARY_UNIT.fullmatch(spec.memory)
        yield Wish(path("memory"), (("--mem", binary[1] if binary else spec.memory),))
    if spec.requeue is not None:
        both = frozenset({"--requeue", "--no-requeue"})
        yield Wish(path("requeue"), (("--requeue" if spec.requeue else "--no-requeue", None),), both)


def path(name: str) -> str:
    """Path of a field as users write it."""
    return f"spec.{SlurmJobSpec.model_fields[name].alias or name}"

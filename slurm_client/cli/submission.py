"""``slurm-rest submit``: a script with its ``#SBATCH`` lines, and options that mean what they mean to sbatch."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slurm_client.cli.output import as_json, print_json
from slurm_client.cli.text import safe
from slurm_client.models.plain import to_dict
from slurm_client.notation import sbatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from slurm_client.cli.connection import Connection
    from slurm_client.models import FinishedJob, JobSpec
    from slurm_client.sync import SyncSlurmClient

__all__ = ["COMMANDS"]

_OPTIONS = (
    ("account", "A", "ACCOUNT", "Account that pays."),
    ("array", "a", "INDICES", "Run an array, e.g. 0-9%2."),
    ("begin", "b", "TIME", "Not before, e.g. now+1hour."),
    ("chdir", "D", "FOLDER", "Where the job starts; without it, this folder."),
    ("comment", "", "TEXT", "Any text."),
    ("constraint", "C", "FEATURES", "Only nodes with these features."),
    ("cpus-per-task", "c", "NUMBER", "CPUs for each task."),
    ("dependency", "d", "JOBS", "Begin after other jobs, e.g. afterok:7."),
    ("error", "e", "FILE", "File for standard error."),
    ("gpus", "G", "NUMBER", "GPUs for the job."),
    ("gres", "", "LIST", "Generic resources on each node, e.g. gpu:2."),
    ("job-name", "J", "NAME", "Name of the job."),
    ("mem", "", "SIZE", "Memory on each node, e.g. 4G."),
    ("nodelist", "w", "NODES", "These nodes."),
    ("nodes", "N", "NUMBER", "Nodes, e.g. 2 or 2-4."),
    ("ntasks", "n", "NUMBER", "Tasks."),
    ("output", "o", "FILE", "File for standard output."),
    ("partition", "p", "NAME", "Partition."),
    ("qos", "q", "NAME", "Quality of service."),
    ("reservation", "", "NAME", "Reservation."),
    ("time", "t", "TIME", "Limit of time: minutes, or 1-02:03:04."),
)
"""Options of sbatch with a help of their own: name, letter, what it takes, what it is for."""


def _sbatch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of sbatch."""
    for name, letter, metavar, words in reversed(_OPTIONS):
        names = (f"--{name}", f"-{letter}") if letter else (f"--{name}",)
        command = click.option(*names, metavar=metavar, help=words)(command)
    return command


@click.command()
@click.argument("script", required=False, type=click.Path(dir_okay=False, allow_dash=True), metavar="[SCRIPT]")
@click.option("--wrap", metavar="COMMAND", help="Run this command instead of a script.")
@_sbatch_options
@click.option("--hold", "-H", is_flag=True, help="Do not start it before it is released.")
@click.option(
    "--sbatch", "more", multiple=True, metavar="OPTION", help="Any other option of sbatch: --sbatch=--nice=5."
)
@click.option("--wait", "-W", is_flag=True, help="Wait until it has ended, and exit with its exit code.")
@as_json
@click.pass_obj
def submit(
    connection: Connection,
    /,
    *,
    script: str | None,
    wrap: str | None,
    hold: bool,
    more: tuple[str, ...],
    wait: bool,
    json_: bool,
    **options: str | None,
) -> None:
    """
    Submit a job and print its number.

    SCRIPT is a file, or - for standard input. Its #SBATCH lines count, and options given here count more.

    With --wait, its end is printed too. The exit code is then that of the job: 0 if it went well, that of its script,
    128 and the signal that ended it, or 1, also for one that ran out of time; of an array, the highest of its tasks.
    """
    if (script is None) == (wrap is None):
        raise click.UsageError("give a script or --wrap, one of both")
    text = f"#!/bin/sh\n{wrap}\n" if wrap is not None else _read(script or "-")
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    spec = specified(text, [*given, *(["--hold"] if hold else []), *more])
    with connection.open() as slurm:
        submitted = slurm.submit_job(spec)
        if not json_:
            for words in (submitted.message, *(str(warning) for warning in submitted.warnings)):
                if words:
                    click.echo(safe(words), err=True)
            # Anyone who waits wants the number now, to cancel the job or to look at it.
            click.echo(submitted.id)
            sys.stdout.flush()
        finished = _ended(slurm, submitted.id) if wait else None
    if json_:
        print_json(to_dict(submitted) | ({} if finished is None else {"ends": list(finished.ends)}))
    if finished is None:
        return
    if not json_:
        for line in _lines(finished):
            click.echo(line)
    if finished.exit_status:
        raise click.exceptions.Exit(finished.exit_status)


def _ended(slurm: SyncSlurmClient, job: int) -> FinishedJob:
    """Wait for a job; if the wait is cut short, say that the job goes on."""
    try:
        return slurm.wait_job(job)
    except KeyboardInterrupt:
        click.echo(f"job {job} goes on", err=True)
        raise


_SHOWN = 20
"""Parts of a job that are printed one by one."""


def _lines(finished: FinishedJob) -> Iterator[str]:
    """Say how a job has ended: what did not go well part by part, what went well by its number."""
    ends = finished.ends if len(finished.ends) == 1 else finished.failed
    for end in ends[:_SHOWN]:
        code = end.exit_code
        how = f"signal {code.signal}" if code and code.signal else f"exit code {code.return_code or 0}" if code else ""
        yield safe(f"{end.id} {end.state}" + (f", {how}" if how else ""))
    if len(ends) > _SHOWN:
        yield f"and {len(ends) - _SHOWN} more that did not go well"
    if len(finished.ends) > 1:
        yield f"{len(finished.ends) - len(finished.failed)} of {len(finished.ends)} parts went well"


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    return Path(name).read_text(encoding="utf-8")


def specified(script: str, options: Iterable[str]) -> JobSpec:
    """
    Return the job that a script and options ask for, by sbatch's rules for both.

    Raises
    ------
    InvalidDirective
        For a line or an option that sbatch would refuse, or that cannot be said through slurmrestd.
    """
    lines = script.splitlines(keepends=True)
    # Options are read as lines behind those of the script: of two that say the same, the last counts.
    end = next((index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    if end and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    lines[end:end] = [f"#SBATCH {_quoted(option)}\n" for option in options]
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None  # noqa: S101 - astimezone sets one
    spec = sbatch.parse("".join(lines), zone=zone, environment=os.environ).spec
    return replace(spec, script=script, working_directory=spec.working_directory or str(Path.cwd()))


def _quoted(option: str) -> str:
    """Return an option as it is written in a line; a line break in it would begin another line."""
    if "\n" in option or "\r" in option:
        raise click.UsageError(f"an option cannot have a line break: {safe(option)}")
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


COMMANDS = (submit,)

"""Commands that change something: cancel, drain, undrain. Each tells what it did; none of them asks back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from slurm_client.cli.exits import FAILED
from slurm_client.cli.lists import expanded
from slurm_client.cli.output import as_json, print_json
from slurm_client.cli.text import safe
from slurm_client.cli.words import BASES, nothing, state_option
from slurm_client.notation.compress import compress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurm_client.cli.connection import Connection
    from slurm_client.errors import Report

__all__ = ["COMMANDS"]


@click.command()
@click.argument("ids", nargs=-1, metavar="[JOBS]...")
@click.option("--user", "-u", help="Of those that are there, only jobs of this user.")
@click.option("--partition", "-p", help="Only jobs of this partition.")
@click.option("--account", "-A", help="Only jobs of this account.")
@click.option("--name", "-n", help="Only jobs of this name.")
@state_option(BASES, "Only jobs in this base state, e.g. PENDING.")
@click.option("--signal", "-s", help="Send this signal instead of ending the jobs, e.g. USR1.")
@as_json
@click.pass_obj
def cancel(
    connection: Connection,
    *,
    ids: tuple[str, ...],
    user: str | None,
    partition: str | None,
    account: str | None,
    name: str | None,
    states: tuple[str, ...],
    signal: str | None,
    json_: bool,
) -> None:
    """
    End jobs: those named, or all that match every filter. Neither is an error: that would be every job.

    A number means all tasks of an array, 7_3 one of them.
    """
    with connection.open() as slurm:
        results = slurm.cancel_jobs(
            ids or None,
            user=user,
            partition=partition,
            account=account,
            name=name,
            states=states or None,
            signal=signal,
        )
        if not results:
            nothing(slurm, "job", () if partition is None else (partition,))
    failed = {result.id: result.error for result in results if result.error is not None}
    done = [result.id for result in results if result.error is None]
    if json_:
        print_json(list(results))
    else:
        _tell(done, failed, "signalled" if signal else "cancelled")
    if failed:
        raise click.exceptions.Exit(FAILED)


def _tell(done: Sequence[str], failed: Mapping[str, Report | None], what: str) -> None:
    """Print what became of each job."""
    for each in done:
        click.echo(f"{safe(each)} {what}")
    for each, error in failed.items():
        click.echo(f"{safe(each)} not {what}: {safe(str(error))}", err=True)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODES...")
@click.option("--reason", "-r", required=True, help="Why; everybody who lists nodes sees it.")
@click.pass_obj
def drain(connection: Connection, *, names: tuple[str, ...], reason: str) -> None:
    """Let no new job start on nodes, e.g. w-[0-3]; the jobs on them go on."""
    wanted = expanded(names)
    with connection.open() as slurm:
        slurm.drain_nodes(wanted, reason)
        jobs = slurm.jobs_on_nodes(wanted)
    click.echo(f"{safe(compress(wanted))} drained" + (f"; {len(jobs)} jobs are still on them" if jobs else ""))


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODES...")
@click.pass_obj
def undrain(connection: Connection, *, names: tuple[str, ...]) -> None:
    """Take drains away; a node that is down stays down."""
    wanted = expanded(names)
    with connection.open() as slurm:
        slurm.undrain_nodes(wanted)
        down = [node.name for node in slurm.nodes() if node.name in set(wanted) and node.is_down]
    click.echo(f"{safe(compress(wanted))} no longer drained" + (f"; {safe(compress(down))} still down" if down else ""))
    if down:
        raise click.exceptions.Exit(FAILED)


COMMANDS = (cancel, drain, undrain)

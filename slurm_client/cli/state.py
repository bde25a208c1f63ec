"""Commands about Slurm itself: who answers, and how slurmctld is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from slurm_client.cli.exits import UNREACHABLE
from slurm_client.cli.output import as_json, print_json, print_lines
from slurm_client.cli.text import microseconds, moment, safe, table

if TYPE_CHECKING:
    from slurm_client.cli.connection import Connection
    from slurm_client.models import Diag

__all__ = ["COMMANDS"]


@click.command()
@as_json
@click.pass_obj
def ping(connection: Connection, *, json_: bool) -> None:
    """Tell which slurmctlds answer, and which data parser is spoken; exit code 3 if none answers."""
    with connection.open() as slurm:
        parser, found, release = slurm.connect(), slurm.ping(), slurm.slurm_version
    if json_:
        print_json({"release": release, "parser": parser, "controllers": list(found)})
    else:
        print_lines(
            table(
                ("HOST", "STATE", "MODE", "ANSWERED IN"),
                (
                    (
                        each.hostname,
                        "UP" if each.responding else "DOWN",
                        each.mode,
                        "" if each.latency_us is None else microseconds(each.latency_us),
                    )
                    for each in found
                ),
            ),
            ("UP" if each.responding else "DOWN" for each in found),
        )
        click.echo(f"Slurm {safe(release)}, data parser {safe(parser)}")
    if not any(each.responding for each in found):
        raise click.exceptions.Exit(UNREACHABLE)


@click.command()
@click.option("--rpcs", type=click.IntRange(min=0), default=10, show_default=True, help="Kinds of calls to show.")
@as_json
@click.pass_obj
def diag(connection: Connection, *, rpcs: int, json_: bool) -> None:
    """Show how slurmctld is doing: jobs, scheduler, backlog, and the calls that cost it most."""
    with connection.open() as slurm:
        found = slurm.diag()
    if json_:
        print_json(found)
        return
    for name, value in _rows(found):
        click.echo(f"{click.style(f'{name:22}', bold=True)} {safe(value)}")
    busiest = sorted(found.rpcs_by_message, key=lambda each: -each.total_time_us)[:rpcs]
    if busiest:
        click.echo()
        rows = (
            (
                each.name,
                each.count,
                microseconds(each.average_time_us or each.total_time_us // max(1, each.count)),
                microseconds(each.total_time_us),
            )
            for each in busiest
        )
        print_lines(table(("CALL", "COUNT", "MEAN", "IN ALL"), rows, right=("COUNT", "MEAN", "IN ALL")))


def _rows(found: Diag) -> list[tuple[str, str]]:
    queue = found.dbd_agent_queue_size
    jobs = (
        f"{found.jobs_submitted} submitted, {found.jobs_started} started, {found.jobs_completed} completed, "
        f"{found.jobs_canceled} cancelled, {found.jobs_failed} failed"
    )
    main = _cycles(found.schedule_cycle_last_us, found.schedule_cycle_mean_us, found.schedule_cycle_max_us)
    backfill = _cycles(found.backfill_cycle_last_us, found.backfill_cycle_mean_us, found.backfill_cycle_max_us)
    return [
        ("counted since", moment(found.since) or "-"),
        ("jobs now", f"{found.jobs_running} running, {found.jobs_pending} pending"),
        ("jobs since", jobs),
        (
            "scheduler",
            f"{main}; {found.schedule_cycle_per_minute} cycles a minute, queue of {found.schedule_queue_length}",
        ),
        ("backfill", f"{backfill}; {found.backfilled_jobs} jobs backfilled"),
        ("threads", f"{found.server_thread_count} of the server, {found.agent_thread_count} of agents"),
        ("agent queue", f"{found.agent_queue_size} messages"),
        ("accounting queue", f"{queue} records" + (_STUCK if queue > 100 else "")),
    ]


_STUCK = ": slurmdbd does not take them; see its log"


def _cycles(last: int, mean: int, longest: int) -> str:
    return f"last {microseconds(last)}, mean {microseconds(mean)}, longest {microseconds(longest)}"


COMMANDS = (ping, diag)

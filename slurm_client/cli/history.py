"""``slurm-rest history``: jobs as slurmdbd keeps them, also long after slurmctld has forgotten them."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from slurm_client import errors
from slurm_client.cli.output import as_json, print_json, print_lines
from slurm_client.cli.text import length, moment, safe, table
from slurm_client.cli.words import BASES, state_option

if TYPE_CHECKING:
    from slurm_client.cli.connection import Connection
    from slurm_client.models import JobRecord
    from slurm_client.operations.database.filters import JobFilters

__all__ = ["COMMANDS", "Moment"]

_AGO = re.compile(r"([0-9]{1,5})([mhdw])")
_EPOCH = datetime.fromtimestamp(0, UTC)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


# It takes a type argument from click 8.3 on, and none before.
class Moment(click.ParamType):  # type: ignore[type-arg]
    """A time: so long ago (``90m``, ``12h``, ``7d``, ``2w``), or ISO 8601, in the zone of this machine without one."""

    name = "time"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time in UTC and whole seconds."""
        if isinstance(value, datetime):
            return value
        now = datetime.now(UTC).replace(microsecond=0)
        ago = _AGO.fullmatch(value)
        try:
            if ago is not None:
                found = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
            else:
                found = datetime.fromisoformat(value).astimezone(UTC).replace(microsecond=0)
        except (ValueError, OverflowError):
            found = _EPOCH
        if found <= _EPOCH:
            self.fail(f"{safe(value)!r:.40} is no time: write 7d, 12h, 2026-01-31 or 2026-01-31T12:00", param, ctx)
        return found


@click.command()
@click.argument("ids", nargs=-1, metavar="[JOBS]...")
@click.option("--since", type=Moment(), default="1d", show_default=True, help="From when on: 7d, 12h, 2026-01-31.")
@click.option("--until", type=Moment(), help="Until when; now without it.")
@click.option("--user", "-u", "users", multiple=True, help="Only jobs of these users.")
@click.option("--account", "-A", "accounts", multiple=True, help="Only jobs of these accounts.")
@click.option("--partition", "-p", "partitions", multiple=True, help="Only jobs of these partitions.")
@state_option(BASES, "Only jobs that ended so, e.g. FAILED or TIMEOUT.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Jobs to show at most.")
@as_json
@click.pass_obj
def history(
    connection: Connection,
    /,
    *,
    ids: tuple[str, ...],
    since: datetime,
    until: datetime | None,
    limit: int,
    json_: bool,
    **chosen: tuple[str, ...],
) -> None:
    """
    List jobs that ran, as accounting keeps them: the first of the time asked for come first.

    With JOBS, every run of these, whenever it was.
    """
    filters: JobFilters = {name: list(words) for name, words in chosen.items() if words}  # type: ignore[assignment]
    with connection.open() as slurm:
        if ids:
            found = [record for each in ids for record in _runs(each, slurm.db.job_records(each))]
            more = False
        else:
            with closing(slurm.db.history(since, until, steps=False, **filters)) as stream:
                found = list(islice(stream, limit))
                more = next(stream, None) is not None
        if not found and filters:
            click.echo("no job matches", err=True)
    if json_:
        print_json(found)
    else:
        head = ("ID", "NAME", "USER", "ACCOUNT", "PARTITION", "STATE", "BEGAN", "RAN", "LIMIT", "EXIT", "NODES")
        lines = table(head, map(_row, found), right=("RAN", "LIMIT", "EXIT"))
        print_lines(lines, (str(record.state) for record in found))
    if more:
        click.echo(f"There are more: see --limit {limit}, --since and --until.", err=True)


def _runs(name: str, records: tuple[JobRecord, ...]) -> tuple[JobRecord, ...]:
    if not records:
        raise errors.NotFound(f"slurmdbd has no job {name}")
    return records


def _row(record: JobRecord) -> tuple[object, ...]:
    code = record.exit_code
    ended = "" if code is None else code.signal_name or code.signal or code.return_code
    task = record.array_task_id is not None
    return (
        f"{record.array_job_id}_{record.array_task_id}" if task else record.id,
        record.name,
        record.user,
        record.account,
        record.partition,
        record.state,
        moment(record.start_time),
        length(record.elapsed),
        length(record.time_limit),
        "" if ended is None else str(ended),
        record.node_list,
    )


COMMANDS = (history,)

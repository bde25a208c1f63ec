"""The program `slurm-exporter`: read settings, run until a signal, return an exit status."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence

from slurm_client import SlurmClient
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.settings import Settings, SettingsError, load

_log = logging.getLogger("slurm_exporter")


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises
    ------
    RuntimeError
        If a part of the exporter broke.
    OSError
        If it cannot listen.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    async with (
        SlurmClient(
            settings.server, settings.token, pace=pace(settings.cadence), ca_bundle=settings.ca_bundle
        ) as client,
        Exporter(
            client,
            settings.cadence,
            settings.budgets,
            labels=settings.labels,
            accounting=settings.accounting,
            host=settings.host,
            port=settings.port,
        ) as exporter,
    ):
        broken = asyncio.create_task(exporter.run())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({broken, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if broken.done():
            broken.result()
        broken.cancel()
        await asyncio.gather(broken, stopped, return_exceptions=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the exporter.

    Returns
    -------
    int
        0 after a signal, 1 if it broke or cannot listen, 2 for invalid settings.
    """
    try:
        settings = load(arguments, os.environ)
    except SettingsError as error:
        print(f"slurm-exporter: {error}", file=sys.stderr)  # noqa: T201 there is no log yet
        return 2
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    try:
        asyncio.run(run(settings))
    except (RuntimeError, OSError) as error:
        _log.critical("the exporter exits: %s", error)
        return 1
    return 0

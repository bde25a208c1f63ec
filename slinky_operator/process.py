"""The process of the operator: read settings, run, return an exit status."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

from slinky_operator.kube.calls import login  # noqa: F401 before kopf, whose imports it makes fewer

# isort: split
from slinky_operator import app
from slinky_operator.kube.calls.connection import NoCredentials
from slinky_operator.kube.leadership.lease import LeadershipLost
from slinky_operator.runtime import logging as log_lines
from slinky_operator.runtime.garbage_collection import relax_collector
from slinky_operator.runtime.tasks import TaskCrashed
from slinky_operator.settings import Settings, SettingsError

logger = logging.getLogger(__name__)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT.

    Parameters
    ----------
    arguments
        Command line without the program's name; `None` for the process's own.

    Returns
    -------
    int
        0 after SIGTERM or SIGINT, 1 if the process has to be restarted (leadership lost, a background task crashed, no
        API server configured), 2 for invalid settings.
    """
    try:
        settings = Settings.load(arguments)
    except SettingsError as error:
        print(f"slurm-operator: {error}", file=sys.stderr)  # noqa: T201 there is no log yet
        return 2
    log_lines.configure(level=settings.log_level, form=settings.log_format)
    relax_collector()
    try:
        asyncio.run(app.run(settings))
    except (LeadershipLost, TaskCrashed, NoCredentials) as error:
        # The messages are complete; the trace of a crash has been logged where it happened.
        logger.critical("the operator exits: %s", error)
        return 1
    return 0

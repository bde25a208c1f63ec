"""The program ``slurm-operator``: read settings, run the operator, end with a status that says how it went."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

from slinky_operator import app
from slinky_operator.kube.connection import NoCredentials
from slinky_operator.kube.lease import LeadershipLost
from slinky_operator.runtime import logging as log_lines
from slinky_operator.runtime.memory import relax_collector
from slinky_operator.runtime.tasks import TaskCrashed
from slinky_operator.settings import Settings, SettingsError

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until asked to end.

    Returns
    -------
    int
        0 after SIGTERM or SIGINT, 1 if the process has to be started again (leadership lost, a background task
        crashed, no API server to talk to), 2 for settings that cannot be used.
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
        # Each says all there is to say; the trace of a crash has been logged where it happened.
        logger.critical("the operator ends: %s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Build Kubernetes and helm, which take longest of what a fresh machine lacks: ``python -m hack.localkube.programs``.

It needs no package beside Python, so the Makefile starts it beside their installation. Who needs the programs waits for
its lock, and builds them again where it has failed.
"""

from __future__ import annotations

import os
import sys

from hack.localkube.errors import LocalKubeError
from hack.localkube.programs import build
from hack.machine import neutral_start
from hack.machine.progress import say

NICENESS = 10


def main() -> int:
    """Build what the cache does not hold, giving way to everything else; returns the exit status."""
    os.nice(NICENESS)
    try:
        build.ensure(build.HELM, build.KUBERNETES)
    except (LocalKubeError, OSError) as error:
        say(f"programs: {error}")
        return 1
    return 0


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())

"""The program ``slurm-operator``: the operator itself, or one of its commands ``convert`` and ``preview``.

What the operator imports takes seconds, so that each command imports its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from slinky_operator.runtime.garbage_collection import pause_collector

CONVERT: Final = "convert"
PREVIEW: Final = "preview"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until SIGTERM or SIGINT, convert what is of Slinky, or preview a change of a Cluster.

    Parameters
    ----------
    arguments
        Command line without the program's name; `None` for the process's own.

    Returns
    -------
    int
        The exit status: that of `slinky_operator.process.run`, or of the command's own `main`.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == [CONVERT]:
        from slinky_operator.conversion import command  # noqa: PLC0415 it needs nothing of the operator

        return command.main(given[1:])
    if given[:1] == [PREVIEW]:
        from slinky_operator.preview import command as preview  # noqa: PLC0415 as above

        return preview.main(given[1:])
    with pause_collector():
        from slinky_operator import process  # noqa: PLC0415 seconds of imports

    return process.run(given)


if __name__ == "__main__":
    sys.exit(main())

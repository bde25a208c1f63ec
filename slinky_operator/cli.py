"""The program ``slurm-operator``: the operator itself, or ``slurm-operator convert``.

What the operator imports takes seconds, so that each command imports its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

CONVERT: Final = "convert"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until SIGTERM or SIGINT, or convert what is of Slinky.

    Parameters
    ----------
    arguments
        Command line without the program's name; `None` for the process's own.

    Returns
    -------
    int
        The exit status: that of `slinky_operator.process.run`, or of `slinky_operator.conversion.command.main`.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == [CONVERT]:
        from slinky_operator.conversion import command  # noqa: PLC0415 it needs nothing of the operator

        return command.main(given[1:])
    from slinky_operator import process  # noqa: PLC0415 seconds of imports

    return process.run(given)


if __name__ == "__main__":
    sys.exit(main())

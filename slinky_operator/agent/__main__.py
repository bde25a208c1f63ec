"""``python -m slinky_operator.agent FOLDER PORT [FILE]``; the file is that of SSSD's container."""

import signal
import sys
from pathlib import Path

from slinky_operator.agent.server import serve


def main() -> None:
    """Serve until SIGTERM, which the first process of a container ignores unless it has a handler."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder, port, *more = sys.argv[1:]
    serve(Path(folder), int(port), directory=Path(more[0]) if more else None)


main()

"""``python -m slinky_operator.agent FOLDER PORT``."""

import signal
import sys
from pathlib import Path

from slinky_operator.agent.server import serve


def main() -> None:
    """Serve until SIGTERM, which the first process of a container ignores unless it has a handler."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder, port = sys.argv[1:3]
    serve(Path(folder), int(port))


main()

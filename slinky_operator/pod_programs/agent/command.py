"""The agent's command line: ``FOLDER PORT [--volume=NAME=PATH]... [FILE]``; the file is of SSSD's container."""

import signal
import sys
from pathlib import Path

from slinky_operator.pod_programs.agent.server import serve


def main() -> None:
    """Serve until SIGTERM, which the first process of a container ignores unless it has a handler."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    mark = "--volume="
    folder, port, *more = (word for word in sys.argv[1:] if not word.startswith(mark))
    named = (word.removeprefix(mark).partition("=") for word in sys.argv[1:] if word.startswith(mark))
    volumes = {name: Path(path) for name, _, path in named}
    serve(Path(folder), int(port), directory=Path(more[0]) if more else None, volumes=volumes)

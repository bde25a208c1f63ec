"""The program that stands beside sackd in login pods, beside a sackd of a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hack.machine import ports
from tests.support.daemons import accepts
from tests.support.slurm_host import SlurmHost


@contextmanager
def beside_sackd(host: SlurmHost) -> Iterator[int]:
    """Run it; yields its port on 127.0.0.1."""
    (port,) = ports.hold(1)
    command = [sys.executable, "-m", "slinky_operator.agent.sack", str(host.sack_socket), str(port)]
    with subprocess.Popen(command) as program:
        try:
            host.wait_for(lambda: accepts(port), "the program beside sackd listens")
            yield port
        finally:
            program.terminate()

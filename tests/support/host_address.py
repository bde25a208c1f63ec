"""An address of this machine that is none of loopback: the API server proxies to no other. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def host_address() -> Iterator[str]:
    """An address that only this process uses, on the interface lo, from the block for benchmarks (RFC 2544)."""
    own = os.getpid() % 65_000
    address = f"198.18.{own // 256}.{own % 256}"
    subprocess.run(["ip", "addr", "replace", f"{address}/32", "dev", "lo"], check=True)
    try:
        yield address
    finally:
        subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=True)

"""Imported first in the operator's process: notes how long each turn of its event loop takes, and tells on a signal.

At SIGRTMIN a JSON object is written to the file that `WATCHED` names: turns since the last time, CPU and memory of the
process. Times are of CPU, so that other programs of the machine do not count.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from array import array
from pathlib import Path
from types import FrameType
from typing import Any

_TURNS = array("d")
_FILE = Path(os.environ["WATCHED"])


def _memory(field: str) -> float:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1]) / 1024


def _tell(_signal: int, _frame: FrameType | None) -> None:
    turns = sorted(_TURNS)
    del _TURNS[:]
    told: dict[str, Any] = {
        "turns": len(turns),
        "p99": turns[len(turns) * 99 // 100] if turns else 0.0,
        "longest": turns[-1] if turns else 0.0,
        "cpu": time.process_time(),
        "rss": _memory("VmRSS"),
        "most": _memory("VmHWM"),
    }
    new = _FILE.with_suffix(".new")
    new.write_text(json.dumps(told))
    _ = new.replace(_FILE)


def _watch() -> None:
    loop: Any = asyncio.base_events.BaseEventLoop
    run_once = loop._run_once

    def turn(self: Any) -> None:
        began = time.thread_time()
        run_once(self)
        _TURNS.append(time.thread_time() - began)

    loop._run_once = turn
    _ = signal.signal(signal.SIGRTMIN, _tell)


_watch()

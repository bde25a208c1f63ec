"""Lines that tell a person what is going on and how long it took."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HEARTBEAT_SECONDS = 15.0


def say(text: str) -> None:
    """Print one line at once."""
    print(text, flush=True, file=sys.stderr)


@contextmanager
def step(title: str, progress: Callable[[str], None] = say) -> Iterator[None]:
    """Announce a step, repeat the elapsed time while it lasts, and say when it is done.

    A step of under a second is one line; a longer one shows a line every 15 s, so that nobody wonders whether it hangs.
    """
    start = time.monotonic()
    done = threading.Event()

    def heartbeat() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            progress(f"  ...  {title} ({time.monotonic() - start:.0f} s so far)")

    thread = threading.Thread(target=heartbeat, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        progress(f"  FAIL {title} after {time.monotonic() - start:.1f} s")
        raise
    else:
        progress(f"  ok   {title} ({time.monotonic() - start:.1f} s)")
    finally:
        done.set()
        thread.join()

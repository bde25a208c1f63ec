"""Work of which one piece is begun in a turn of the event loop, however many wait to begin theirs.

Callbacks that become ready together all run in one turn: what each may do alone delays everything else if a hundred do
it. Here those who come together are let in one after the other, in the order in which they came.
"""

from __future__ import annotations

import asyncio


class OneATurn:
    """Lets one in at a time, with a turn of the event loop between any two."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def turn(self) -> None:
        """Wait for a turn; what is done until the next pause is the only such work in it."""
        async with self._lock:
            await asyncio.sleep(0)

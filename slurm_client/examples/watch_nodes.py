"""Tell which nodes become usable or unusable: ``watch_nodes.py``, or ``watch_nodes.py 3`` for three changes."""

import asyncio
import os
import sys

from slurm_client import SlurmClient


async def main(changes: int | None) -> None:
    """Print changes until interrupted, or this many of them."""
    async with (
        SlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm,
        slurm.watch_nodes() as events,
    ):
        there = await events.initial()
        print(f"{sum(node.is_usable for node in there.values())} of {len(there)} nodes are usable", flush=True)
        seen = 0
        async for event in events:
            before, now = event.old is not None and event.old.is_usable, event.new is not None and event.new.is_usable
            if before == now:
                continue
            why = f" ({event.new.state} {event.new.reason})" if event.new else " (gone)"
            print(f"{event.key}: {'usable' if now else f'unusable{why}'}", flush=True)
            seen += 1
            if seen == changes:
                return


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else None))

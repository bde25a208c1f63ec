"""
``python -m slurm_client.testing``: a fake slurmrestd to play with, or to measure against.

Prints its base URL on the first line and runs until it is ended.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys

from slurm_client.testing.server import FakeSlurmrestd


async def serve(options: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT."""
    fake = FakeSlurmrestd(release=options.release, port=options.port, pretty=options.pretty)
    for number in range(options.nodes):
        fake.add_node(f"node-{number:05d}", cpus=64, memory=256_000, extra="team/node", comment="a node of the fake")
    with fake.world.many_jobs():
        for number in range(options.jobs):
            fake.add_job(
                name=f"job-{number:05d}", user=f"user-{number % 97}", nodes=[f"node-{number % options.nodes:05d}"]
            )
    # An old cluster, in which nothing has changed for a while.
    fake.world.nodes_changed = fake.world.partitions_changed = fake.world.jobs_changed = 1_000_000_000
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with fake:
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        await ended.wait()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m slurm_client.testing", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4, help="how many nodes there are")
    parser.add_argument("--jobs", type=int, default=0, help="how many jobs run")
    parser.add_argument("--release", default="26.05.5", help="Slurm release to pretend")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; a free one if 0")
    parser.add_argument("--pretty", action="store_true", help="write JSON with line breaks, as slurmrestd does")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()

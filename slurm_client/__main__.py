"""
``python -m slurm_client``: a look at a cluster through slurmrestd, and drains by hand.

For people and for trying out connections; programs use the library.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from slurm_client.client import SlurmClient
from slurm_client.errors import SlurmError
from slurm_client.tokens import FileToken, MintedToken, StaticToken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from slurm_client.tokens import TokenProvider


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 if all went well, 1 with the error on stderr, 2 for a wrong command line."""
    options = parser().parse_args(arguments)
    try:
        asyncio.run(run(options))
    except (SlurmError, ValueError, OSError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="python -m slurm_client", description=__doc__)
    top.add_argument("--url", default=os.environ.get("SLURMRESTD_URL", "http://localhost:6820"), help="$SLURMRESTD_URL")
    top.add_argument("--token-file", help="file with a token; $SLURM_JWT is taken without one")
    top.add_argument("--jwt-key", help="file with the cluster's jwt.key, to mint tokens")
    top.add_argument("--user", default="slurm", help="whom minted tokens speak for")
    top.add_argument("--api-version", help="data parser, e.g. v0.0.42; the newest common one without")
    top.add_argument("--timeout", type=float, default=30.0, help="seconds for a call")
    commands = top.add_subparsers(dest="command", required=True)
    for name, words in (
        ("ping", "who answers, and with which data parser"),
        ("nodes", "all nodes"),
        ("jobs", "all jobs"),
        ("partitions", "all partitions"),
        ("watch", "changes of nodes, until interrupted"),
    ):
        commands.add_parser(name, help=words)
    drain = commands.add_parser("drain", help="let no new job start on nodes")
    drain.add_argument("--reason", required=True)
    drain.add_argument("names", nargs="+")
    undrain = commands.add_parser("undrain", help="take drains away")
    undrain.add_argument("names", nargs="+")
    return top


async def run(options: argparse.Namespace) -> None:
    """Do what is asked for and print it."""
    async with SlurmClient(
        options.url, await token_of(options), api_version=options.api_version, timeout=options.timeout
    ) as slurm:
        match options.command:
            case "ping":
                version = await slurm.connect()
                rows = [(ping.hostname, "UP" if ping.responding else "DOWN") for ping in await slurm.ping()]
                table(("HOST", "STATE"), rows)
                sys.stdout.write(f"Slurm {slurm.slurm_version}, data parser {version}\n")
            case "nodes":
                table(
                    ("NAME", "STATE", "CPUS", "MEMORY", "PARTITIONS", "REASON"),
                    (
                        (
                            node.name,
                            node.state,
                            f"{node.alloc_cpus}/{node.cpus}",
                            node.real_memory_mib,
                            ",".join(node.partitions),
                            node.reason,
                        )
                        for node in await slurm.nodes()
                    ),
                )
            case "jobs":
                table(
                    ("ID", "NAME", "USER", "PARTITION", "STATE", "NODES"),
                    (
                        (job.id, job.name, job.user, job.partition, job.state, job.node_list or f"({job.state_reason})")
                        for job in await slurm.jobs()
                    ),
                )
            case "partitions":
                table(
                    ("NAME", "STATE", "NODES", "MAX TIME"),
                    ((each.name, each.state, each.total_nodes, each.max_time) for each in await slurm.partitions()),
                )
            case "watch":
                async for event in slurm.watch_nodes():
                    old, new = event.old and event.old.state, event.new and event.new.state
                    sys.stdout.write(f"{event.kind} {event.key}: {old or '-'} -> {new or '-'}\n")
                    sys.stdout.flush()
            case "drain":
                await slurm.drain_nodes(options.names, options.reason)
            case _:
                await slurm.undrain_nodes(options.names)


async def token_of(options: argparse.Namespace) -> TokenProvider:
    """Return where tokens come from."""
    if options.jwt_key:
        return MintedToken(await asyncio.to_thread(_read, options.jwt_key), options.user)
    if options.token_file:
        return FileToken(options.token_file)
    return StaticToken(os.environ.get("SLURM_JWT", ""))


def _read(path: str | Path) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not worth its import here
        return file.read()


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Print columns below their names."""
    lines = [head, *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(f"{cells.rstrip()}\n")


if __name__ == "__main__":
    sys.exit(main())

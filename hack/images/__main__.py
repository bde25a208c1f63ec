"""``python -m hack.images``: build, list, measure, ask for the Slurm version."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence

from hack.images import build, rootfs, sizes
from hack.images.cache import Cache, cache_root
from hack.images.errors import ImagesError
from hack.images.names import SETS, SLURM_SUITES
from hack.machine import neutral_start
from hack.machine.progress import say


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.images", description="Container images without Docker.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build what is not in the cache, print the archives")
    building.add_argument("sets", nargs="*", default=list(SETS), metavar="SET", help=f"of {', '.join(SETS)}; else all")
    building.add_argument("--refresh", action="store_true", help="take today's Debian packages")
    commands.add_parser("list", help="all sets, and where they are")
    measuring = commands.add_parser("sizes", help="what each image weighs, and may weigh")
    measuring.add_argument("sets", nargs="*", default=list(SETS), metavar="SET", help="some sets only")
    version = commands.add_parser("version", help="the full version of the Slurm in the images of a series")
    version.add_argument("slurm", help=f"of {', '.join(SLURM_SUITES)}")
    tree = commands.add_parser("rootfs", help="print the tree with all Slurm daemons of a series")
    tree.add_argument("slurm", help=f"of {', '.join(SLURM_SUITES)}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; archives and versions go to standard output, progress to standard error."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "build":
            if options.refresh:
                Cache(cache_root()).refresh(datetime.datetime.now(datetime.UTC))
            for archives in build.ensure(options.sets, say).values():
                for archive in archives:
                    print(archive)
        elif options.command == "list":
            for one, entry, there in build.listing():
                print(f"{one.name:16} {'built' if there else '-':6} {one.summary}" + (f"\n{entry}" if there else ""))
        elif options.command == "sizes":
            archives = [path for found in build.ensure(options.sets, say).values() for path in found]
            print(sizes.table([size for archive in archives for size in sizes.measure(archive)]))
        elif options.command == "version":
            print(build.slurm_version(options.slurm, say))
        else:
            print(rootfs.ensure(options.slurm, say))
    except ImagesError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())

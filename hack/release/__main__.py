"""Make a release in a folder, publish its images, or say what it would be: ``python -m hack.release --help``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.machine.progress import step
from hack.packaging.errors import PackagingError
from hack.release import assets, changes, parameters, plugin, publish, support, version
from hack.release.contents import charts, images, manifests, olm, provenance, sboms, wheels
from hack.release.parameters import ROOT, Parameters
from hack.release.publish import Crane

PARTS = ("wheels", "charts", "manifests", "olm", "plugin", "images")


class Refused(Exception):
    """A release is not made, and the text says why."""


def make(parameters: Parameters, folder: Path, parts: Sequence[str], builder: str) -> None:
    """Fill the folder of a release; what an earlier call has left there goes.

    Raises
    ------
    Refused
        The folder has files and is no release.
    """
    if folder.exists():
        if not folder.is_dir() or (any(folder.iterdir()) and not (folder / provenance.CHECKSUMS).is_file()):
            raise Refused(
                f"{folder} is no release (it has no {provenance.CHECKSUMS}), and is not deleted: empty it first"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    # So that a release that was not finished can be made again. An empty one verifies nothing.
    (folder / provenance.CHECKSUMS).touch()
    _fill(parameters, folder, parts)
    provenance.write(parameters, folder, builder)


def _fill(parameters: Parameters, folder: Path, parts: Sequence[str]) -> None:
    if "wheels" in parts:
        with step("wheels", _say):
            wheels.build(parameters, folder / "wheels")
    if "charts" in parts:
        with step("charts", _say):
            charts.build(parameters, folder / "charts")
    if "manifests" in parts:
        with step("manifests", _say):
            manifests.build(parameters, folder / "manifests")
    if "olm" in parts:
        with step("bundle for OLM", _say):
            olm.build(parameters, folder / "olm")
    if "plugin" in parts:
        with step("kubectl slurm in one file", _say):
            source = parameters.source
            plugin.make(folder / "plugin", source and f"{source}/releases/download/v{parameters.version}")
    if "images" in parts:
        with step("images", _say):
            made = images.build(parameters, folder / "images")
        with step("lists of what is in images", _say):
            sboms.build(parameters, made, folder / "sboms")


def _publish(folder: Path, architectures: Sequence[str] | None) -> None:
    crane = Crane.built()
    for name in publish.index(folder, architectures, crane) if architectures else publish.push(folder, crane):
        print(name, flush=True)


FAILURES = (
    *(PackagingError, Refused, assets.AssetsFailed, changes.NoSection, publish.PublishFailed),
    *(sboms.SbomFailed, version.NoVersion, wheels.WheelFailed),
)
"""What ends a command with one line."""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="fill dist/VERSION")
    making.add_argument("--folder", type=Path, help="another folder")
    making.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    making.add_argument("--allow-dirty", action="store_true", help="even if files differ from the commit")
    making.add_argument("--builder", default="urn:slurm-operator:by-hand", help="URI of who makes it")
    attaching = commands.add_parser("assets", help="fill dist/VERSION-assets with the files to attach to a release")
    attaching.add_argument("--folder", type=Path, help="another folder of a release")
    publishing = commands.add_parser("publish", help="push the images of dist/VERSION to the registry in their names")
    publishing.add_argument("--folder", type=Path, help="another folder of a release")
    publishing.add_argument(
        "--index",
        nargs="+",
        metavar="ARCHITECTURE",
        help="give what was pushed for these its names, and print what to sign",
    )
    commands.add_parser("notes", help="print the section of CHANGELOG.md")
    versions = commands.add_parser("version", help="print the version, or write another one to all places")
    versions.add_argument("new", nargs="?")
    supporting = commands.add_parser("support", help="print the table of Kubernetes and Slurm versions")
    supporting.add_argument("--write", action="store_true", help="and write it into docs/releases.md")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "make":
            given = parameters.read()
            if given.is_dirty and not options.allow_dirty:
                raise Refused("files differ from the commit: commit them, or use --allow-dirty (make release DIRTY=1)")
            folder = options.folder or ROOT / "dist" / given.version
            make(given, folder, options.parts, options.builder)
            print(folder)
        elif options.command == "assets":
            folder = options.folder or ROOT / "dist" / version.current()
            target = folder.with_name(f"{folder.name}-assets")
            assets.build(folder, target)
            print(target)
        elif options.command == "publish":
            _publish(options.folder or ROOT / "dist" / version.current(), options.index)
        elif options.command == "notes":
            print(changes.section(changes.CHANGELOG.read_text(encoding="utf-8"), version.current()), end="")
        elif options.command == "support":
            print(support.table())
            if options.write:
                page = support.PAGE.read_text(encoding="utf-8")
                support.PAGE.write_text(support.written(page), encoding="utf-8")
        elif options.new is None:
            print(version.current())
        else:
            print("\n".join(version.write(options.new)))
    except FAILURES as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

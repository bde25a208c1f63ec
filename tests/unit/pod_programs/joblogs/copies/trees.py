"""Folders as dictionaries, and copies of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from slinky_operator.pod_programs.joblogs.copies import places, tree_writer
from slinky_operator.pod_programs.joblogs.copies.events import Event, Limits, Whole
from slinky_operator.pod_programs.joblogs.copies.tree_reader import Reader
from slinky_operator.pod_programs.joblogs.copies.tree_writer import READABLE, Modes, Target

AMPLE = Limits(10**9, 10**4)

Tree = Mapping[str, "Tree | bytes"]


def plant(folder: Path, tree: Tree) -> None:
    for name, content in tree.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            (folder / name).mkdir()
            plant(folder / name, content)


def found(folder: Path) -> Tree:
    return {
        one.name: one.read_bytes() if one.is_file() else found(one)
        for one in sorted(folder.iterdir(), key=lambda one: os.fsencode(one.name))
    }


def events(path: Path, limits: Limits = AMPLE) -> Iterator[Event]:
    return Reader(limits).events(places.existing(str(path.parent), (path.name,)))


def write(given: Iterable[Event], path: Path, limits: Limits = AMPLE, modes: Modes = READABLE) -> Whole:
    parent = places.parent(str(path.parent), (path.name,), modes.folder)
    try:
        return tree_writer.write(given, Target(parent, path.name, "mark"), limits, modes)
    finally:
        os.close(parent)

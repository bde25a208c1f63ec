"""Builds slurmd's image with pyxis and enroot from folders with their sources, and a tree with it and all daemons.

``python -m hack.images.pyxis 26.05 --pyxis FOLDER --enroot FOLDER TREE``. It belongs to no image set: nothing here
fetches these sources. `tests/release/test_pyxis.py` runs jobs in the tree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.images.build import REPOSITORY, ensure
from hack.images.cache import Cache, cache_root
from hack.images.errors import ImagesError
from hack.images.names import REGISTRY, SLURM_SUITES, slurm_set
from hack.images.recipes.slurm import APT_OPTIONS, SlurmRecipe
from hack.images.recipes.slurmd_oci import ADD
from hack.images.tools.buildah import opened
from hack.images.tools.run import Runner
from hack.machine import neutral_start
from hack.machine.progress import say


def build(slurm: str, pyxis: Path, enroot: Path, tree: Path) -> str:
    """Build the image, write the tree; returns the name of the image in buildah's storage.

    Raises
    ------
    ImagesError
        One of its kinds.
    """
    one = slurm_set(slurm)
    ensure([one.name], say)
    cache, image = Cache(cache_root()), f"{REGISTRY}/slurmd-pyxis:{slurm}"
    context = REPOSITORY / "containers" / "pyxis"
    storage = one.suite or one.name
    with (
        cache.lock(storage, say),
        opened(cache.storage(storage), Runner(cache.log("pyxis"), say), fresh=False) as buildah,
    ):
        stages = SlurmRecipe(REPOSITORY, one).build_stages(buildah, ("slurmd", "slurm-all"))
        buildah.build(
            image,
            context / "Dockerfile",
            context,
            arguments={"SLURM": stages["slurmd"], "APT_OPTIONS": APT_OPTIONS},
            contexts={"pyxis": pyxis.resolve(), "enroot": enroot.resolve()},
        )
        tree.mkdir(parents=True)
        with buildah.mounted(stages["slurm-all"]) as daemons, buildah.mounted(image) as own:
            buildah.runner.run("copy the tree", ["cp", "--archive", f"{daemons}/.", str(tree)])
            buildah.runner.run("add pyxis", ["sh", "-ec", ADD, "sh", str(own), str(tree)])
    return image


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, and print the name of the image."""
    parser = argparse.ArgumentParser(prog="python -m hack.images.pyxis", description=__doc__)
    parser.add_argument("slurm", choices=SLURM_SUITES)
    parser.add_argument("--pyxis", type=Path, required=True, help="folder with the sources of pyxis")
    parser.add_argument("--enroot", type=Path, required=True, help="folder with the sources of enroot")
    parser.add_argument("tree", type=Path, help="folder that does not exist yet")
    options = parser.parse_args(arguments)
    try:
        print(build(options.slurm, options.pyxis, options.enroot, options.tree))
    except ImagesError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    neutral_start.begin()
    sys.exit(main())

"""The recipe of the Slurm images: one archive with all daemons, and one tree with all of them for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from hack.images.cache import fingerprint, fingerprint_files
from hack.images.errors import ImagesError
from hack.images.names import REGISTRY, SLURM_IMAGES, TEST_IMAGES, moved_notice, parse_version, slurm_tags
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.machine.progress import step

#: debootstrap does not look at the date either, and a local mirror of unstable is soon past its own.
APT_OPTIONS = "-o Acquire::Check-Valid-Until=false"


@dataclass(frozen=True)
class SlurmRecipe(Recipe):
    """Images of one Slurm version."""

    @property
    def _context(self) -> Path:
        return self.repository / "containers" / "slurm"

    @property
    def _tests(self) -> list[Path]:
        """Build contexts of the images for tests that are made of this version."""
        return [self.repository / "containers" / name for name, slurm in TEST_IMAGES.items() if slurm == self.one.slurm]

    @override
    def inputs(self) -> str:
        """Fingerprint of the build contexts and the list of images."""
        contexts = [self._context, *self._tests]
        return fingerprint([fingerprint_files(self.repository, contexts), *SLURM_IMAGES, APT_OPTIONS])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Build all stages, copy the tree with all daemons, ask it for its version, pack the archive."""
        if self.one.slurm is None:
            raise ImagesError(f"{self.one.name} is no Slurm set")
        progress = buildah.runner.progress
        with step(f"Slurm images from Debian {self.one.suite}", progress):
            stages = self.build_stages(buildah, (*SLURM_IMAGES, "slurm-all"))
            for context in self._tests:
                image = f"{REGISTRY}/{context.name}:{self.one.slurm}"
                buildah.build(image, context / "Dockerfile", context, arguments={"SLURMD": stages["slurmd"]})
                stages[context.name] = image
        rootfs = target / "rootfs"
        with buildah.mounted(stages["slurm-all"]) as tree:
            buildah.runner.run("copy the tree", ["cp", "--archive", str(tree), str(rootfs)])
        actual = read_version(rootfs)
        layout = buildah.folder / f"layout-{self.one.name}"
        names = {
            stages[stage]: [f"{REGISTRY}/{stage}:{tag}" for tag in slurm_tags(self.one.slurm, actual)]
            for stage in stages
            if stage != "slurm-all"
        }
        with step(f"pack {self.one.name}", progress):
            buildah.push_layout(list(names), layout)
            drop_unused(layout)
            write_archive(layout, names, target / f"{self.one.name}.tar")
        notice = moved_notice(self.one.slurm, actual, self.one.suite or "")
        return Built([name for each in names.values() for name in each], actual, [notice] if notice else [])

    def build_stages(self, buildah: Buildah, names: Sequence[str]) -> dict[str, str]:
        """Build stages of the Dockerfile, each as an image; give the name of each image.

        Raises
        ------
        ImagesError
            It is no set of Slurm, or a stage cannot be built.
        """
        if self.one.suite is None or self.one.slurm is None:
            raise ImagesError(f"{self.one.name} is no Slurm set")
        stages = {stage: f"{REGISTRY}/{stage}:{self.one.slurm}" for stage in names}
        packages = f"{REGISTRY}/packages:{self.one.slurm}"
        for stage, image in {"packages": packages, **stages}.items():
            buildah.build(
                image,
                self._context / "Dockerfile",
                self._context,
                target=stage,
                arguments={"DEBIAN_SUITE": self.one.suite, "APT_OPTIONS": APT_OPTIONS},
                # buildah 1.28 cannot bind from a stage it took from its cache; from an image it can.
                images={"packages": packages} if stage != "packages" else {},
            )
        return stages


def read_version(rootfs: Path) -> str:
    """Ask the slurmctld in a tree for its version.

    Raises
    ------
    ImagesError
        It does not run, or says something else.
    """
    command = ["chroot", str(rootfs), "/usr/sbin/slurmctld", "-V"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImagesError(f"slurmctld -V in {rootfs} ended with {done.returncode}: {done.stderr.strip()}")
    return parse_version(done.stdout)

"""The recipe of slurmd's image with an OCI runtime, and of a tree with it and all other daemons for tests.

Both are a layer on what `slurm` builds, whose stages are taken from the cache of layers, or built again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from hack.images.cache import fingerprint
from hack.images.errors import ImagesError
from hack.images.names import REGISTRY, SLURMD_OCI, slurm_set, slurm_tags
from hack.images.recipes.recipe import Built, Recipe
from hack.images.recipes.slurm import APT_OPTIONS, SlurmRecipe, read_version
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.machine.progress import step

ADD = 'tar -C "$1" -cf - . | tar -C "$2" -xf - --numeric-owner --skip-old-files'
"""Adds the files that a tree does not have yet: quicker than to install them once more."""


@dataclass(frozen=True)
class SlurmdOciRecipe(Recipe):
    """slurmd with crun, skopeo, umoci and jq, of one Slurm version."""

    @property
    def _context(self) -> Path:
        return self.repository / "containers" / SLURMD_OCI

    def _base(self) -> SlurmRecipe:
        if self.one.slurm is None:
            raise ImagesError(f"{self.one.name} is no Slurm set")
        return SlurmRecipe(self.repository, slurm_set(self.one.slurm))

    @override
    def inputs(self) -> str:
        """Fingerprint of the build context and of what it is a layer on."""
        own = (self._context / "Dockerfile").read_bytes()
        return fingerprint([own, self._base().inputs(), APT_OPTIONS])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Build the image and the tree, pack the archive."""
        base, slurm = self._base(), self.one.slurm or ""
        image, rootfs = f"{REGISTRY}/{SLURMD_OCI}:{slurm}", target / "rootfs"
        with step(f"{SLURMD_OCI} {slurm} from Debian {self.one.suite}", buildah.runner.progress):
            stages = base.build_stages(buildah, ("slurmd", "slurm-all"))
            arguments = {"SLURMD": stages["slurmd"], "APT_OPTIONS": APT_OPTIONS}
            buildah.build(image, self._context / "Dockerfile", self._context, arguments=arguments)
            with buildah.mounted(stages["slurm-all"]) as daemons, buildah.mounted(image) as runtime:
                buildah.runner.run("copy the tree", ["cp", "--archive", str(daemons), str(rootfs)])
                buildah.runner.run("add the runtime", ["sh", "-ec", ADD, "sh", str(runtime), str(rootfs)])
        actual = read_version(rootfs)
        names = {image: [f"{REGISTRY}/{SLURMD_OCI}:{tag}" for tag in slurm_tags(slurm, actual)]}
        with step(f"pack {self.one.name}", buildah.runner.progress):
            layout = buildah.folder / f"layout-{self.one.name}"
            buildah.push_layout(list(names), layout)
            drop_unused(layout)
            write_archive(layout, names, target / f"{self.one.name}.tar")
        return Built(names[image], actual)

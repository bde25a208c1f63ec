"""The recipe of the MariaDB image, and of its tree for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from hack.images.cache import fingerprint, fingerprint_files
from hack.images.errors import ImagesError
from hack.images.names import MARIADB, REGISTRY
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.machine.progress import step

IMAGE = f"{REGISTRY}/mariadb:{MARIADB}"

#: A local mirror may be past its own date, as for the Slurm images.
_APT_OPTIONS = "-o Acquire::Check-Valid-Until=false"


@dataclass(frozen=True)
class MariadbRecipe(Recipe):
    """The database that slurmdbd keeps its records in."""

    @property
    def _context(self) -> Path:
        return self.repository / "containers" / "mariadb"

    @override
    def inputs(self) -> str:
        """Fingerprint of the build context and the name of the image."""
        return fingerprint([fingerprint_files(self.repository, [self._context]), IMAGE, _APT_OPTIONS])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Build the image, copy its tree, pack the archive."""
        if self.one.suite is None:
            raise ImagesError(f"{self.one.name} has no Debian suite")
        arguments = {"DEBIAN_SUITE": self.one.suite, "APT_OPTIONS": _APT_OPTIONS}
        with step(f"MariaDB image from Debian {self.one.suite}", buildah.runner.progress):
            buildah.build(IMAGE, self._context / "Dockerfile", self._context, arguments=arguments)
        with buildah.mounted(IMAGE) as tree:
            buildah.runner.run("copy the tree", ["cp", "--archive", str(tree), str(target / "rootfs")])
        with step(f"pack {self.one.name}", buildah.runner.progress):
            layout = buildah.folder / f"layout-{self.one.name}"
            buildah.push_layout([IMAGE], layout)
            drop_unused(layout)
            write_archive(layout, {IMAGE: [IMAGE]}, target / f"{self.one.name}.tar")
        return Built([IMAGE])

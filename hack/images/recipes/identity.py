"""The recipe of the images that know users: SSSD, and for tests an LDAP server that it asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from hack.images.cache import fingerprint, fingerprint_files
from hack.images.errors import ImagesError
from hack.images.names import REGISTRY, SSSD
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.machine.progress import step

IMAGES: Final = {"sssd": f"{REGISTRY}/sssd:{SSSD}", "slapd": f"{REGISTRY}/slapd:test"}
"""By their folders in containers/."""

#: A local mirror may be past its own date, as for the Slurm images.
_APT_OPTIONS = "-o Acquire::Check-Valid-Until=false"


@dataclass(frozen=True)
class IdentityRecipe(Recipe):
    """SSSD and slapd."""

    @property
    def _contexts(self) -> list[Path]:
        return [self.repository / "containers" / name for name in IMAGES]

    @override
    def inputs(self) -> str:
        """Fingerprint of the build contexts and the names of the images."""
        return fingerprint([fingerprint_files(self.repository, self._contexts), *IMAGES.values(), _APT_OPTIONS])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Build the images, pack the archive."""
        if self.one.suite is None:
            raise ImagesError(f"{self.one.name} has no Debian suite")
        arguments = {"DEBIAN_SUITE": self.one.suite, "APT_OPTIONS": _APT_OPTIONS}
        with step(f"SSSD and slapd images from Debian {self.one.suite}", buildah.runner.progress):
            for context in self._contexts:
                buildah.build(IMAGES[context.name], context / "Dockerfile", context, arguments=arguments)
        names = list(IMAGES.values())
        with step(f"pack {self.one.name}", buildah.runner.progress):
            layout = buildah.folder / f"layout-{self.one.name}"
            buildah.push_layout(names, layout)
            drop_unused(layout)
            write_archive(layout, {name: [name] for name in names}, target / f"{self.one.name}.tar")
        return Built(names)

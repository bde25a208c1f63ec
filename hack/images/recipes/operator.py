"""The recipes of the operator's own image, and of the one for developing (`skaffold dev --profile=sync`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from hack.images.cache import fingerprint_files
from hack.images.names import REGISTRY, ImageSet
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.machine.progress import step

IMAGE = f"{REGISTRY}/slurm-operator:dev"
SYNC_IMAGE = f"{REGISTRY}/slurm-operator-sync:dev"

#: What the Dockerfile copies.
_CONTEXT = (
    "containers/operator",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements/runtime.txt",
    "slinky_operator",
    "slurm_client",
    "slurm_exporter",
    "api/slinky_api",
)
_SYNC_CONTEXT = (
    "containers/operator-sync",
    "pyproject.toml",
    "requirements/runtime.txt",
    "requirements/sync.txt",
    "slinky_operator",
    "slurm_client",
    "slurm_exporter",
    "api/slinky_api",
)
_CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_CA_DEFAULT = "/etc/ssl/certs/ca-certificates.crt"
#: Settings of the host's pip that say where packages come from. They differ between machines, so they are no input.
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy")


@dataclass(frozen=True)
class OperatorRecipe(Recipe):
    """The operator's image."""

    image: str = IMAGE
    context: Sequence[str] = _CONTEXT
    """What its Dockerfile copies, the folder of that first."""

    @override
    def inputs(self) -> str:
        """Fingerprint of all files the Dockerfile copies."""
        return fingerprint_files(self.repository, [self.repository / name for name in self.context])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Build and pack. The host's certificates and pip settings are lent to the build as secrets."""
        secrets = {"ca": ca_bundle(os.environ)}
        settings = buildah.folder / "pip.conf"
        settings.write_text(pip_settings(_pip_config_list()))
        secrets["pip"] = settings
        with step("operator image", buildah.runner.progress):
            buildah.build(
                self.image,
                self.repository / self.context[0] / "Dockerfile",
                self.repository,
                secrets={name: path for name, path in secrets.items() if path.exists()},
            )
        settings.unlink()
        with step("pack operator", buildah.runner.progress):
            layout = buildah.folder / f"layout-{self.one.name}"
            buildah.push_layout([self.image], layout)
            drop_unused(layout)
            write_archive(layout, {self.image: [self.image]}, target / f"{self.one.name}.tar")
        return Built([self.image])


def sync_recipe(repository: Path, one: ImageSet) -> OperatorRecipe:
    """The image that skaffold copies Python files into."""
    return OperatorRecipe(repository, one, SYNC_IMAGE, _SYNC_CONTEXT)


def ca_bundle(environ: Mapping[str, str]) -> Path:
    """Path of the certificates this machine trusts, which may include a private authority."""
    return Path(next((environ[name] for name in _CA_VARIABLES if environ.get(name)), _CA_DEFAULT))


def _pip_config_list() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # No pip here: then there are no settings of it either.
    return done.stdout if done.returncode == 0 else ""


def pip_settings(config_list: str) -> str:
    """Make a pip.conf out of what ``pip config list`` prints, with only what says where packages come from."""
    lines = ["[global]"]
    for line in config_list.splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2]
        if setting in _PIP_SETTINGS:
            # A list is printed with its line breaks escaped.
            text = value.strip("'").encode().decode("unicode_escape")
            lines.append(f"{setting} = " + "\n    ".join(text.split()))
    return "\n".join(lines) + "\n"

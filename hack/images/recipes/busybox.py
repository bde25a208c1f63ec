"""The recipe of the busybox image: Debian's static busybox and the pause program, nothing else.

One small image serves as sandbox ("pause") image, as helper of the volume provisioner, and for test pods.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from hack.images.cache import fingerprint, fingerprint_files, remove_tree
from hack.images.errors import HostToolMissing
from hack.images.names import REGISTRY
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools.archive import drop_unused, write_archive
from hack.images.tools.buildah import Buildah
from hack.images.tools.run import Runner
from hack.machine import apt, go
from hack.machine.progress import step

IMAGE = f"{REGISTRY}/busybox:1"

_DOCKERFILE = """\
FROM scratch
COPY rootfs/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CMD ["/pause"]
LABEL org.opencontainers.image.title="busybox" \\
    org.opencontainers.image.description="busybox, and a program that waits, for pods of the local Kubernetes" \\
    org.opencontainers.image.licenses="GPL-2.0-only"
"""
_DOWNLOAD = """\
cd "$1"
shift
apt-get "$@" download busybox-static && exit
# There are no package lists, or they are older than the package they point to.
apt-get "$@" update
exec apt-get "$@" download busybox-static
"""
_USERS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
_GROUPS = "root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class BusyboxRecipe(Recipe):
    """The busybox image."""

    @property
    def _pause(self) -> Path:
        return self.repository / "hack" / "images" / "pause"

    @override
    def inputs(self) -> str:
        """Fingerprint of the pause program and what is written into the image."""
        return fingerprint([fingerprint_files(self.repository, [self._pause]), _DOCKERFILE, _USERS, _GROUPS])

    @override
    def build(self, buildah: Buildah, target: Path) -> Built:
        """Compile pause, fetch busybox, lay out the tree, pack it."""
        with step("busybox image", buildah.runner.progress):
            context = buildah.folder / "context"
            remove_tree(context)
            tree = context / "rootfs"
            for name in ("bin", "etc", "root", "tmp", "var/tmp"):
                (tree / name).mkdir(parents=True)
            for name in ("tmp", "var/tmp"):
                (tree / name).chmod(0o1777)
            (tree / "etc/passwd").write_text(_USERS)
            (tree / "etc/group").write_text(_GROUPS)
            (context / "Dockerfile").write_text(_DOCKERFILE)
            _compile_pause(self._pause, tree / "pause", buildah.runner)
            _fetch_busybox(context / "debs", tree, buildah.runner)
            buildah.build(IMAGE, context / "Dockerfile", context)
            layout = buildah.folder / "layout-busybox"
            buildah.push_layout([IMAGE], layout)
            drop_unused(layout)
            write_archive(layout, {IMAGE: [IMAGE]}, target / f"{self.one.name}.tar")
            remove_tree(context)
        return Built([IMAGE])


def _compile_pause(source: Path, target: Path, runner: Runner) -> None:
    compiler = go.find()
    if compiler is None:
        raise HostToolMissing("go", "golang", "the pause program is compiled with Go; install it from go.dev")
    command = [compiler, "build", "-C", str(source), "-trimpath", "-ldflags=-s -w -buildid=", "-o", str(target), "."]
    runner.run("compile pause", command, {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"})


def _fetch_busybox(folder: Path, tree: Path, runner: Runner) -> None:
    """Download Debian's package, without installing it here, and lay out its program with a link per applet."""
    folder.mkdir()
    # apt drops its rights for downloads.
    folder.chmod(0o777)
    runner.run("download busybox", ["sh", "-c", _DOWNLOAD, "sh", str(folder), *apt.OPTIONS])
    (package,) = folder.glob("busybox-static_*.deb")
    unpacked = folder / "unpacked"
    runner.run("unpack busybox", ["dpkg-deb", "--extract", str(package), str(unpacked)])
    program = next(path for path in (unpacked / "bin/busybox", unpacked / "usr/bin/busybox") if path.is_file())
    shutil.copy2(program, tree / "bin/busybox")
    applets = runner.output("list applets", [str(tree / "bin/busybox"), "--list"]).split()
    for applet in applets:
        if applet != "busybox":
            (tree / "bin" / applet).symlink_to("busybox")

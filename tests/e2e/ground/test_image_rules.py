"""The operator's image, and those that only end-to-end tests need, as they were built: labels, sizes, users."""

from __future__ import annotations

import tarfile

import pytest

from hack.images import build
from hack.images.tools import contents
from hack.machine.progress import say
from tests.support import image_rules


@pytest.mark.parametrize("name", ["operator", "identity", "busybox"])
def test_an_image_says_what_it_is_and_is_not_too_large(name: str) -> None:
    image_rules.check(name)


def test_the_operators_image_has_a_list_of_its_packages_and_no_setuid_program() -> None:
    (archive,) = build.ensure(["operator"], say)["operator"]
    with contents.opened(archive) as opened:
        (image,) = opened.images()
        files = opened.files(image)
        members = [member for digest in image.layers for member in _members(opened, digest)]
    assert "var/lib/dpkg/status" in files
    assert "usr/bin/busybox" in files
    assert not [
        path for path in files if path.endswith(("bin/apt-get", "bin/perl", "bin/sudo", "bin/su")) and files[path]
    ]
    assert not [member.name for member in members if member.isreg() and member.mode & 0o6000]


def _members(archive: contents.Archive, digest: str) -> list[tarfile.TarInfo]:
    with archive.layer(digest) as layer:
        return layer.getmembers()

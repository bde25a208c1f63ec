"""What holds for every image: it says what it is, has a bounded size, and runs as root only where it must."""

from __future__ import annotations

from hack.images import build, sizes
from hack.machine.progress import say

ROOT = {
    "busybox": "the volume provisioner's helper makes and removes folders of any owner",
    "login": "sshd opens sessions as users; sackd runs as slurm, by the operator's pod",
    "slurmd": "it starts jobs as their users",
    "slurmd-entrypoint": "as slurmd",
    "slurmd-oci": "as slurmd",
    "sssd": "Debian builds it without support for another user",
}
"""Images whose program runs as root, and why."""


def check(name: str) -> None:
    """Check all images of a set."""
    (archive,) = build.ensure([name], say)[name]
    for size in sizes.measure(archive):
        assert size.unpacked <= size.largest, sizes.table([size])
        assert (size.image.user in {"", "0", "root"}) == (size.name in ROOT), size.name
        labels = {key.removeprefix("org.opencontainers.image."): text for key, text in size.image.labels.items()}
        assert labels["title"] == size.name
        assert labels["description"]
        assert labels["licenses"]

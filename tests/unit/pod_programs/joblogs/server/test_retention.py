"""Old files are deleted only where the kernel knows who has them open."""

from __future__ import annotations

import pytest

from slinky_operator.pod_programs.joblogs.server import retention

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/l
23 22 0:5 / /var/spool/job-output rw,relatime - ext4 /dev/vda rw
24 22 0:6 / /shared rw - nfs4 server:/export rw,vers=4.2
25 22 0:7 / /shared/fast rw master:3 propagate_from:2 - xfs /dev/vdb rw
26 22 0:8 / /with\\040space rw - fuse.glusterfs gluster rw
27 22 0:9 / /twice rw - ext4 /dev/vdc rw
28 27 0:10 / /twice rw - ceph mon:/ rw
a line that is none
"""


@pytest.mark.parametrize(
    ("folder", "kind", "is_local"),
    [
        ("/var/spool/job-output", "ext4", True),
        ("/var/spool/job-output/a", "ext4", True),
        ("/var/spool/job-output-more", "overlay", True),
        ("/shared", "nfs4", False),
        ("/shared/fast/folder", "xfs", True),
        ("/shared/faster", "nfs4", False),
        ("/with space/job-output", "fuse.glusterfs", False),
        ("/twice", "ceph", False),
        ("/", "overlay", True),
    ],
)
def test_the_file_system_of_a_folder(folder: str, kind: str, *, is_local: bool) -> None:
    assert retention.file_system(folder, MOUNTS) == kind
    assert (kind in retention.LOCAL) is is_local


def test_what_is_not_known_is_not_local() -> None:
    assert retention.file_system("/a", "") == ""
    assert "" not in retention.LOCAL


def test_that_of_this_machine_is_found() -> None:
    assert retention.file_system("/proc") == "proc"

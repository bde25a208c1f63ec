"""The real job log server over a small file system: it reports a low volume before it is full, by bytes and inodes."""

from __future__ import annotations

import errno

import pytest

from slinky_operator.slurm.pods.volume_room import FULL
from tests.support import job_logs
from tests.support.small_volume import fill, small
from tests.support.volume_answers import told

MIB = 2**20


def test_a_volume_is_told_before_it_is_full() -> None:
    with job_logs.node() as node, small(node.output, 16):
        calm = told(node, None, is_low=False)
        assert calm.room is not None
        assert calm.room.size == 16 * MIB
        ballast = fill(node.output, MIB)
        low = told(node, calm, is_low=True)
        # What is written is still whole, and served.
        node.write("a.out", b"x" * 100_000)
        assert node.get(node.token("a.out")) == (200, b"x" * 100_000)
        fill(node.output, 0)
        with pytest.raises(OSError, match="No space left") as full:
            node.write("b.out", b"x" * 100_000)
        assert full.value.errno == errno.ENOSPC
        # It serves on a full volume, too.
        assert node.get(node.token("a.out")) == (200, b"x" * 100_000)
        ballast.unlink()
        calm = told(node, low, is_low=False)
        assert calm.room is not None
        assert calm.room.share > FULL


def test_inodes_count_as_bytes_do() -> None:
    with job_logs.node() as node, small(node.output, 16, inodes=200):
        calm = told(node, None, is_low=False)
        for number in range(185):
            (node.output / f"{number}.out").touch()
        low = told(node, calm, is_low=True)
        assert low.room is not None
        assert low.room.left().endswith("% of its 200 inodes left")

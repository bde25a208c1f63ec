"""The machine's settings from before the first kubelet are restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.localkube.host import sysctls
from hack.localkube.host.sysctls import NAMES, originals, put_back


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("0\n")
    return tmp_path


def test_a_first_cluster_records_what_the_machine_has(proc: Path) -> None:
    assert originals([], proc) == dict.fromkeys(NAMES, "0")


def test_a_second_one_does_not_take_the_first_ones_kubelets_for_the_machine(proc: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"nodes": ["node-1"], "sysctls": originals([], proc)}))
    put_back(dict.fromkeys(NAMES, "1"), proc)
    assert originals([record], proc) == dict.fromkeys(NAMES, "0")


def test_they_are_put_back(proc: Path) -> None:
    before = originals([], proc)
    put_back(dict.fromkeys(NAMES, "1"), proc)
    put_back(before, proc)
    assert originals([], proc) == before


def test_every_setting_is_one_of_this_kernel() -> None:
    assert all((sysctls.PROC / name).exists() for name in NAMES)

"""A volume that fills up, with real daemons: it is reported before submissions fail, and running jobs go on.

The agent's own look at a small file system, and the operator's judgement of it; slurmctld and MariaDB are real.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_operator.pod_programs.agent.volumes import room
from slinky_operator.slurm.pods.volume_room import FULL, Room, is_low
from tests.support.daemons import DaemonError
from tests.support.mariadb_host import MYSQL_UID, MariadbHost
from tests.support.slurm_host import SLURM_UID, SlurmHost
from tests.support.small_volume import fill, small

MIB: Final = 2**20


def seen(folder: Path) -> Room:
    """What the operator makes of what the agent sees."""
    found = room(folder)
    return Room(found["size"], found["free"], found["inodes"], found["inodesFree"])


@pytest.mark.parametrize("series", ["24.11", "26.05"])
def test_a_full_state_of_slurmctld_is_told_before_submissions_fail(series: str, tmp_path: Path) -> None:
    host = SlurmHost(ensure(series))
    # Not in the host's folder, which cannot be removed while this is mounted.
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, SLURM_UID, SLURM_UID)
    host.binds["/var/spool/slurmctld"] = state
    with small(state, 16), host:
        host.add_node("w-0", cpus=2)
        running = host.sbatch("sleep 600")
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job runs")
        assert not is_low(seen(state), was_low=False)

        ballast = fill(state, MIB)
        # It is reported, and jobs are still accepted.
        assert is_low(seen(state), was_low=False)
        host.sbatch("true", "--hold")

        def refused() -> bool:
            # slurmctld replaces its files while this one grows: what it has just freed is room for one more job.
            fill(state, 0)
            assert seen(state).share_of_bytes < FULL
            answer = host.run("sbatch", "--hold", "-o", "/dev/null", "--wrap", "true", check=False)
            return answer.returncode != 0 and "I/O error" in answer.stderr

        host.wait_for(refused, "a submission fails")
        assert host.job_state(running) == "RUNNING"

        ballast.unlink()
        assert not is_low(seen(state), was_low=True)
        host.sbatch("true", "--hold")
        assert host.job_state(running) == "RUNNING"


def test_a_full_volume_of_mariadb_is_told_before_it_records_nothing(tmp_path: Path) -> None:
    host = MariadbHost(ensure_mariadb())
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, MYSQL_UID, MYSQL_UID)
    host.binds["/var/lib/mysql"] = data
    with small(data, 400), host:
        host.query("CREATE DATABASE d; CREATE TABLE d.t (a INT, b LONGBLOB) ENGINE=InnoDB;")
        fill(data, 30 * MIB)
        assert is_low(seen(data), was_low=False)
        host.query("INSERT INTO d.t VALUES (1, REPEAT('x', 1000000));")

        fill(data, 0)
        assert seen(data).share_of_bytes < FULL
        # It may end over it.
        with pytest.raises(DaemonError, match="ERROR"):
            host.query("INSERT INTO d.t VALUES (2, REPEAT('x', 9000000));")

"""
Real Slurm daemons with accounting on loopback: what :mod:`tests.support.slurm_host` has, and a slurmdbd.

Each cluster has a database of its own in a MariaDB that is already there (:mod:`tests.support.mariadb_host`). Each
daemon is started when what it needs answers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import override

from hack.machine import ports
from tests.support.slurm_host import SLURM_UID, SlurmHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.mariadb_host import Database

CLUSTER = "test"
"""Name under which slurmdbd keeps what slurmctld tells it."""


@dataclass(kw_only=True)
class AccountingHost(SlurmHost):
    """
    One Slurm cluster with accounting on 127.0.0.1.

    Parameters
    ----------
    database
        Where slurmdbd keeps its records.
    enforce
        ``AccountingStorageEnforce``; jobs of users without an association run where it is empty.
    """

    database: Database
    enforce: str = ""
    slurmrestd_options: Sequence[str] = field(default=("-s", "openapi/slurmctld,openapi/slurmdbd"))

    @override
    def __post_init__(self) -> None:
        (self.slurmdbd_port,) = ports.hold(1)
        super().__post_init__()
        # slurmdbd gives up its rights before it makes this folder, and /run belongs to root here.
        run = self.folder / "run-slurmdbd"
        run.mkdir(exist_ok=True)
        os.chown(run, SLURM_UID, SLURM_UID)
        self.binds["/run/slurmdbd"] = run
        path = self.configuration / "slurmdbd.conf"
        path.write_text(
            f"""\
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.slurmdbd_port}
SlurmUser=slurm
LogFile=/dev/stderr
PidFile=/run/slurmdbd.pid
TrackWCKey=yes
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.database.port}
StorageLoc={self.database.name}
StorageUser={self.database.user}
StoragePass={self.database.password}
"""
        )
        os.chown(path, SLURM_UID, SLURM_UID)
        path.chmod(0o600)

    @override
    def write_conf(self, extra: str = "") -> None:
        super().write_conf(
            f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self.slurmdbd_port}
{f"AccountingStorageEnforce={self.enforce}" if self.enforce else ""}
AccountingStoreFlags=job_comment,job_env,job_extra,job_script
JobAcctGatherType=jobacct_gather/linux
TrackWCKey=yes
{extra}
"""
        )

    @override
    def start_slurmctld(self) -> None:
        """Start slurmdbd if it does not run, then slurmctld, and wait until it has registered with slurmdbd."""
        if "slurmdbd" not in self.daemons:
            self.start_slurmdbd()
        super().start_slurmctld()
        self.wait_for(lambda: self.registered_port() == self.slurmctld_port, "slurmctld registers with slurmdbd")

    def start_slurmdbd(self) -> None:
        """Start slurmdbd and wait until it answers."""
        self.spawn("slurmdbd", ["slurmdbd", "-D"])
        self.wait_for(lambda: self.sacctmgr("show", "cluster", check=False) is not None, "slurmdbd answers")

    def sacctmgr(self, *words: str, check: bool = True) -> list[list[str]] | None:
        """Run sacctmgr as root, without questions, and return the fields of each line; ``None`` where it failed."""
        result = self.run_beside("slurmdbd", "sacctmgr", "-i", "-n", "-P", *words, check=check)
        return None if result.returncode else [line.split("|") for line in result.stdout.splitlines()]

    def registered_port(self) -> int:
        """Port of the slurmctld that slurmdbd knows; 0 if it knows none."""
        (row, *_) = self.sacctmgr("show", "cluster", CLUSTER, "format=ControlPort") or [["0"]]
        return int(row[0] or 0)

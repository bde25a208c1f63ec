"""
A real MariaDB on loopback, from the tree of the image that Clusters use, started by that image's own entrypoint.

One server is enough for all slurmdbds of a test run: each gets a :class:`Database` of its own. What is stored there is
left to slurmdbd, see :mod:`tests.support.accounting_host`.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from hack.machine import ports
from tests.support.daemons import Daemons, accepts, accepts_at

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MYSQL_UID = 999
"""User and group id of the user mysql in the image."""


@dataclass(frozen=True)
class Database:
    """A database, and the account that may do everything in it and nothing elsewhere."""

    port: int
    name: str
    user: str
    password: str


class MariadbHost(Daemons):
    """
    One MariaDB on 127.0.0.1, with fast and careless disks.

    Parameters
    ----------
    root
        The tree, see `hack.images.rootfs.ensure_mariadb`.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root, "mariadb-host-")
        (self.port,) = ports.hold(1)
        self.data = self.folder / "data"
        self.data.mkdir()
        os.chown(self.data, MYSQL_UID, MYSQL_UID)
        self.binds["/var/lib/mysql"] = self.data
        # The tree is shared with other servers, which would meet in its own folder.
        temporary = self.folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        self.binds["/tmp"] = temporary

    def start(self) -> Self:
        """Start the server, lay out its data folder if that is empty, and wait until it accepts connections."""
        try:
            self.spawn(
                "mariadbd",
                [
                    "entrypoint.sh",
                    "mariadbd",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    # /run belongs to root here.
                    "--socket=/var/lib/mysql/socket",
                    "--pid-file=/var/lib/mysql/pid",
                    # Nothing has to survive the machine; what was committed survives a server that is killed.
                    "--innodb-flush-log-at-trx-commit=2",
                    "--innodb-flush-method=nosync",
                    "--innodb-buffer-pool-size=128M",
                ],
                userspec=f"{MYSQL_UID}:{MYSQL_UID}",
            )
            # The socket is there last, and a program beside the server uses it.
            self.wait_for(
                lambda: accepts(self.port) and accepts_at(self.binds["/var/lib/mysql"] / "socket"),
                "MariaDB accepts connections",
            )
        except BaseException:
            self.close()
            raise
        return self

    def database(self, name: str) -> Database:
        """Create an empty database and its account."""
        made = Database(self.port, name, name, secrets.token_hex(16))
        self.query(
            f"CREATE DATABASE `{name}`; CREATE USER `{name}`@`%` IDENTIFIED BY '{made.password}';"
            f"GRANT ALL ON `{name}`.* TO `{name}`@`%`;"
        )
        return made

    def query(self, statements: str) -> str:
        """Execute statements as root and return what is found, one line a row."""
        command = ["mariadb", "--socket=/var/lib/mysql/socket", "--skip-column-names", "--batch"]
        return self.run_beside("mariadbd", *command, stdin=statements).stdout

    def __enter__(self) -> Self:
        """Start the server."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""The image of MariaDB keeps its promises: no passwords, an unprivileged user, data that survive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.images.rootfs import ensure_mariadb
from tests.support.daemons import DaemonError
from tests.support.mariadb_host import MYSQL_UID, MariadbHost

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


def over_tcp(host: MariadbHost, *options: str) -> str:
    command = ["mariadb", "--protocol=tcp", "--host=127.0.0.1", f"--port={host.port}", "--batch", "-N", *options]
    return host.run_beside("mariadbd", *command, "--execute=SELECT CURRENT_USER()").stdout.strip()


@pytest.mark.parametrize("user", ["root", "mysql", ""])
def test_nobody_connects_without_a_password_over_the_network(mariadb: MariadbHost, user: str) -> None:
    with pytest.raises(DaemonError, match="not allowed to connect"):
        over_tcp(mariadb, f"--user={user}")


def test_no_account_of_a_new_server_has_a_password(mariadb: MariadbHost) -> None:
    rows = mariadb.query("SELECT user, plugin, authentication_string FROM mysql.user WHERE user <> 'PUBLIC'")
    accounts = {tuple(line.split("\t")) for line in rows.splitlines()}
    # "invalid" is no hash: no password matches it.
    assert {row[0] for row in accounts} <= {"root", "mysql", "mariadb.sys"}
    assert {row[2] for row in accounts} <= {"invalid", ""}


def test_it_runs_as_an_unprivileged_user(mariadb: MariadbHost) -> None:
    found = [
        (path.parent / "status").read_text()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"--port={mariadb.port}".encode() in path.read_bytes() and b"mariadbd" in path.read_bytes().split(b"\0")[0]
    ]
    users = {line for status in found for line in status.splitlines() if line.startswith("Uid:")}
    assert users == {"Uid:\t" + "\t".join([str(MYSQL_UID)] * 4)}


def test_an_account_reaches_its_own_database_and_no_other(mariadb: MariadbHost) -> None:
    one, other = mariadb.database("one"), mariadb.database("other")
    own = over_tcp(mariadb, f"--user={one.user}", f"--password={one.password}", "--database=one")
    assert own == "one@%"
    with pytest.raises(DaemonError, match="Access denied"):
        over_tcp(mariadb, f"--user={one.user}", f"--password={one.password}", f"--database={other.name}")


def test_settings_are_those_that_slurmdbd_wants(mariadb: MariadbHost) -> None:
    wanted = {"innodb_snapshot_isolation": "OFF", "innodb_lock_wait_timeout": "900", "max_allowed_packet": "16777216"}
    rows = mariadb.query(f"SHOW VARIABLES WHERE variable_name IN ({str(list(wanted))[1:-1]})")
    assert dict(line.split("\t") for line in rows.splitlines()) == wanted


def test_data_survive_a_kill_and_a_start_that_was_ended_half_way_is_repeated() -> None:
    host = MariadbHost(ensure_mariadb())
    try:
        # What is left when the first start is killed before its last step.
        for name in (".being-laid-out", "performance_schema"):
            (host.data / name).mkdir()
            (host.data / name / "half").touch()
            os.chown(host.data / name, MYSQL_UID, MYSQL_UID)
        host.start()
        assert not (host.data / ".being-laid-out").exists()
        # What the image has by itself; tests are careless otherwise.
        host.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        host.query("CREATE DATABASE kept; CREATE TABLE kept.t (n INT); INSERT INTO kept.t VALUES (7)")
        host.stop("mariadbd", kill=True)
        host.start()
        assert host.query("SELECT n FROM kept.t") == "7\n"
    finally:
        host.close()


@pytest.mark.parametrize("marked", [False, True], ids=["restore", "restore after a start that was ended half-way"])
def test_data_of_an_interrupted_restore_are_refused_and_kept(tmp_path: Path, *, marked: bool) -> None:
    host = MariadbHost(ensure_mariadb())
    # A host that does not start removes its own folder.
    host.data = host.binds["/var/lib/mysql"] = tmp_path / "data"
    host.data.mkdir()
    os.chown(host.data, MYSQL_UID, MYSQL_UID)
    files = {"ibdata1": "tables", "slurm_acct_db": "jobs", ".my-backup": "info"}
    try:
        for name, text in files.items():
            (host.data / name).write_text(text)
        if marked:
            (host.data / ".being-laid-out").mkdir()
        (host.data / "lost+found").mkdir()
        refused = r"no folder mysql, as after an interrupted restore:.* slurm_acct_db.* Nothing was changed"
        with pytest.raises(DaemonError, match=refused):
            host.start()
        assert {name: (host.data / name).read_text() for name in files} == files
    finally:
        host.close()


def test_an_empty_volume_may_have_what_its_file_system_has() -> None:
    host = MariadbHost(ensure_mariadb())
    try:
        (host.data / "lost+found").mkdir()
        host.start()
        assert host.query("SELECT 1") == "1\n"
    finally:
        host.close()


def test_data_of_an_older_series_are_upgraded_once_and_those_of_a_newer_one_are_refused() -> None:
    host = MariadbHost(ensure_mariadb())
    info = host.data / "mariadb_upgrade_info"
    try:
        host.start()
        current = info.read_text()
        host.query("CREATE DATABASE kept; CREATE TABLE kept.t (n INT); INSERT INTO kept.t VALUES (7)")
        host.query("DROP TABLE mysql.servers")
        host.stop("mariadbd")
        info.write_text("10.11.2-MariaDB")
        host.start()
        # A table of the system that was missing is there again, and the data are.
        assert host.query("SELECT COUNT(*) FROM mysql.servers") == "0\n"
        assert host.query("SELECT n FROM kept.t") == "7\n"
        assert info.read_text().strip() == current.strip()
        host.stop("mariadbd")
        info.write_text("99.1.0-MariaDB")
        with pytest.raises(DaemonError, match=r"are of MariaDB 99\.1, which .* cannot read"):
            host.start()
    finally:
        host.close()


def test_it_can_write_a_logical_backup(mariadb: MariadbHost) -> None:
    mariadb.query("CREATE DATABASE saved; CREATE TABLE saved.t (n INT); INSERT INTO saved.t VALUES (9)")
    command = ["mariadb-dump", "--socket=/var/lib/mysql/socket", "--single-transaction", "--databases", "saved"]
    dump = mariadb.run_beside("mariadbd", *command).stdout
    mariadb.query("DROP DATABASE saved")
    mariadb.query(dump)
    assert mariadb.query("SELECT n FROM saved.t") == "9\n"

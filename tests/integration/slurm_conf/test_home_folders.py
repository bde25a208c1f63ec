"""Home folders are made by the program of real nodes and login pods, and nothing of a user's is ever given away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_operator.cluster.parts.job_counts import unopened_files
from slinky_operator.slurm.conf import home_folders
from slurm_client import SlurmClient
from tests.support.daemons import Daemons
from tests.support.slurm_host import SlurmHost

ALICE, BOB, LAB = 2001, 2002, 2100
PASSWD = f"""\
alice:x:{ALICE}:{LAB}:Alice:/home/alice:/bin/bash
bob:x:{BOB}:{LAB}:Bob:/home/bob:/bin/bash
carol:x:2003:{LAB}:Carol:/home/lab/deep/carol:/bin/bash
dave:x:2004:{LAB}:Dave:/home/bob/dave:/bin/bash
erin:x:2005:{LAB}:Erin:/home/bob/missing/erin:/bin/bash
frank:x:2006:{LAB}:Frank:/home/../etc/frank:/bin/bash
grace:x:2007:{LAB}:Grace:/var/lib/grace:/bin/bash
"""
IN_CONTAINER = "mount --bind /etc/hosts /etc/hosts"
"""By a file that its kubelet writes the program knows a container; a machine has none such."""


class Homes:
    """A node or login pod with the users above, and the volume with their homes."""

    def __init__(self, daemons: Daemons, folder: Path) -> None:
        self.daemons, self.folder = daemons, folder / "home"
        users = folder / "extrausers"
        for one in (self.folder, users):
            one.mkdir()
            one.chmod(0o755)
        (users / "passwd").write_text(PASSWD)
        (users / "group").write_text(f"lab:x:{LAB}:\n")
        daemons.binds |= {"/home": self.folder, "/var/lib/extrausers": users}

    def owned(self, path: str, uid: int, mode: int = 0o755) -> Path:
        """Make a folder of somebody's."""
        found = self.folder / path
        found.mkdir(parents=True)
        os.chown(found, uid, LAB)
        found.chmod(mode)
        return found

    def shown(self, path: str) -> tuple[int, int, int]:
        """Owner, group and mode of what is there, of a link itself."""
        found = (self.folder / path).lstat()
        return found.st_uid, found.st_gid, found.st_mode & 0o7777


class Program(Homes):
    """The program alone."""

    def __init__(self, daemons: Daemons, folder: Path) -> None:
        super().__init__(daemons, folder)
        program = daemons.folder / "etc" / "make-home.sh"
        program.write_text(home_folders.program("/home"))
        daemons.spawn("container", ["sh", "-c", f"{IN_CONTAINER} && exec sleep infinity"])
        daemons.wait_for(self._is_container, "the container's file is mounted")

    def login(self, user: str, kind: str = "open_session") -> str:
        """Run it as PAM does; returns what it has logged."""
        before = self.log()
        words = ["env", f"PAM_USER={user}", f"PAM_TYPE={kind}", "sh", "/etc/make-home.sh"]
        assert self.daemons.run_beside("container", *words, processes=True).returncode == 0
        return self.log().removeprefix(before)

    def log(self) -> str:
        """What the container has logged."""
        return (self.daemons.folder / "container.log").read_text()

    def _is_container(self) -> bool:
        return " /etc/hosts " in self.daemons.run_beside("container", "cat", "/proc/1/mountinfo").stdout


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program in a container of the newest release."""
    tmp_path.chmod(0o755)
    daemons = Daemons(ensure("26.05"), "homes-")
    try:
        yield Program(daemons, tmp_path)
    finally:
        daemons.close()


def test_a_home_is_made_once_and_is_its_users_alone(program: Program) -> None:
    assert "/home/alice was made for alice" in program.login("alice")
    assert program.shown("alice") == (ALICE, LAB, 0o700)
    assert program.shown("alice/.bashrc")[:2] == (ALICE, LAB)
    (program.folder / "alice").chmod(0o750)
    (program.folder / "alice" / ".bashrc").unlink()
    assert program.login("alice") == ""
    assert program.shown("alice") == (ALICE, LAB, 0o750)
    assert not (program.folder / "alice" / ".bashrc").exists()


def test_missing_folders_on_the_way_are_roots(program: Program) -> None:
    program.login("carol")
    assert program.shown("lab/deep") == (0, 0, 0o755)
    assert program.shown("lab/deep/carol") == (2003, LAB, 0o700)


def test_nothing_of_a_users_is_followed_or_given_away(program: Program) -> None:
    target = program.owned("target", 0, 0o700)
    (program.folder / "alice").symlink_to("/home/target")
    (program.folder / "bob").symlink_to("/home/nowhere")
    (program.folder / "lab").symlink_to("/home/target")
    assert program.login("alice") == ""
    assert "/home/bob is there, and is no folder" in program.login("bob")
    assert "/home/lab is no folder, or a link" in program.login("carol")
    assert program.shown("target") == (0, 0 if target.stat().st_gid == 0 else LAB, 0o700)
    assert not (program.folder / "nowhere").exists()
    assert list(target.iterdir()) == []


def test_a_folder_that_is_there_stays_whoever_owns_it(program: Program) -> None:
    program.owned("alice", BOB, 0o1700)
    program.owned("bob", 0, 0o700)
    assert program.login("alice") == program.login("bob") == ""
    assert (program.shown("alice"), program.shown("bob")) == ((BOB, LAB, 0o1700), (0, LAB, 0o700))


def test_in_a_users_folder_only_the_home_itself_is_made(program: Program) -> None:
    program.owned("bob", BOB)
    program.login("dave")
    assert program.shown("bob/dave") == (2004, LAB, 0o700)
    assert "/home/bob/missing is missing, and the folder above it is not root's" in program.login("erin")
    assert not (program.folder / "bob" / "missing").exists()


def test_a_home_that_was_not_finished_is_finished(program: Program) -> None:
    program.owned("alice", 0, 0o1700)
    program.login("alice")
    assert program.shown("alice") == (ALICE, LAB, 0o700)


def test_other_paths_other_users_and_other_ends_of_a_session_are_left_alone(program: Program) -> None:
    assert "is no plain path" in program.login("frank")
    assert program.login("grace") == program.login("root") == program.login("nobody-knows") == ""
    assert program.login("alice", "close_session") == ""
    assert list(program.folder.iterdir()) == []


def test_a_machine_makes_its_homes_itself(program: Program) -> None:
    program.daemons.run_beside("container", "umount", "/etc/hosts", processes=True)
    assert program.login("alice") == ""
    assert list(program.folder.iterdir()) == []


def test_an_image_without_perl_says_so_and_lets_the_user_in(program: Program) -> None:
    program.daemons.run_beside("container", "mount", "--bind", "/dev/null", "/usr/bin/perl")
    words = ["env", "PAM_USER=alice", "PAM_TYPE=open_session", "sh", "/etc/make-home.sh"]
    run = program.daemons.run_beside("container", *words, processes=True)
    assert (run.returncode, "this image has no perl" in run.stderr) == (0, True)


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Homes]:
    """A node as the operator configures it; slurmctld has the users."""
    tmp_path.chmod(0o755)
    host = SlurmHost(ensure(request.param), extra_conf=str(home_folders.LINE))
    host.write_file(home_folders.PROLOG, home_folders.program("/home"), 0o444)
    homes = Homes(host, tmp_path)
    with host:
        (port,) = ports.hold(1)
        conf = f"Port={port} CPUs=4 RealMemory=256 Features=all"
        server = f"127.0.0.1:{host.slurmctld_port}"
        command = f"{IN_CONTAINER} && exec slurmd -D -Z -N n-0 --conf-server {server} --conf '{conf}'"
        host.start_slurmd("n-0", ["sh", "-c", command])
        yield homes


def test_the_first_job_of_a_user_writes_its_output_into_a_home_that_was_missing(slurm: Homes) -> None:
    host = slurm.daemons
    assert isinstance(host, SlurmHost)
    output = slurm.folder / "alice" / "out"
    as_alice = ("setpriv", f"--reuid={ALICE}", f"--regid={LAB}", "--clear-groups")
    host.run(*as_alice, "sbatch", "--chdir=/home/alice", "--output=out", "--wrap=pwd; id -un")
    host.wait_for(lambda: output.exists() and output.read_text().count("\n") == 2, "the output of the job")
    assert output.read_text().split() == ["/home/alice", "alice"]
    assert slurm.shown("alice") == (ALICE, LAB, 0o700)
    assert "drain" not in host.run("sinfo", "--noheader", "--format=%T").stdout


async def test_a_job_whose_output_cannot_be_opened_is_found_among_states_and_named(slurm: Homes) -> None:
    host = slurm.daemons
    assert isinstance(host, SlurmHost)
    as_alice = ("setpriv", f"--reuid={ALICE}", f"--regid={LAB}", "--clear-groups")
    words = ("sbatch", "--parsable", "--chdir=/home/alice", "--output=/nowhere/out", "--wrap=id")
    job = host.run(*as_alice, *words).stdout.strip()
    host.wait_for(lambda: host.job_state(int(job)) == "FAILED", "the end of the job")
    async with SlurmClient(host.url, host.token()) as client:
        found = unopened_files.failed(await client.job_states(), frozenset())
        assert found.ask == (job,)
        said = unopened_files.words([await client.job(int(job))])
    assert said.startswith(f"Slurm could not open a file of job {job} of alice on n-0 (output /nowhere/out).")

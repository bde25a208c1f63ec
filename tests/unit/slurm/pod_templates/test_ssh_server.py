"""sshd beside a confined slurmd, with programs that stand for both: slurmd never depends on it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slinky_operator.slurm.pod_templates import confinement, ssh_server
from tests.unit.slurm.pod_templates.test_confinement import Container, wait_for

RUNS = "while :; do sleep 0.05 & wait $!; done"

SSHD = """\
if [ "$1" = -t ]; then {checks}; exit $?; fi
exec > /dev/null 2>&1
echo $$ >> {folder}/sshds
{goes_on}"""


class Node(Container):
    """A container with sshd beside slurmd."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.command = confinement.command(ssh_server.prepare(2222), ssh_server.ATTEND)
        self.arguments = ["-D", "-Z", "-N", "compute-7", "--conf", "CPUs=1"]
        self.own, self.secrets = folder / "own", folder / "given-ssh"
        self.modules, self.pam = folder / "security", folder / "pam"
        self.modules.mkdir()
        (self.modules / "pam_slurm_adopt.so").touch()
        self.changes = {
            "/lib/*/security /lib64/security /lib/security /usr/lib/*/security /usr/lib64/security": str(self.modules),
            ssh_server.OWN_FOLDER: str(self.own),
            ssh_server.GIVEN_FOLDER: str(self.secrets),
            "/etc/pam.d/sshd": str(self.pam),
            "/run/sshd": str(folder / "run" / "sshd"),
        }
        self.program("slurmd", f"trap 'exit 7' TERM\ntouch {folder}/started\n{RUNS}")
        self.program("ssh-keygen", 'for last; do :; done; echo made > "$last"')
        self.sshd()

    def sshd(self, goes_on: str = RUNS, checks: str = "true") -> None:
        self.program("sshd", SSHD.format(checks=checks, folder=self.folder, goes_on=goes_on))

    def secret(self, name: str, **files: str) -> None:
        """Mount a Secret, or replace what is in it, as a kubelet does."""
        folder = self.secrets / name
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"..{len(list(folder.iterdir()))}"
        new.mkdir()
        for file, text in files.items():
            (new / file).write_text(text)
            (new / file).chmod(0o400)
            if not (folder / file).is_symlink():
                (folder / file).symlink_to(f"..data/{file}")
        (folder / "..next").symlink_to(new.name)
        (folder / "..next").rename(folder / "..data")

    def sshds(self) -> list[int]:
        """Process ids of the sshds that were started."""
        return [int(line) for line in self.text("sshds").split()]

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """Run it until slurmd gets SIGTERM, which has to work to the last."""
        with self.start() as process:
            try:
                wait_for((self.folder / "started").exists, process)
                yield process
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 7
            finally:
                process.kill()
                for sshd in self.sshds():
                    if Path(f"/proc/{sshd}").exists():
                        os.kill(sshd, signal.SIGKILL)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_session_needs_a_job_on_this_node_and_nobody_gets_in_by_other_ways(node: Node) -> None:
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
    account, *others = node.pam.read_text().splitlines()
    assert account.startswith("account required pam_slurm_adopt.so nodename=compute-7 ")
    denied = {"action_no_jobs=deny", "action_adopt_failure=deny", "action_generic_failure=deny"}
    assert denied <= set(account.split())
    assert others == ["auth required pam_deny.so", "password required pam_deny.so", "session required pam_permit.so"]
    config = (node.own / "sshd_config").read_text().splitlines()
    assert {"Port 2222", "PermitRootLogin no", "PasswordAuthentication no", "UsePAM yes"} <= set(config)
    assert "PerSourcePenalties no" in config
    assert f"AuthorizedKeysFile {node.own}/keys/%u .ssh/authorized_keys" in config


def test_an_older_sshd_gets_no_line_that_it_does_not_know(node: Node) -> None:
    node.sshd(checks='! grep -q PerSource "$3"')
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
    assert "PerSourcePenalties" not in (node.own / "sshd_config").read_text()


def test_keys_are_copied_for_their_users_and_followed(node: Node) -> None:
    node.secret("users", alice="one")
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
        mine = node.own / "keys" / "alice"
        assert mine.read_text() == "one"
        assert stat.S_IMODE(mine.stat().st_mode) == 0o644
        node.secret("users", alice="two", bob="three")
        wait_for((node.own / "keys" / "bob").exists, process)
        assert mine.read_text() == "two"
        wait_for(lambda: len(list(node.own.glob("keys.*"))) == 1, process)
    assert len(node.sshds()) == 1


def test_keys_that_cannot_be_copied_are_copied_later(node: Node) -> None:
    """A key that was taken back must not be accepted for ever because the disk was full at that moment."""
    full = node.folder / "full"
    node.program(
        "cp", f'case $* in *users*) [ ! -e {full} ] || {{ echo >> {full}; exit 1; }};; esac\nexec /bin/cp "$@"'
    )
    node.secret("users", alice="one")
    with node.running() as process:
        mine = node.own / "keys" / "alice"
        wait_for(mine.exists, process)
        full.touch()
        node.secret("users", alice="two")
        wait_for(lambda: node.text("full").count("\n") > 2, process)
        assert mine.read_text() == "one"
        full.unlink()
        wait_for(lambda: mine.read_text() == "two", process)
        wait_for(lambda: len(list(node.own.glob("keys.*"))) == 1, process)
        process.send_signal(signal.SIGTERM)
        assert process.communicate()[0].count("keys of users cannot be copied") == 1


def test_a_secret_of_users_that_is_not_there_is_reported(node: Node) -> None:
    (node.secrets / "users").mkdir(parents=True)
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
        process.send_signal(signal.SIGTERM)
        assert process.communicate()[0].count("the Secret of spec.ssh.authorizedKeysRef does not exist") == 1


def test_host_keys_of_the_secret_are_used_and_are_readable_by_root_only(node: Node) -> None:
    node.secret("host-keys", ssh_host_rsa_key="private", **{"ssh_host_rsa_key.pub": "public"})
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
    config = (node.own / "sshd_config").read_text().splitlines()
    assert [line for line in config if line.startswith("HostKey ")] == [f"HostKey {node.own}/ssh_host_rsa_key"]
    assert stat.S_IMODE((node.own / "ssh_host_rsa_key").stat().st_mode) == 0o600


def test_without_host_keys_a_pod_makes_one_and_says_so(node: Node) -> None:
    with node.running() as process:
        wait_for(lambda: bool(node.sshds()), process)
        process.send_signal(signal.SIGTERM)
        assert "no host keys are mounted" in process.communicate()[0]
    assert f"HostKey {node.own}/ssh_host_ed25519_key\n" in (node.own / "sshd_config").read_text()


def test_an_sshd_that_is_killed_is_started_again_and_slurmd_stays(node: Node) -> None:
    with node.running() as process:
        for count in (1, 2):
            wait_for(lambda count=count: len(node.sshds()) == count, process)  # type: ignore[misc]
            os.kill(node.sshds()[-1], signal.SIGKILL)
        wait_for(lambda: len(node.sshds()) == 3, process)


def test_an_sshd_that_ends_at_once_is_started_ever_less_often(node: Node) -> None:
    node.sshd(goes_on="exit 1")
    rounds = node.folder / "rounds"
    node.changes["  sleep 5 &"] = f"  echo >> {rounds}\n  sleep 5 &"
    with node.running() as process:
        wait_for(lambda: node.text("rounds").count("\n") > 32, process)
    # Pauses of 1, 3, 7 and 15 rounds are between the first five.
    assert len(node.sshds()) <= 6


@pytest.mark.parametrize("program", ["sshd", "ssh-keygen"])
def test_an_image_without_a_program_has_no_logins_and_runs_slurmd(node: Node, program: str) -> None:
    node.program(program, "exit 1")
    if program == "sshd":
        node.changes["command -v sshd > /dev/null"] = "false"
    with node.running() as process:
        process.send_signal(signal.SIGTERM)
        assert "ssh: sshd is not started; slurmd is\n" in process.communicate()[0]
    assert not node.sshds()


def test_without_the_module_nobody_is_let_in(node: Node) -> None:
    (node.modules / "pam_slurm_adopt.so").unlink()
    with node.running() as process:
        process.send_signal(signal.SIGTERM)
        assert "ssh: the image has no pam_slurm_adopt: nobody can log in to this node\n" in process.communicate()[0]
    assert not node.sshds()
    assert not node.pam.exists()


def test_a_file_system_that_cannot_be_written_stops_sshd_alone(node: Node) -> None:
    node.changes["/etc/pam.d/sshd"] = "/dev/full"
    with node.running() as process:
        process.send_signal(signal.SIGTERM)
        assert "sshd is not started; slurmd is" in process.communicate()[0]

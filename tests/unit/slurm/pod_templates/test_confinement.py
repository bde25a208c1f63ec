"""What the first process of a confined slurmd does, with files and programs that stand for the kernel's."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slinky_operator.slurm.pod_templates import confinement, first_process

SLURM_CONF = """\
ClusterName=x
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskPluginParam=none
"""
PATIENCE = 240


class Container:
    """A container as the script sees it: cgroups, mounts, configuration, `mount` and `slurmd`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cgroups, self.run = folder / "cgroup", folder / "run"
        self.given, self.used = folder / "given", folder / "run" / "conf"
        for one in (self.cgroups, self.given, folder / "proc", folder / "bin"):
            one.mkdir()
        self.changes: dict[str, str] = {}
        self.command, self.arguments = confinement.COMMAND, ["-D", "a word"]
        self.configure(SLURM_CONF)
        self.proc("oom_score_adj", "998")
        self.proc("mounts", f"tmpfs {self.cgroups} tmpfs ro 0 0\ncgroup {self.cgroups}/memory cgroup ro,memory 0 0")
        self.program("mount", f'echo "$@" >> {folder}/mounted')
        self.program("slurmd", f'echo "$@" > {folder}/started')

    def proc(self, name: str, text: str) -> None:
        """Set what the kernel says."""
        (self.folder / "proc" / name).write_text(text + "\n")

    def version_2(self, place: str = "0::/", processes: str = "") -> None:
        """Have the one hierarchy."""
        (self.cgroups / "cgroup.controllers").touch()
        (self.cgroups / "cgroup.procs").write_text(processes)
        self.proc("cgroup", place)

    def program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def configure(self, slurm_conf: str, **files: str) -> None:
        """Replace the configuration as a kubelet does."""
        link = self.given / "..data"
        new = self.given / f"..{len(list(self.given.iterdir()))}"
        new.mkdir()
        texts = {"slurm.conf": slurm_conf, "cgroup.conf": "CgroupPlugin=disabled\n", **files}
        for name, text in texts.items():
            (new / name).write_text(text)
            if not (self.given / name).is_symlink():
                (self.given / name).symlink_to(f"..data/{name}")
        (self.folder / "link").symlink_to(new.name)
        (self.folder / "link").rename(link)

    def start(self) -> subprocess.Popen[str]:
        """Run the container's command."""
        shell, option, script, name = self.command
        for text, other in self.changes.items():
            assert text in script
            script = script.replace(text, other)
        assert first_process.CLOSE_RUN in script
        assert first_process.KEEP_LAST_WORDS in script
        script = script.replace("chmod 755 /run ", f"chmod 755 {self.folder} ")
        script = script.replace("/sys/fs/cgroup", str(self.cgroups)).replace("/proc/self/", f"{self.folder}/proc/")
        script = script.replace(confinement.GIVEN_FOLDER, str(self.given))
        script = script.replace(confinement.USED_FOLDER, str(self.used)).replace("sleep 5", "sleep 0.05")
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        command = [shell, option, script, name, *self.arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def ends(self) -> tuple[int, str]:
        """Run it until it ends: exit code and output."""
        process = self.start()
        said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    def text(self, name: str) -> str:
        """A file that was written, or nothing."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_slurmd_gets_its_arguments_and_files_with_other_plugins(container: Container) -> None:
    container.configure(SLURM_CONF, **{"prolog-look": "#!/bin/sh\n"})
    assert container.ends() == (0, "")
    assert container.text("started") == "-D a word\n"
    conf = container.text("run/conf/slurm.conf").splitlines()
    assert conf == [
        "ClusterName=x",
        "TaskPluginParam=none",
        "ProctrackType=proctrack/cgroup",
        "TaskPlugin=task/affinity,task/cgroup",
    ]
    assert container.text("run/conf/prolog-look") == "#!/bin/sh\n"


def test_users_cannot_change_what_is_in_the_folder_of_slurmds(container: Container) -> None:
    container.folder.chmod(0o777)
    assert container.ends()[0] == 0
    assert stat.S_IMODE(container.folder.stat().st_mode) == 0o755


def test_a_cgroup_conf_of_the_users_keeps_what_it_says_about_limits(container: Container) -> None:
    container.configure(SLURM_CONF, **{"cgroup.conf": "cgroupplugin=disabled\nconstraincores = no\nMinRAMSpace=50\n"})
    assert container.ends()[0] == 0
    assert set(container.text("run/conf/cgroup.conf").splitlines()) == {
        "constraincores = no",
        "MinRAMSpace=50",
        "CgroupPlugin=autodetect",
        "IgnoreSystemd=yes",
        "EnableControllers=yes",
        "ConstrainDevices=yes",
        "ConstrainRAMSpace=yes",
    }


def test_the_groups_of_version_1_are_made_writable_one_by_one(container: Container) -> None:
    assert container.ends()[0] == 0
    assert container.text("mounted") == f"-o remount,rw,bind {container.cgroups}/memory\n"


def test_the_group_of_version_2_is_made_writable_and_has_one_for_the_daemons(container: Container) -> None:
    container.version_2()
    assert container.ends()[0] == 0
    assert container.text("mounted") == f"-o remount,rw {container.cgroups}\n"
    assert (container.cgroups / "daemons").is_dir()


def test_without_a_cgroup_namespace_of_its_own_it_touches_nothing(container: Container) -> None:
    container.version_2(place="0::/kubepods/pod1", processes="1\n2\n")
    code, said = container.ends()
    assert code == 1
    assert said == "confinement: the container has no cgroup namespace of its own, but is in /kubepods/pod1\n"
    assert not container.text("mounted")
    assert not (container.cgroups / "daemons").exists()
    assert not container.text("started")


def test_a_process_that_cannot_be_moved_ends_it(container: Container) -> None:
    container.version_2(processes="17\n")
    code, said = container.ends()
    assert (code, said) == (1, f"confinement: {container.cgroups} still holds process 17\n")
    assert not container.text("started")


def test_without_the_right_to_mount_it_says_what_is_missing(container: Container) -> None:
    container.program("mount", "exit 32")
    code, said = container.ends()
    assert code == 1
    assert "the container needs the capability SYS_ADMIN" in said
    assert not container.text("started")


def test_a_score_by_which_slurmstepd_would_be_ended_first_is_lowered(container: Container) -> None:
    assert container.ends()[0] == 0
    assert container.text("proc/oom_score_adj") == "-1000\n"


def test_a_lower_score_stays(container: Container) -> None:
    container.proc("oom_score_adj", "-1000")
    assert container.ends()[0] == 0
    assert container.text("proc/oom_score_adj") == "-1000\n"


def test_a_score_that_cannot_be_lowered_is_refused_with_what_to_do(container: Container) -> None:
    container.changes["> /proc/self/oom_score_adj;"] = "> /dev/full;"
    code, said = container.ends()
    assert code == 1
    assert said.startswith("confinement: oom_score_adj is 998: ")
    assert "QoS class Guaranteed" in said
    assert not container.text("started")


def test_slurmd_is_told_of_new_files(container: Container) -> None:
    container.program(
        "slurmd", f"trap 'echo again >> {container.folder}/told' HUP\nwhile :; do sleep 0.05 & wait $!; done"
    )
    with container.start() as process:
        try:
            wait_for(container.used.is_symlink, process)
            container.configure(SLURM_CONF + "Prolog=new\n")
            wait_for(lambda: "Prolog=new" in container.text("run/conf/slurm.conf"), process)
            wait_for(lambda: "again" in container.text("told"), process)
            # What was there before is gone.
            wait_for(lambda: len(list(container.run.glob("conf.*"))) == 1, process)
        finally:
            process.send_signal(signal.SIGTERM)


def test_it_ends_with_slurmd_and_passes_the_end_on(container: Container) -> None:
    container.program(
        "slurmd",
        f"trap 'exit 7' TERM\ntouch {container.folder}/started\nwhile :; do sleep 0.05 & wait $!; done",
    )
    with container.start() as process:
        wait_for((container.folder / "started").exists, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 7


def test_its_container_is_not_privileged() -> None:
    context = confinement.security_context()
    assert "privileged" not in context
    assert context["capabilities"]["drop"] == ["ALL"]
    assert {"SYS_ADMIN", "SYS_NICE"} <= set(context["capabilities"]["add"])

"""slurmctld's first process, with the shell that the pod has and programs that answer what the real ones do."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.controller_process import HUNG, UNANSWERED, WORDS, first_process

ANSWER = "echo slurm_load_jobs error: Invalid job id specified; exit 1"
SILENCE = "exit 124"
TIMED_OUT = "echo slurm_load_jobs error: Socket timed out on send/recv operation; exit 1"
REFUSED = "echo slurm_load_jobs error: Unable to contact slurm controller; exit 1"
PATIENCE = 240

AS_IN_A_CONTAINER = ("/usr/bin/env", "--default-signal")
"""A runtime starts a container's first process with no signal ignored; tests may be run in the background."""

WORK = "work; exit 124"
"""It is silent, and slurmctld has used the processor meanwhile."""


def as_a_kubelet_gives_it(script: str) -> str:
    """A container's command after the kubelet has put in variables: two dollar signs are one then."""
    return script.replace("$$", "$")


class Container:
    """A folder with the programs of the container, and with a ``/proc`` of its own."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.shell = folder, shell
        for name in ("bin", "etc", "run", "proc"):
            (folder / name).mkdir()
        (folder / "etc" / "slurm.conf").write_text("ClusterName=test\n")
        self.program("sleep", "exec /bin/sleep 0.05")
        # The real process lives for as long as the shell asks for it; what /proc says of it is in files of the test.
        self.program(
            "slurmctld",
            f'/bin/sleep 300 > /dev/null 2>&1 &\npid=$!\necho "$pid" > {folder}/run/slurmctld.pid\n'
            f"mkdir -p {folder}/proc/$pid/task/1 && cp {folder}/thread {folder}/proc/$pid/task/1/comm\n"
            f'echo "$pid (slurmctld) S 1 1 1 0 -1 0 0 0 0 0 50 50 0 0 20 0" > {folder}/proc/$pid/stat\n',
        )
        self.thread("slurmctld")

    def program(self, name: str, text: str) -> None:
        """Put a program of the container in place."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def thread(self, name: str) -> None:
        """Name the thread that slurmctld has."""
        (self.folder / "thread").write_text(f"{name}\n")

    def beside(self, comm: str) -> None:
        """Let another process run."""
        (self.folder / "proc" / "7").mkdir()
        (self.folder / "proc" / "7" / "stat").write_text(f"7 ({comm}) S 1 1 1 0 -1 0 0 0 0 0 50 50 0 0 20 0\n")

    def run(self, *answers: str) -> tuple[int, str]:
        """Run it with answers to its questions, one after the other; then its pod is deleted."""
        cases = "".join(f"{number}) {answer} ;;\n" for number, answer in enumerate(answers, 1))
        self.program(
            "timeout",
            f"""\
work() {{
  echo "$pid (slurmctld) S 1 1 1 0 -1 0 0 0 0 0 $((50 + 100 * count)) 50 0 0 20 0" > {self.folder}/proc/$pid/stat
}}
pid=$(cat {self.folder}/run/slurmctld.pid)
count=$(($(cat {self.folder}/count 2>/dev/null || echo 0) + 1))
echo "$count" > {self.folder}/count
case "$count" in
{cases}
*) kill -TERM "$(cat {self.folder}/shell)" 2>/dev/null; exit 124 ;;
esac""",
        )
        script = as_a_kubelet_gives_it(first_process(patience=2))
        for place in (naming.SLURMCTLD_PID, f"{naming.CONF_FOLDER}/slurm.conf"):
            assert place in script
        script = script.replace(naming.SLURMCTLD_PID, f"{self.folder}/run/slurmctld.pid")
        script = script.replace(naming.CONF_FOLDER, f"{self.folder}/etc").replace("/proc/", f"{self.folder}/proc/")
        with subprocess.Popen(
            [*AS_IN_A_CONTAINER, self.shell, "-c", f"echo $$ > {self.folder}/shell\n{script}"],
            env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(PATIENCE)
            finally:
                # What a container's end would end: the one that asks, and slurmctld.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            assert process.stderr is not None
            return code, process.stderr.read()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path, "dash")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_slurmctld_that_waits_for_itself_is_ended(tmp_path: Path, shell: str) -> None:
    container = Container(tmp_path, shell)
    code, said = container.run(ANSWER, *[SILENCE] * (UNANSWERED - 1), TIMED_OUT)
    assert code == HUNG
    assert said.endswith(f"{WORDS}\n")


def test_one_that_answers_now_and_then_goes_on(container: Container) -> None:
    code, said = container.run(*[ANSWER, *[SILENCE] * (UNANSWERED - 1)] * 2, ANSWER)
    assert (code, said) == (0, "")


@pytest.mark.parametrize("words", [REFUSED, WORK], ids=["refuses", "works"])
def test_one_that_refuses_or_works_goes_on(container: Container, words: str) -> None:
    code, said = container.run(ANSWER, *[words] * 2 * UNANSWERED)
    assert (code, said) == (0, "")


def test_one_that_starts_may_take_as_long_as_that_takes(container: Container) -> None:
    code, said = container.run(*[SILENCE] * 2 * UNANSWERED)
    assert (code, said) == (0, "")


def test_one_that_is_stopped_before_the_first_question_is_ended_too(container: Container) -> None:
    container.thread("sstate")
    code, said = container.run(*[SILENCE] * UNANSWERED)
    assert code == HUNG
    assert WORDS in said


@pytest.mark.parametrize("comm", ["slurmctld", "slurmctld-wlm"])
def test_one_that_reads_its_files_again_goes_on(container: Container, comm: str) -> None:
    container.beside(comm)
    code, said = container.run(ANSWER, *[SILENCE] * 2 * UNANSWERED)
    assert (code, said) == (0, "")


@pytest.mark.parametrize("comm", ["slurmscriptd", "sleep"])
def test_no_other_process_keeps_it(container: Container, comm: str) -> None:
    container.beside(comm)
    assert container.run(ANSWER, *[SILENCE] * UNANSWERED)[0] == HUNG


def test_with_accounting_nobody_asks(container: Container) -> None:
    (container.folder / "etc" / "slurm.conf").write_text(
        "ClusterName=test\naccountingstoragetype = accounting_storage/slurmdbd\n"
    )
    # Its first process looks at this file before each question; its pod is deleted after some of them.
    container.program(
        "sleep",
        f"""\
/bin/sleep 0.01
echo >> {container.folder}/slept
[ "$(wc -l < {container.folder}/slept)" -lt 20 ] || kill -TERM "$(cat {container.folder}/shell)" 2>/dev/null""",
    )
    code, said = container.run(*[SILENCE] * UNANSWERED)
    assert (code, said) == (0, "")
    assert not (container.folder / "count").exists()

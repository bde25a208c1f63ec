"""What the shell above slurmd does, in both shells that images have as /bin/sh, with a program in slurmd's place."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from slinky_operator.slurm.pod_templates import first_process

PATIENCE = 240

AS_IN_A_CONTAINER = ("/usr/bin/env", "--default-signal")
"""A runtime starts a container's first process with no signal ignored; tests may be run in the background."""

LOOP = "touch {folder}/ready\nwhile :; do sleep 0.05 & wait $!; done"


class Container:
    """A container whose image has a slurmd."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.shell = folder, shell
        self.run = folder / "run"
        for one in (self.run, folder / "bin"):
            one.mkdir()

    def program(self, script: str, name: str = "slurmd") -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script.replace('{folder}', str(self.folder))}\n")
        path.chmod(0o755)

    @contextmanager
    def start(self, started: Sequence[str] = first_process.above("slurmd")) -> Iterator[subprocess.Popen[str]]:
        """Run it; whatever is left of it is ended."""
        _, option, script, *program = started
        assert "/dev/termination-log" in script
        script = script.replace("/dev/termination-log", f"{self.folder}/said")
        assert first_process.CLOSE_RUN in script
        script = script.replace("chmod 755 /run ", f"chmod 755 {self.run} ")
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        words = [*AS_IN_A_CONTAINER, self.shell, option, script, *program, "-D", "a word", "$(id)"]
        with subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def ends(self, started: Sequence[str] = first_process.above("slurmd")) -> tuple[int, str]:
        """Run it until it ends: exit code and output."""
        with self.start(started) as process:
            said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said


@pytest.fixture(params=["dash", "bash"])
def container(tmp_path: Path, request: pytest.FixtureRequest) -> Container:
    return Container(tmp_path, request.param)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_slurmd_has_its_arguments_as_they_are(container: Container) -> None:
    container.program('printf "%s\\n" "$@"')
    assert container.ends() == (0, "-D\na word\n$(id)\n")


EITHER = pytest.mark.parametrize(
    "started", [first_process.above("slurmd"), first_process.before(["slurmd", "-v"])], ids=["alone", "template"]
)


@EITHER
def test_users_cannot_change_what_is_in_the_folder_of_slurmds(container: Container, started: Sequence[str]) -> None:
    container.run.chmod(0o777)
    container.program(f"stat -c %a {container.run}")
    assert container.ends(started) == (0, "755\n")


@EITHER
def test_users_cannot_say_why_the_container_has_ended(container: Container, started: Sequence[str]) -> None:
    said = container.folder / "said"
    said.touch()
    said.chmod(0o666)
    container.program(f"stat -c %a {said}")
    assert container.ends(started) == (0, "644\n")


@EITHER
def test_a_container_that_may_not_do_so_starts_all_the_same(container: Container, started: Sequence[str]) -> None:
    container.run.rmdir()
    container.program("exit 0")
    code, said = container.ends(started)
    assert code == 0
    assert "chmod" in said


def test_the_command_of_a_template_is_the_first_process_with_its_words(container: Container) -> None:
    container.program('echo $$; printf "%s\\n" "$@"', "tini")
    with container.start(first_process.before(["tini", "--", "a program", "$(id)"])) as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert said == f"{process.pid}\n--\na program\n$(id)\n-D\na word\n$(id)\n"


def test_a_script_of_a_template_has_its_own_name_and_arguments(container: Container) -> None:
    script = 'printf "%s\\n" "$0" "$@"'
    assert container.ends(first_process.before([container.shell, "-c", script, "mine"])) == (
        0,
        "mine\n-D\na word\n$(id)\n",
    )


@pytest.mark.parametrize("code", [0, 1, 7, 127])
def test_it_ends_as_slurmd_does(container: Container, code: int) -> None:
    container.program(f"exit {code}")
    assert container.ends() == (code, "")


def test_a_slurmd_that_is_killed_shows_in_the_exit_code(container: Container) -> None:
    container.program("kill -KILL $$")
    assert container.ends()[0] == 128 + signal.SIGKILL


@pytest.mark.parametrize("name", ["TERM", "INT", "QUIT"])
def test_a_signal_that_ends_slurmd_ends_both_with_slurmds_code(container: Container, name: str) -> None:
    container.program(f"trap 'echo got {name}; exit 9' {name}\n{LOOP}")
    with container.start() as process:
        wait_for((container.folder / "ready").exists, process)
        process.send_signal(signal.Signals[f"SIG{name}"])
        assert process.communicate(timeout=PATIENCE)[0] == f"got {name}\n"
    assert process.returncode == 9


@pytest.mark.parametrize("name", ["HUP", "USR2"])
def test_a_signal_that_slurmd_goes_on_after_is_passed_on_each_time(container: Container, name: str) -> None:
    container.program(f"trap 'echo again >> {{folder}}/got' {name}\ntrap 'exit 3' TERM\n{LOOP}")
    got = container.folder / "got"
    with container.start() as process:
        wait_for((container.folder / "ready").exists, process)
        for times in (1, 2):
            process.send_signal(signal.Signals[f"SIG{name}"])
            wait_for(lambda times=times: got.exists() and len(got.read_text().split()) == times, process)  # type: ignore[misc]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 3


def test_slurmd_ignores_no_signal_because_of_the_shell(container: Container) -> None:
    container.program("grep SigIgn /proc/self/status")
    code, said = container.ends()
    ignored = int(said.split()[1], 16)
    assert code == 0
    assert not ignored & (1 << (signal.SIGINT - 1) | 1 << (signal.SIGQUIT - 1))


def test_where_env_cannot_undo_that_slurmd_is_the_first_process(container: Container) -> None:
    container.program("echo 'env: unrecognized option' >&2; exit 125", "env")
    container.program("echo $$")
    with container.start() as process:
        assert process.communicate(timeout=PATIENCE)[0] == f"{process.pid}\n"


@pytest.mark.parametrize("make", [first_process.above, lambda name: first_process.before([name, "--"])])
def test_an_image_without_the_program_says_so(container: Container, make: Callable[[str], Sequence[str]]) -> None:
    words = "this image has no program slurmd-of-nobody\n"
    assert container.ends(make("slurmd-of-nobody")) == (127, words)
    # What the kubelet shows in the pod's status.
    assert (container.folder / "said").read_text() == words


def test_slurmd_may_be_a_path(container: Container) -> None:
    container.program("echo here")
    assert container.ends(first_process.above(f"{container.folder}/bin/slurmd")) == (0, "here\n")

"""slurm-rest submit: what scripts and options become, and how refusals are shown."""

from __future__ import annotations

import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.cli.submission import specified
from slurm_client.models import ExitCode
from slurm_client.sync import SyncSlurmClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slurm_client.testing import FakeSlurmrestd
    from tests.unit.slurm_client.cli.conftest import Command

SCRIPT = "#!/bin/bash\n#SBATCH -J line -N 2\n\n# a remark\nsrun hostname\n#SBATCH -n 9\n"


def test_options_count_more_than_lines_and_the_script_stays_as_it_is() -> None:
    spec = specified(SCRIPT, ["--job-name=option", "--time=1-0", "--mem=4G", "--hold"])
    assert (spec.name, spec.nodes, spec.tasks, spec.hold) == ("option", "2", None, True)
    assert (spec.time_limit, spec.memory_per_node_mib) == (timedelta(days=1), 4096)
    assert spec.script == SCRIPT
    assert spec.working_directory == str(Path.cwd())
    assert specified(SCRIPT, ["--chdir=/tmp"]).working_directory == "/tmp"


@pytest.mark.parametrize("script", ["#!/bin/sh", "#!/bin/sh\n#SBATCH -N 1", "#!/bin/sh\n\n"])
def test_options_find_their_place_in_scripts_without_commands(script: str) -> None:
    assert specified(script, ["--job-name=a"]).name == "a"


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=40))
def test_any_text_of_an_option_arrives_as_it_is(text: str) -> None:
    assert specified("#!/bin/sh\n", [f"--comment={text}"]).comment == text


def test_an_option_is_one_line() -> None:
    with pytest.raises(click.UsageError, match="line break"):
        specified("#!/bin/sh\n", ["--comment=a\n#SBATCH --uid=0"])


def test_a_job_is_submitted(
    command: Command, fake_slurm: FakeSlurmrestd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    done = command("submit", "-J", "mine", "-t", "10", "--sbatch=--nice=5", str(script))
    assert (done.code, done.err) == (0, "")
    job = fake_slurm.jobs[int(done.out)]
    assert (job.name, job.time_limit) == ("mine", timedelta(minutes=10))
    (request,) = fake_slurm.calls("post_job_submit")
    assert request.body["job"]["nice"] == 5
    shown = command("submit", "--json", "--wrap", "hostname", "--hold")
    assert fake_slurm.jobs[json.loads(shown.out)["id"]].hold
    monkeypatch.setattr("sys.stdin", io.StringIO(SCRIPT))
    assert fake_slurm.jobs[int(command("submit", "-").out)].name == "line"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of both"),
        (("--wrap", "a", "b.sh"), "one of both"),
        (("--wrap", "a", "--time", "soon"), "--time"),
        (("--wrap", "a", "--sbatch=--nosuch=1"), "nosuch"),
    ],
)
def test_what_sbatch_would_refuse_is_refused(
    command: Command, fake_slurm: FakeSlurmrestd, arguments: tuple[str, ...], said: str
) -> None:
    done = command("submit", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not fake_slurm.jobs


def test_a_script_that_is_not_there_is_one_line(command: Command, tmp_path: Path) -> None:
    done = command("submit", str(tmp_path / "none.sh"))
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)


@contextmanager
def once_waited_for(fake: FakeSlurmrestd, act: Callable[[], object]) -> Iterator[None]:
    """Do something when a job is waited for in the block."""
    left = threading.Event()

    def watch() -> None:
        while not fake.calls("get_jobs_state"):
            if left.is_set():
                return
            time.sleep(0.01)
        act()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(watch)
        try:
            yield
        finally:
            left.set()
        done.result()


@pytest.mark.parametrize(
    ("exit_code", "time_limit", "code", "said"),
    [
        (0, 10, 0, "COMPLETED, exit code 0"),
        (7, 10, 7, "FAILED, exit code 7"),
        (0, 1, 1, "TIMEOUT, exit code 0"),
    ],
)
def test_waiting_ends_with_the_exit_code_of_the_job(
    command: Command, fake_slurm: FakeSlurmrestd, exit_code: int, time_limit: int, code: int, said: str
) -> None:
    fake_slurm.add_node("w-0")
    fake_slurm.let_run("mine", duration=timedelta(minutes=5), exit_code=exit_code)
    with once_waited_for(fake_slurm, lambda: fake_slurm.clock.advance(301)):
        done = command("submit", "-J", "mine", "-t", str(time_limit), "--wait", "--wrap", "true")
    number, end = done.lines
    assert (done.code, done.err, end) == (code, "", f"{number} {said}")


def test_of_an_array_the_highest_exit_code_counts_and_what_failed_is_named(
    command: Command, fake_slurm: FakeSlurmrestd
) -> None:
    fake_slurm.add_node("w-0", cpus=30)

    def end() -> None:
        for job in list(fake_slurm.jobs.values()):
            fake_slurm.world.exit_job(job.id, (job.array_task_id or 0) % 25)

    with once_waited_for(fake_slurm, end):
        done = command("submit", "--array=0-29", "--wait", "--wrap", "true")
    assert done.code == 24
    number, first, *_, more, summary = done.lines
    assert first == f"{number}_1 FAILED, exit code 1"
    assert (len(done.lines), more) == (23, "and 8 more that did not go well")
    assert summary == "2 of 30 parts went well"


def test_a_signal_and_the_end_as_json(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0")

    def end() -> None:
        (job,) = fake_slurm.jobs
        killed = ExitCode(("SIGNALED",), None, 9, "KILL")
        fake_slurm.finish_job(job, "FAILED", exit_code=killed)

    with once_waited_for(fake_slurm, end):
        done = command("submit", "--json", "--wait", "--wrap", "true")
    (ended,) = json.loads(done.out)["ends"]
    assert (done.code, ended["state"], ended["exit_code"]["signal"]) == (137, ["FAILED"], 9)


def test_who_interrupts_the_waiting_is_told_that_the_job_goes_on(
    command: Command, fake_slurm: FakeSlurmrestd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SyncSlurmClient, "wait_job", interrupted)
    done = command("submit", "--wait", "--wrap", "true")
    assert (done.code, done.err.strip()) == (130, f"job {done.out.strip()} goes on")
    assert int(done.out) in fake_slurm.jobs

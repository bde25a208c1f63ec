"""slurm-rest submit: what scripts and options become, and how refusals are shown."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.cli.submission import specified

if TYPE_CHECKING:
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

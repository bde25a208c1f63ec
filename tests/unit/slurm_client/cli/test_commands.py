"""slurm-rest against the fake: what is printed, what is changed, and how commands end."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurm_client import models
from slurm_client.cli.exits import CODES

if TYPE_CHECKING:
    from slurm_client.testing import FakeSlurmrestd
    from tests.unit.slurm_client.cli.conftest import Command

EVIL = "\x1b]0;title\x07\x1b[2K\u202eabc"


@pytest.fixture(autouse=True)
def cluster(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-2", cpus=2, memory=2048, gres="gpu:h100:8", partitions=("all",))
    fake_slurm.add_node("w-10", state="DOWN", reason="fans", memory=1536 * 1024)
    fake_slurm.add_job(nodes=["w-2"], name="hello", user="alice", time_limit=timedelta(days=1, hours=2))
    fake_slurm.add_job(state="PENDING", name="late", user="bob", state_reason="Dependency", required_nodes="w-10")


def test_nodes_are_in_columns_by_number(command: Command) -> None:
    head, first, second = command("nodes").lines
    assert head.split() == ["NAME", "STATE", "CPUS", "MEMORY", "GRES", "PARTITIONS", "REASON"]
    assert first.startswith("w-2 ")
    assert "2/2" in first
    assert "2 GiB" in first
    assert "gpu:h100:8" in first
    assert second.startswith("w-10  DOWN+DYNAMIC_NORM")
    assert "1.5 TiB" in second
    assert "fans" in second
    assert first.index("gpu") == head.index("GRES")
    assert second.index("fans") == head.index("REASON")


def test_nodes_are_filtered(command: Command) -> None:
    assert [line.split()[0] for line in command("nodes", "w-[2,10]").lines] == ["NAME", "w-2", "w-10"]
    assert [line.split()[0] for line in command("nodes", "--state", "down").lines] == ["NAME", "w-10"]
    assert command("nodes", "--partition", "none").code == 5
    missing = command("nodes", "w-2", "w-[3-4]")
    assert (missing.code, missing.out) == (5, "")
    assert missing.err.startswith("slurm-rest: NotFound: no node w-3 (")


def test_jobs_say_where_they_run_and_why_they_wait(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    _, first, second = command("jobs").lines
    assert first.endswith(" w-2")
    assert "1-02:00:00" in first
    assert second.endswith("Dependency: waits for another job")
    fake_slurm.finish_job(1)
    assert [line.split()[0] for line in command("jobs").lines] == ["ID", "2"]
    assert [line.split()[0] for line in command("jobs", "--all").lines] == ["ID", "1", "2"]
    assert [line.split()[0] for line in command("jobs", "--all", "--user", "alice").lines] == ["ID", "1"]
    assert [line.split()[0] for line in command("jobs", "--state", "PENDING").lines] == ["ID", "2"]
    assert [line.split()[0] for line in command("jobs", "1").lines] == ["ID", "1"]
    assert command("jobs", "77").code == 5
    assert command("jobs", "x").code == 2


def test_json_has_the_fields_of_the_models(command: Command) -> None:
    (node, _) = json.loads(command("nodes", "--json").out)
    assert node["name"] == "w-2"
    assert set(node) >= set(models.Node.__dataclass_fields__) - {"raw"}
    assert [job["user"] for job in json.loads(command("jobs", "--json").out)] == ["alice", "bob"]
    assert json.loads(command("partitions", "--json").out)[0]["name"] == "all"
    assert json.loads(command("ping", "--json").out)["parser"] == "v0.0.45"
    assert json.loads(command("diag", "--json").out)["jobs_running"] == 1


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["lines", "JSON"])
def test_nothing_that_others_wrote_reaches_the_terminal_as_it_is(
    command: Command, fake_slurm: FakeSlurmrestd, options: tuple[str, ...]
) -> None:
    fake_slurm.add_node("w-3", state="DOWN", reason=EVIL, gres=EVIL)
    fake_slurm.add_job(nodes=["w-2"], name=EVIL, user=EVIL)
    for name in ("nodes", "jobs"):
        shown = command(name, *options).out
        assert "abc" in shown
        assert all(each.isprintable() or each == "\n" for each in shown)
    assert "\x1b" not in command("jobs", EVIL).err


def test_colours_are_for_terminals(command: Command) -> None:
    assert "\x1b" not in command("nodes").out
    coloured = command("--colour", "nodes").out
    assert "\x1b[31mDOWN+DYNAMIC_NORM\x1b[0m" in coloured
    plain = coloured
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == command("--no-colour", "nodes").out


def test_nodes_are_drained_and_undrained(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    drained = command("drain", "w-[2,10]", "--reason", "by hand")
    assert drained.out == "w-[2,10] drained; 1 jobs are still on them\n"
    assert fake_slurm.nodes["w-2"].reason == "by hand"
    back = command("undrain", "w-[2,10]")
    assert (back.code, back.out) == (1, "w-[2,10] no longer drained; w-10 still down\n")
    assert not fake_slurm.nodes["w-2"].is_drain
    assert command("drain", "w-2").code == 2
    assert command("drain", "nosuch", "--reason", "x").code == 5


def test_jobs_are_cancelled(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    nothing = command("cancel")
    assert nothing.code == 2
    assert "every job" in nothing.err
    assert all(not job.is_finished for job in fake_slurm.jobs.values())
    assert command("cancel", "--user", "nobody").err == "no job matches\n"
    assert command("cancel", "--user", "bob", "--state", "pending").out == "2 cancelled\n"
    assert command("cancel", "1", "--signal", "USR1").out == "1 signalled\n"
    assert fake_slurm.jobs[1].is_running
    both = command("cancel", "1", "77")
    assert (both.code, both.out) == (1, "1 cancelled\n")
    assert both.err.startswith("77 not cancelled: ")


@pytest.mark.parametrize("words", [("nodes",), ("jobs",), ("cancel",), ("history",)], ids=str)
def test_an_unknown_state_is_an_error_with_those_that_there_are(command: Command, words: tuple[str, ...]) -> None:
    done = command(*words, "-t", "PENDNG")
    assert (done.code, done.out) == (2, "")
    assert "'PENDNG'" in done.err
    assert (" DRAIN, " if words == ("nodes",) else " PENDING, ") in done.err


def test_nothing_that_matches_is_said_and_an_unknown_partition_is_an_error(command: Command) -> None:
    for words in (("nodes",), ("jobs",), ("cancel",)):
        wrong = command(*words, "-p", "nosuch")
        assert wrong.code == 5, words
        assert "no partition nosuch; there are all" in wrong.err
    assert command("jobs", "-u", "carol").err == "no job matches\n"
    assert command("jobs", "-t", "failed").err == "no job matches\n"
    assert command("nodes", "-t", "maintenance").err == "no node matches\n"
    # An empty cluster is no mistake.
    assert command("jobs", "--all").err == ""


def test_tasks_are_watched_under_the_number_of_their_array(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_job(nodes=["w-2"], array_job_id=70, array_task_id=3)
    fake_slurm.add_job(state="PENDING", array_job_id=71, array_tasks="0-9")
    lines = command("watch", "jobs", "--once").lines
    assert "there    70_3: RUNNING" in lines
    assert "there    71_[0-9]: PENDING" in lines


def test_slurm_itself_is_shown(command: Command, fake_slurm: FakeSlurmrestd) -> None:
    assert command("ping").lines[-1] == "Slurm 26.05.5, data parser v0.0.45"
    assert "1 running, 1 pending" in command("diag").out
    fake_slurm.controller_up = False
    down = command("ping")
    assert down.code == 3
    assert "DOWN" in down.out
    assert command("watch", "--once").out == "there    w-2: ALLOCATED+DYNAMIC_NORM\nthere    w-10: DOWN+DYNAMIC_NORM\n"
    assert command("watch", "jobs", "--once").lines == ["there    1: RUNNING", "there    2: PENDING"]


def test_each_error_is_one_line_with_its_code(
    command: Command, fake_slurm: FakeSlurmrestd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_slurm.key = b"k" * 32
    refused = command("nodes")
    assert refused.code == 4
    assert refused.err.count("\n") == 1
    assert "--token-file" in refused.err
    key = tmp_path / "jwt.key"
    key.write_bytes(b"k" * 32)
    assert command("--jwt-key", str(key), "nodes").code == 0
    denied = command("--jwt-key", str(key), "--user", "alice", "drain", "w-2", "--reason", "x")
    assert (denied.code, denied.err.count("\n")) == (4, 1)
    fake_slurm.faults.controller_down()
    down = command("--jwt-key", str(key), "nodes")
    assert down.code == 3
    assert "whether slurmctld runs" in down.err
    monkeypatch.setenv("SLURMRESTD_URL", "http://127.0.0.1:1")
    away = command("nodes")
    assert (away.code, away.out, away.err.count("\n")) == (3, "", 1)
    assert "whether slurmrestd runs" in away.err
    assert command("--token-file", str(tmp_path / "none"), "nodes").code == 4
    assert command("--url", "nonsense", "nodes").code == 1
    assert command("nosuch").code == 2


def test_a_unix_socket_and_certificates_are_used(
    command: Command, tmp_path: Path, fake_slurm_options: dict[str, object]
) -> None:
    assert command("--socket", str(tmp_path / "none"), "nodes").code == 3
    assert command("--ca", str(tmp_path / "none"), "nodes").code == 2
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    shown = command("--ca", str(broken), "--url", "https://127.0.0.1:1", "nodes")
    assert (shown.code, shown.err.count("\n")) != (0, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(command: Command, shell: str) -> None:
    assert "_SLURM_REST_COMPLETE" in command("completion", shell).out


def test_a_reader_that_ends_first_is_no_error(fake_slurm: FakeSlurmrestd) -> None:
    for number in range(2000):
        fake_slurm.add_node(f"many-{number}")
    environment = {
        "SLURMRESTD_URL": fake_slurm.url,
        "SLURM_JWT": "any token",
        "PYTHONPATH": str(Path(__file__).parents[4]),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "slurm_client", "nodes"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("NAME")
        process.stdout.close()
        assert process.stderr.read() == ""


def test_every_code_is_in_the_help(command: Command) -> None:
    shown = command("--help").out
    for code in {code for _, code, _ in CODES}:
        assert f"    {code}  " in shown
    assert command("nodes", "--help").code == 0

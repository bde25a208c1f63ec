"""The examples that ask the fake; those that run jobs are in tests/integration/slurm_client/test_examples.py."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.plugin import fake_slurm
from tests.support.examples import EXAMPLES, ROOT, example_running, run_example

__all__ = ["fake_slurm"]

KEY = b"k" * 32


@pytest.fixture
def fake_slurm_options() -> dict[str, Any]:
    return {"key": KEY}


def token(user: str = "root") -> str:
    return jwt.encode({"sun": user, "iat": 1_000_000_000, "exp": 4_000_000_000}, KEY, algorithm="HS256")


def test_every_example_is_listed_and_run_by_a_test() -> None:
    programs = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    listed = set(re.findall(r"^\| \[(\S+)\]\(\1\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    tests = [
        ROOT / "tests/integration/slurm_client/test_examples.py",
        ROOT / "tests/unit/slurm_client/examples" / "test_examples.py",
    ]
    run = set(re.findall(r'"(\w+\.(?:py|ipynb))"', "".join(path.read_text() for path in tests)))
    assert programs == listed
    assert programs <= run


def test_strict_type_checks_of_users_see_every_type(tmp_path: Path) -> None:
    asks = tmp_path / "asks.py"
    asks.write_text(
        "from slurm_client import SyncSlurmClient\nreveal_type(SyncSlurmClient('', '').node('w').partitions)\n"
    )
    # A new cache, and no configuration: what a user has.
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path / 'cache'}", "--config-file="]
    done = subprocess.run(
        [*command, *sorted(map(str, EXAMPLES.glob("*.py"))), str(asks)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert 'Revealed type is "tuple[str, ...]"' in done.stdout.replace("builtins.", "")
    assert done.stdout.splitlines()[-1].startswith("Success"), done.stdout


def test_nodes_and_gpus(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0", tres="cpu=8,gres/gpu=4", tres_used="cpu=2,gres/gpu=1")
    fake_slurm.add_node("w-1", state="DOWN", reason="fans", tres="cpu=8,gres/gpu=4")
    fake_slurm.add_node("login")
    done = run_example("nodes_and_gpus.py", fake_slurm.url, token())
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr
    assert lines[0].startswith("w-0 ")
    assert "1/4 GPUs" in lines[0]
    assert "fans" in lines[1]
    assert lines[2] == "3 of 4 GPUs on usable nodes are free"


def test_watch_nodes(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0")
    fake_slurm.add_node("w-1")
    with example_running("watch_nodes.py", fake_slurm.url, token(), "1") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "2 of 2 nodes are usable\n"
        fake_slurm.update_node("w-1", state="IDLE+DRAIN", reason="fans")
        assert process.stdout.readline().startswith("w-1: unusable (IDLE+DRAIN")
        assert process.wait() == 0


def test_exporter(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0", cpus=4)
    fake_slurm.add_job(nodes=["w-0"], cpus=4)
    with example_running("exporter.py", fake_slurm.url, token(), "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        answer = httpx.get(url)
        assert answer.headers["content-type"] == "text/plain; version=0.0.4"
        assert 'slurm_nodes{state="allocated"} 1' in answer.text
        assert "slurm_cpus_allocated 4" in answer.text
        assert 'slurm_jobs{state="running",partition="all"} 1' in answer.text
        fake_slurm.faults.controller_down()
        assert httpx.get(url).text == "slurm_up 0\n"


def test_portal(fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0")
    job = fake_slurm.add_job(nodes=["w-0"], user="alice")
    with example_running("portal.py", fake_slurm.url, "none", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        alice = {"Authorization": f"Bearer {token('alice')}"}
        assert httpx.get(f"{url}/jobs").status_code == 401
        assert httpx.get(f"{url}/jobs", headers={"Authorization": "Bearer nonsense"}).status_code == 401
        (shown,) = httpx.get(f"{url}/jobs", headers=alice).json()
        assert (shown["id"], shown["user"], shown["state"]) == (job.id, "alice", ["RUNNING"])
        assert httpx.post(f"{url}/cancel?id=99", headers=alice).status_code == 404
        assert httpx.post(f"{url}/cancel?id=x", headers=alice).status_code == 400
        assert httpx.post(f"{url}/cancel?id={job.id}", headers=alice).json() == {"cancelled": str(job.id)}
        assert fake_slurm.jobs[job.id].is_finished
        assert {request.headers["X-SLURM-USER-TOKEN"] for request in fake_slurm.requests} <= {
            token("alice"),
            "nonsense",
        }


def test_the_notebook(
    fake_slurm: FakeSlurmrestd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        fake_slurm.add_job(
            state="PENDING", name=f"late-{number}", user="bob", state_reason="Resources" if number else "Priority"
        )
    monkeypatch.setenv("SLURMRESTD_URL", fake_slurm.url)
    monkeypatch.setenv("SLURM_JWT", token())
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    names: dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, text in enumerate(cells):
        result = eval(compile(text, f"cell {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307 - our own
        assert not inspect.isawaitable(result)
    assert capsys.readouterr().out.splitlines()[:2] == ["     2 Resources", "     1 Priority"]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")

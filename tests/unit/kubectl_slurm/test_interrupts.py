"""Ctrl-C leaves no Token, no job, no drain and no ``kubectl proxy`` behind, and the exit code is 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_slurm import errors
from kubectl_slurm.access import kubectl as access
from kubectl_slurm.access.kubectl import Kubectl
from slurm_client.models import PartitionState
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld

ROOT = Path(__file__).parents[3]
PATIENCE = 120


def interrupted(
    world: KubernetesWorld, when: Callable[[str, bytes], bool], number: signal.Signals = signal.SIGINT
) -> tuple[int, str]:
    """Run `verify` in a process group of its own, and send it a signal after a request; its exit code and errors."""
    reached, answer = threading.Event(), world.answer

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        found = answer(method, path, body, token)
        if when(f"{method} {path}", body):
            reached.set()
        return found

    world.answer = answered  # type: ignore[method-assign]
    command = [sys.executable, "-m", "kubectl_slurm", "verify", "--namespace=slurm", f"--kubectl={world.kubectl}"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'api'}"}
    environment.pop("SLURM_JWT", None)
    process = subprocess.Popen(
        command, cwd=world.folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0
    )
    with process:
        try:
            assert reached.wait(PATIENCE)
            os.killpg(process.pid, number)
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return process.returncode, said.decode()


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_of_verify_is_cancelled(
    world: KubernetesWorld, fake_slurm: FakeSlurmrestd, number: signal.Signals
) -> None:
    fake_slurm.add_node("w-0")

    def waits(request: str, _: bytes) -> bool:
        """The job is there, and something of Slurm is read: its end is waited for."""
        return request.startswith("GET") and "/proxy/" in request and bool(fake_slurm.jobs)

    code, said = interrupted(world, waits, number)
    assert code == errors.INTERRUPTED, said
    assert "Traceback" not in said
    assert {str(job.state) for job in fake_slurm.jobs.values()} == {"CANCELLED"}
    assert world.objects["tokens"] == {}
    assert all(map(is_gone, world.proxies()))


def test_a_node_is_undrained(world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_partition("all", state=PartitionState("DOWN", frozenset()))
    fake_slurm.add_node("w-0")
    code, said = interrupted(world, lambda _, body: b"kubectl slurm verify (dev)" in body)
    assert code == errors.INTERRUPTED, said
    assert not fake_slurm.nodes["w-0"].is_drain
    assert world.objects["tokens"] == {}


def test_what_kubectl_says_is_passed_on_and_fills_no_pipe(run: Run, world: KubernetesWorld) -> None:
    talking = world.kubectl.read_text().replace(
        "echo Starting", "head -c 300000 /dev/zero | tr '\\0' x >&2; echo 'Log in at https://idp' >&2; echo Starting"
    )
    world.kubectl.write_text(talking)
    assert "Log in at https://idp" in run("status")


def test_a_kubectl_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PATIENCE", 0.2)
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho waiting for the login >&2\nexec sleep 600\n")
    program.chmod(0o755)
    with pytest.raises(errors.KubectlFailed, match=r"does not listen after .*waiting for the login"):
        Kubectl(str(program)).proxy().__enter__()


def test_an_error_on_the_way_out_leaves_an_interrupt_one(world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0")
    answer = world.answer

    def refusing(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        if method == "DELETE" and "/tokens/" in path:
            return 500, b'{"kind": "Status", "message": "no quorum"}'
        return answer(method, path, body, token)

    world.answer = refusing  # type: ignore[method-assign]
    code, said = interrupted(world, lambda request, _: request.startswith("GET") and "/jobs" in request)
    assert code == errors.INTERRUPTED, said
    assert "no quorum" in said

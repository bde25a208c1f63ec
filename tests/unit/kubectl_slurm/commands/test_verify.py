"""`verify` proves what it says: an expired token refuses nothing, and drains of others stay."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest

from kubectl_slurm.commands.shared.options import Options
from kubectl_slurm.commands.shared.session import open_session
from kubectl_slurm.commands.verify import command as verify
from kubectl_slurm.rules.verification import Verdict
from slurm_client.models import JobSpec, PartitionState
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import KEY, Run, token_of
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld

REFUSAL = "a user may not drain a node"
DRAIN = "a node is drained and undrained"


@pytest.fixture(autouse=True)
def idle(fake_slurm: FakeSlurmrestd) -> None:
    """A node that is idle, in no partition that takes jobs."""
    fake_slurm.add_partition("all", state=PartitionState("DOWN", frozenset()))
    fake_slurm.add_node("w-0")


def results(text: str) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(text)}


def test_a_refusal_passes_and_a_node_comes_back(run: Run, fake_slurm: FakeSlurmrestd, world: KubernetesWorld) -> None:
    found = results(run("verify", "-o", "json"))
    assert found[REFUSAL]["verdict"] == found[DRAIN]["verdict"] == "passed"
    assert not fake_slurm.nodes["w-0"].is_drain
    assert world.objects["tokens"] == {}


def test_an_expired_token_is_no_refusal(run: Run, world: KubernetesWorld) -> None:
    made: list[str] = []

    def token(user: str) -> str:
        made.append(user)
        late = jwt.encode({"sun": user, "iat": 1_000_000_000, "exp": 1_000_000_300}, KEY, algorithm="HS256")
        return late if made.count("nobody") == 2 and user == "nobody" else token_of(user)

    world.token_of = token
    found = results(run("verify", "-o", "json", code=1))
    assert found[REFUSAL]["verdict"] == "FAILED"
    assert "authentication" in found[REFUSAL]["detail"].lower()


def test_each_check_has_a_token_of_its_own(run: Run, world: KubernetesWorld) -> None:
    made: list[str] = []

    def token(user: str) -> str:
        made.append(user)
        return token_of(user)

    world.token_of = token
    run("verify")
    assert made.count("nobody") == 2
    assert made.count("slurm") == 2


def test_a_drain_of_an_administrator_stays(run: Run, fake_slurm: FakeSlurmrestd, world: KubernetesWorld) -> None:
    answer = world.answer

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        found = answer(method, path, body, token)
        if method == "POST" and b"kubectl slurm verify (dev)" in body:
            fake_slurm.update_node("w-0", reason="new fans")
        return found

    world.answer = answered  # type: ignore[method-assign]
    found = results(run("verify", "-o", "json"))
    assert found[DRAIN]["verdict"] == "skipped"
    assert "new fans" in found[DRAIN]["detail"]
    assert fake_slurm.nodes["w-0"].is_drain


def test_a_node_that_was_drained_since_is_left_alone(
    run: Run, fake_slurm: FakeSlurmrestd, world: KubernetesWorld
) -> None:
    answer = world.answer

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        if path.endswith("selfsubjectreviews"):
            fake_slurm.update_node("w-0", reason="new fans")
            fake_slurm.set_flags("w-0", add=["DRAIN"])
        return answer(method, path, body, token)

    world.answer = answered  # type: ignore[method-assign]
    found = results(run("verify", "-o", "json"))
    assert found[DRAIN]["verdict"] == "skipped"
    assert fake_slurm.nodes["w-0"].reason == "new fans"
    assert fake_slurm.nodes["w-0"].is_drain


def test_a_job_that_does_not_end_is_cancelled(world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    spec = JobSpec(script="#!/bin/sh\ntrue\n", partition="all")
    with open_session(Options(namespace="slurm", kubectl=str(world.kubectl))) as session:
        found = verify._job(session, session.cluster(), "a job runs", spec, timeout=1)
    assert found.verdict is Verdict.FAILED
    assert "after 1 s, and was cancelled" in found.detail
    assert {str(job.state) for job in fake_slurm.jobs.values()} == {"CANCELLED"}


def test_the_environments_token_goes_where_the_user_has_said(
    run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = token_of("alice")
    monkeypatch.setenv("SLURM_JWT", given)
    world.add("clusters", "tenant", {"server": fake_slurm.url})

    def sent(*arguments: str) -> bool:
        fake_slurm.requests.clear()
        run("status", *arguments)
        assert fake_slurm.requests
        return given in {one.headers["X-SLURM-USER-TOKEN"] for one in fake_slurm.requests}

    assert not sent()
    assert sent("--cluster=slurm")
    assert sent(f"--server={fake_slurm.url}")
    assert "$SLURM_JWT goes to it" in " ".join(run("status", "--help").split())

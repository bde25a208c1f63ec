"""Commands of the plugin against an API server and a slurmrestd for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from kubectl_slurm import cli
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.plugin import fake_slurm
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld, running

__all__ = ["fake_slurm"]

KEY = b"k" * 32

Run = Callable[..., str]


@pytest.fixture
def fake_slurm_options() -> dict[str, Any]:
    return {"key": KEY}


@pytest.fixture
def world(tmp_path: Path, fake_slurm: FakeSlurmrestd) -> Iterator[KubernetesWorld]:
    """A namespace with a Cluster ``slurm`` whose slurmrestd is `fake_slurm`."""
    with running(tmp_path) as made:
        grants = [{"usernames": ["slurm", "*"]}]
        made.add("clusters", "slurm", {"auth": {"tokens": grants}}, status={"isReady": True})
        made.services["slurm-restapi"] = fake_slurm.url
        made.token_of = token_of
        # What slurmctld gives where a test has other grants.
        (made.folder / "scontrol").write_text(f"SLURM_JWT={token_of('slurm')}\n")
        yield made


@pytest.fixture
def run(world: KubernetesWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The plugin in the namespace; returns what it prints, and fails at another exit code than ``code``."""
    monkeypatch.delenv("SLURM_JWT", raising=False)
    monkeypatch.setenv("KUBECTL", str(world.kubectl))

    def call(*arguments: str, code: int = 0) -> str:
        found = cli.main([*arguments, "--namespace=slurm"])
        printed = capsys.readouterr()
        assert found == code, printed.out + printed.err
        return printed.out + printed.err

    return call


def token_of(user: str) -> str:
    """A token that `fake_slurm` takes."""
    return jwt.encode({"sun": user, "iat": 1_000_000_000, "exp": 4_000_000_000}, KEY, algorithm="HS256")

"""A fake for each test, and the command line that asks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from slurm_client.cli import main
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.plugin import fake_slurm, fake_slurm_options

__all__ = ["fake_slurm", "fake_slurm_options"]


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Ran]


@pytest.fixture
def command(fake_slurm: FakeSlurmrestd, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run ``slurm-rest`` with some arguments."""
    for name in ("SLURMRESTD_SOCKET", "SLURM_JWT_FILE", "SLURMRESTD_CA", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURMRESTD_URL", fake_slurm.url)
    monkeypatch.setenv("SLURM_JWT", "any token")

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        shown = capsys.readouterr()
        return Ran(code, shown.out, shown.err)

    return run

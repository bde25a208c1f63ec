"""What is generated from the code of the client is up to date."""

from __future__ import annotations

import inspect

import pytest

from hack.client.package.__main__ import main, texts
from slurm_client.client import SlurmClient
from slurm_client.sync import SyncSlurmClient


def test_it_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0, capsys.readouterr().err


def test_it_is_the_same_each_time() -> None:
    assert texts() == texts()


def test_every_call_is_there_with_its_parameters() -> None:
    waited = [name for name in vars(SlurmClient) if not name.startswith("_")]
    waited += [name for base in SlurmClient.__mro__[1:-1] for name in vars(base) if not name.startswith("_")]
    assert "submit_job" in waited
    for name in set(waited) - {"close"}:
        there = inspect.getattr_static(SlurmClient, name)
        mine = inspect.getattr_static(SyncSlurmClient, name)
        assert isinstance(mine, property) is isinstance(there, property), name
        if not isinstance(mine, property):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(there).parameters), name
    assert list(inspect.signature(SyncSlurmClient).parameters) == list(inspect.signature(SlurmClient).parameters)

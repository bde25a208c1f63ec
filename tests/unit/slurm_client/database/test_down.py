"""A slurmdbd that is down behind a slurmrestd that is up, and a token that is refused in the same words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slurm_client import CallableToken, errors
from slurm_client.connection.circuit import Circuit
from tests.unit.slurm_client.database.slurmdbd import DOWN, Slurmdbd, client

REFUSED = {"errors": [{"error_number": 1007, "error": "Protocol authentication error"}]}


async def test_slurmdbd_that_is_down_has_an_error_of_its_own_and_leaves_slurmctld_alone() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/": (502, DOWN)})
    async with client(slurmdbd, circuit=Circuit(threshold=1)) as slurm:
        for call in (slurm.db.ping, slurm.db.diag, slurm.db.clusters, slurm.db.tres, slurm.db.config):
            with pytest.raises(errors.DatabaseDown, match="slurmdbd") as down:
                await call()
            assert isinstance(down.value, errors.Unreachable)
            assert not down.value.sent
        assert slurm.circuit.name == "closed"
        assert len(await slurm.licenses()) == 0
    # Each was asked once: a slurmdbd that is away is not back in a moment.
    assert len([each for each in slurmdbd.requests if "slurmdb/" in each]) == 5


async def test_a_database_that_is_down_behind_slurmdbd_may_have_been_asked() -> None:
    lost = {"errors": [{**DOWN["errors"][0], "source": "slurmdb_jobs_get"}]}
    slurmdbd = Slurmdbd(answers={"slurmdb/": (502, lost)})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.DatabaseDown) as down:
            await slurm.db.tres()
    assert down.value.sent
    assert "GET slurm/licenses/" not in slurmdbd.requests


async def test_a_token_that_slurmdbd_refuses_is_renewed_once() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/": (502, DOWN), "slurm/licenses": (511, REFUSED)})
    tokens = iter(["old", "new", "newer"])

    def renewed() -> str:
        token = next(tokens)
        if token == "new":
            slurmdbd.answers = {"slurmdb/tres": (200, {"TRES": [{"id": 1, "type": "cpu"}]})}
        return token

    async with client(slurmdbd, token=CallableToken(renewed, keep=timedelta(hours=1))) as slurm:
        assert [each.key for each in await slurm.db.tres()] == ["cpu"]
    assert next(tokens) == "newer"


async def test_a_token_that_cannot_be_renewed_is_unauthorized() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/": (502, DOWN), "slurm/licenses": (511, REFUSED)})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.Unauthorized):
            await slurm.db.tres()


async def test_slurmdbd_is_down_where_slurmctld_does_not_say_either() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/": (502, DOWN), "slurm/licenses": (504, {})})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.DatabaseDown):
            await slurm.db.delete_cluster("old")
    assert len([each for each in slurmdbd.requests if "DELETE" in each]) == 1

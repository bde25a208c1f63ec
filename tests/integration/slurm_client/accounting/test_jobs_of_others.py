"""What slurmctld says to a user who wants to change a job of somebody else: real ones and the fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import JobSpec

if TYPE_CHECKING:
    from tests.integration.slurm_client.accounting.clusters import AccountingCluster


async def test_jobs_of_others_are_refused(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm, accounting.client(version, user="daemon") as daemon:
        theirs = (await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))).id
        mine = (await daemon.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))).id
        with pytest.raises(errors.PermissionDenied) as refused:
            await daemon.release_job(theirs)
        assert refused.value.number == 2010
        if version >= "v0.0.42":
            with pytest.raises(errors.PermissionDenied) as refused:
                await daemon.cancel_job(theirs)
            assert refused.value.number == 2002
        own, other = await daemon.cancel_jobs([theirs, mine])
        assert (own.id, own.error) == (str(mine), None)
        assert other.error is not None
        assert (other.id, other.error.number) == (str(theirs), 2002)
        assert (await slurm.job(theirs)).is_pending
        await slurm.cancel_job(theirs)

"""A dry run: everything up to the request that would submit the job, which is shown instead of sent."""

from __future__ import annotations

from slinky_api.conditions import Reason
from slinky_operator.jobs.translation import Submission
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.reports import LONGEST
from slinky_operator.slurmjob.execute.slurm_access import KEY_VALID_S, KeyUnknown, SlurmAccess
from slinky_operator.slurmjob.model import dependencies, requests
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.steps import Plan
from slurm_client.errors import SlurmError


async def ended(access: SlurmAccess, snapshot: Snapshot) -> Plan:
    """What a dry run has come to: its request, or why there is none yet.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    snapshot
        Of a job that nothing keeps from being submitted.
    """
    client, submission, ready = access.client(snapshot.cluster), snapshot.submission, snapshot.dependency
    assert isinstance(submission, Submission)  # noqa: S101 - as planned
    assert isinstance(ready, dependencies.Ready)  # noqa: S101
    if client is None:
        return Plan(wake=RETRY_S)
    try:
        _ = await access.key(snapshot.cluster)
        wanted = requests.wanted(snapshot.job, submission, ready, 0)
        request = await client.submission_request(wanted, timeout=slurm_calls.TIMEOUT)
    except KeyUnknown as error:
        return Plan(wake=KEY_VALID_S, why=(Reason.KEY_PENDING, str(error)))
    except slurm_calls.REFUSALS as error:
        words = f"the job cannot be submitted to this Slurm: {cut(str(error), LONGEST)}"
        # It is tried again like a job that Slurm has refused: another Slurm may answer by then.
        return Plan(why=(Reason.SUBMISSION_REFUSED, words))
    except SlurmError as error:
        words = f"Slurm does not answer: {cut(str(error), LONGEST)}"
        return Plan(wake=RETRY_S, why=(Reason.SLURM_UNREACHABLE, words))
    return requests.ended(requests.shown(request), submission)

"""A dry run: everything up to the request that would submit the job, which is shown instead of sent."""

from __future__ import annotations

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.reports import LONGEST
from slinky_operator.slurmjob.execute.slurm_access import KEY_VALID_S, KeyUnknown, SlurmAccess
from slinky_operator.slurmjob.model import requests
from slinky_operator.slurmjob.model.news import Note
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.steps import Plan, Request
from slurm_client.errors import SlurmError


async def ended(access: SlurmAccess, job: SlurmJob, request: Request) -> Plan:
    """What a dry run has come to: its request, or why there is none yet.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    job
        The SlurmJob.
    request
        What would be submitted of it.
    """
    client = access.client(request.cluster)
    if client is None:
        return Plan(wake=RETRY_S)
    try:
        _ = await access.key(request.cluster)
        wanted = requests.wanted(job, request.submission, request.ready, 0)
        slurm_calls.check_release(client, wanted[0])
        sent = await client.submission_request(wanted if len(wanted) > 1 else wanted[0], timeout=slurm_calls.TIMEOUT)
    except KeyUnknown as error:
        return Plan(news=Note(Reason.KEY_PENDING, str(error)), wake=KEY_VALID_S)
    except slurm_calls.REFUSALS as error:
        why = slurm_calls.told(error, is_external=job.spec.external is not None)
        words = f"the job cannot be submitted to this Slurm: {cut(why, LONGEST)}"
        # It is tried again like a job that Slurm has refused: another Slurm may answer by then.
        return Plan(news=Note(Reason.SUBMISSION_REFUSED, words))
    except SlurmError as error:
        words = f"Slurm does not answer: {cut(str(error), LONGEST)}"
        return Plan(news=Note(Reason.SLURM_UNREACHABLE, words), wake=RETRY_S)
    return requests.ended(requests.shown(sent), request.submission)

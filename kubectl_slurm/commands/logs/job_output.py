"""The output of a job for `logs`: of the log pod of its SlurmJob, else of the node that its script ran on.

On a node the file is read by a command in slurmd's container, as the user of the job: the job chooses the path, and a
link there must show nothing that the job could not read.
"""

from __future__ import annotations

from typing import Final

from kubectl_slurm.access.kinds import PODS, SLURMJOBS
from kubectl_slurm.commands.shared.pods import pod_of_node
from kubectl_slurm.commands.shared.session import Session
from kubectl_slurm.errors import KindMissing, KubectlFailed, MissingRight, ObjectNotFound
from kubectl_slurm.rules.jobs import job as job_rules
from kubectl_slurm.screen.words import clip
from slinky_api import labels
from slurm_client.models import Job

SLURMD: Final = "slurmd"
NOWHERE: Final = frozenset({"", "/dev/null"})
READ: Final = """\
exec timeout 20 setpriv --reuid="$1" --regid="$2" --clear-groups sh -c 'tail -n "$1" -- "$2" | tail -c 4194304' \
sh "$3" "$4"
"""
"""Prints the end of a file as a user; what is no regular file and never ends is given up."""


def output(session: Session, name: str, lines: int, *, stream: str) -> list[str]:
    """The last lines that a job has written.

    Parameters
    ----------
    name
        Number of the job, or of a task of an array: ``4711_3``.
    stream
        ``stdout`` or ``stderr``.

    Raises
    ------
    ObjectNotFound
        It cannot be read, why, and what to do.
    """
    pod = _log_pod(session, name)
    if pod:
        return session.kube.log(pod, stream, lines=lines)
    cluster = session.cluster()
    slurm = session.slurm(cluster)
    found = job_rules.find(name, session.ask(cluster, slurm.jobs).items)
    if not found:
        raise _unreadable(
            session, name, "Slurm does not know it any more, or hides it from this user: its file is where its script"
            " has put it (sacct -j), and --as names a user who may see it"
        )  # fmt: skip
    if len(found) > 1:
        tasks = ", ".join(one.alone for one in found[:5])
        raise _unreadable(session, name, f"it has several parts: name one, such as job/{found[0].alone} ({tasks})")
    return _of_node(session, name, found[0], lines, stream)


def _of_node(session: Session, name: str, job: Job, lines: int, stream: str) -> list[str]:
    path, node = job_rules.output_of(job, stream), job.batch_host or next(iter(job.nodes), "")
    if not node:
        raise _unreadable(session, name, f"it is {job.state} and has not started")
    if path in NOWHERE:
        raise _unreadable(session, name, "it writes no file: it is interactive, or its output goes to /dev/null")
    try:
        pod = pod_of_node(session.kube, node)
    except ObjectNotFound:
        text = f"it is in {clip(path, 200)} on node {node}, which has no pod in namespace {session.kube.namespace!r}"
        raise _unreadable(session, name, f"{text}: read it there") from None
    where = (f"--namespace={session.kube.namespace}", pod.name, f"--container={SLURMD}")
    reader = (str(job.user_id or 0), str(job.group_id or 0), str(lines), path)
    try:
        return session.kubectl.run("exec", *where, "--", "sh", "-c", READ, "sh", *reader).splitlines()
    except KubectlFailed as error:
        raise _unreadable(session, name, f"{clip(path, 200)} in pod {pod.name}: {error}") from error


def _log_pod(session: Session, name: str) -> str:
    """The pod of a SlurmJob that shows the output of its job; empty if there is none."""
    try:
        jobs = session.kube.objects(SLURMJOBS)
    except (KindMissing, MissingRight):
        # The roles for SlurmJobs come with the chart slurm-jobs; any job's file may be read without them.
        return ""
    uids = {one["metadata"]["uid"] for one in jobs if str((one.get("status") or {}).get("jobId")) == name}
    if not uids:
        return ""
    for pod in session.kube.objects(PODS, selector=f"{labels.LABEL_JOB_LOGS}=true"):
        owners = {one.get("uid") for one in pod["metadata"].get("ownerReferences") or ()}
        streams = {one.get("name") for one in (pod.get("spec") or {}).get("containers") or ()}
        if not uids.isdisjoint(owners) and "stdout" in streams:
            return str(pod["metadata"]["name"])
    return ""


def _unreadable(session: Session, name: str, why: str) -> ObjectNotFound:
    about = f"kubectl slurm logs job/{name} --about{session.options.where}"
    return ObjectNotFound(f"the output of job {name} cannot be read: {why}. What slurmctld says about it: {about}")

"""``kubectl slurm logs``: logs of Slurm's daemons, and what they say of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from kubectl_slurm.access.kinds import PODS
from kubectl_slurm.access.kubernetes import Kubernetes
from kubectl_slurm.commands.logs.job_output import output
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.pods import pod_of_node
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.errors import KubernetesError, MissingRight, ObjectNotFound
from slinky_api import labels
from slinky_api.containers import components

MOST_LINES = 10_000


@click.command()
@click.argument("thing", metavar="DAEMON|node/NAME|job/ID", default="slurmctld")
@click.option("--lines", type=click.IntRange(1, MOST_LINES), default=100, show_default=True, help="The last lines.")
@click.option("--stderr", "stream", flag_value="stderr", help="Of a job, what goes to its standard error.")
@click.option("--about", is_flag=True, help="Of a job, the lines of slurmctld that name it.")
@shared
def logs(options: Options, *, thing: str, lines: int, stream: str | None, about: bool) -> None:
    """Show logs of a daemon or a node, or the output of a job.

    DAEMON is one of the Cluster, such as slurmctld or slurmdbd; a wrong one is answered with their names. Of a node
    the logs are those of its slurmd.

    The output of a job is read from the log pod of its SlurmJob, or from the file on the node where its script ran, as
    the user of the job. Where it cannot be read, one sentence says why.

    \b
    kubectl slurm logs
    kubectl slurm logs node/gpu-0 --lines 500
    kubectl slurm logs job/4711 --namespace slurm
    kubectl slurm logs job/4711 --about
    """  # noqa: D301 - as in `status`
    kind, _, name = thing.partition("/")
    with open_session(options) as session:
        if kind == "node" and name:
            found = list(session.kube.log(pod_of_node(session.kube, name).name, "slurmd", lines=lines))
        elif kind == "job" and re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", name) and not about:
            found = output(session, name, lines, stream=stream or "stdout")
        elif kind == "job" and re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", name):
            number = re.compile(rf"(?<![0-9])(JobId|job|JobID)[=_ ]{re.escape(name)}(?![0-9])", re.IGNORECASE)
            every = of_daemon(session.kube, session.cluster().name, "slurmctld", MOST_LINES)
            found = [line for line in every if number.search(line)][-lines:]
            if not found:
                raise ObjectNotFound(f"the last {MOST_LINES} lines of slurmctld name no job {name}")
        elif thing in components():
            found = list(of_daemon(session.kube, _cluster(session), thing, lines))
        else:
            raise click.UsageError(f"{thing!r:.80} is none of {', '.join(components())}, node/NAME, job/ID")
        options.printer.json({"lines": found}) if options.is_json else options.printer.lines(found)


def of_daemon(kube: Kubernetes, cluster: str, container: str, lines: int) -> Iterator[str]:
    """The last lines of each pod of a daemon, under the pod's name if there are several.

    A pod that cannot be read has a line that says why, and does not hide the others.

    Raises
    ------
    ObjectNotFound
        It has no pod.
    KubernetesError
        None of its pods can be read.
    """
    component = components()[container]
    selector = f"{labels.LABEL_CLUSTER_NAME}={cluster},{labels.LABEL_APP_COMPONENT}={component}"
    pods = [str(pod["metadata"]["name"]) for pod in kube.objects(PODS, selector=selector, most=20)]
    if not pods:
        raise ObjectNotFound(f"Cluster {cluster!r} has no pod of {container} in namespace {kube.namespace!r}")
    failed = 0
    for pod in pods:
        if len(pods) > 1:
            yield f"==> {pod} <=="
        try:
            yield from kube.log(pod, container, lines=lines)
        except MissingRight:
            raise
        except KubernetesError as error:
            failed += 1
            if failed == len(pods):
                raise
            yield f"{pod} cannot be read: {error}"


def _cluster(session: Session) -> str:
    return session.cluster().name

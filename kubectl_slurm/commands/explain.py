"""``kubectl slurm explain``: why a job waits, or a node takes none."""

from __future__ import annotations

import click

from kubectl_slurm.access import slurmrestd
from kubectl_slurm.access.kinds import NODESETS
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.pods import pod_of_node
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.errors import MissingRight, ObjectNotFound
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import NodeSetFacts, PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import job as job_rules
from kubectl_slurm.rules.nodes import node as node_rules
from kubectl_slurm.screen.words import clip


@click.command()
@click.argument("thing", metavar="job/ID|node/NAME")
@shared
def explain(options: Options, *, thing: str) -> None:
    """Say in words why a job waits, or why a node takes no job.

    Of a job: which limit holds it back and who uses it, which nodes miss by one thing, which jobs are before it. It
    works for every job, however it was submitted. Of a node: who took it out of service, its pod, its jobs.

    \b
    kubectl slurm explain job/4711
    kubectl slurm explain job/4711_3
    kubectl slurm explain node/gpu-0 --namespace slurm
    """  # noqa: D301 - as in `status`
    kind, slash, name = thing.partition("/")
    if not slash:
        kind, name = ("job", thing) if thing[:1].isdecimal() else ("node", thing)
    if kind not in {"job", "node"} or not name:
        raise click.UsageError(f"{thing!r:.80} is neither job/ID nor node/NAME")
    with open_session(options) as session:
        cluster = session.cluster()
        slurm = session.slurm(cluster)
        seen = session.ask(cluster, lambda: slurmrestd.picture(slurm, session.now(), accounting=True))
        if kind == "job":
            _job(options, name, seen)
        else:
            _node(session, options, name, seen)


def _job(options: Options, name: str, seen: SlurmPicture) -> None:
    found = job_rules.find(name, seen.jobs)
    if not found:
        raise ObjectNotFound(
            f"Slurm knows no job {clip(name, 40)!r}: it ended long ago (sacct -j has it), has another number, or"
            " is hidden from this user (--as a user who may see it)"
        )
    screen = job_rules.screen(found, seen)
    options.printer.json({"jobs": found, "explained": screen}) if options.is_json else options.printer.show(screen)


def _node(session: Session, options: Options, name: str, seen: SlurmPicture) -> None:
    pod, nodeset, hidden = _pod(session, name)
    if pod is None and not hidden and all(one.name != name for one in seen.nodes):
        raise ObjectNotFound(f"neither Slurm nor namespace {session.kube.namespace!r} has a node {clip(name, 60)!r}")
    screen = node_rules.screen(name, seen, pod, nodeset, hidden=hidden, where=options.where)
    if options.is_json:
        node = next((one for one in seen.nodes if one.name == name), None)
        options.printer.json({"node": node, "pod": pod, "explained": screen})
        return
    options.printer.show(screen)


def _pod(session: Session, name: str) -> tuple[PodFacts | None, NodeSetFacts | None, str]:
    """The pod of a node, and its NodeSet."""
    try:
        pod = pod_of_node(session.kube, name)
        if not pod.nodeset:
            return pod, None, ""
        return pod, reading.nodeset(session.kube.get(NODESETS, pod.nodeset)), ""
    except ObjectNotFound:
        return None, None, ""
    except MissingRight as error:
        return None, None, str(error)

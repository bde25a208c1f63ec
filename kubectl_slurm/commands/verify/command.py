"""``kubectl slurm verify``: a conformance run that ends in a table and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

import click

from kubectl_slurm.access import slurmrestd
from kubectl_slurm.access.kinds import NODESETS, PODS
from kubectl_slurm.access.tokens import ADMINISTRATOR, READER
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.commands.verify import kubernetes as verify_kubernetes
from kubectl_slurm.errors import FAILED, OK, PluginError
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts, PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import verification
from kubectl_slurm.rules.nodes import drains, service
from kubectl_slurm.rules.verification import Result, Verdict
from kubectl_slurm.screen.words import clip
from slinky_api import labels
from slurm_client import SlurmError, SyncSlurmClient
from slurm_client.errors import NotFinished, PermissionDenied
from slurm_client.models import FinishedJob, JobSpec

WITH_ONE_TOKEN: Final = 50
"""Seconds of waiting with one token: Tokens are good for a minute at least."""


@click.command()
@click.option("--timeout", type=click.IntRange(5, 3600), default=60, show_default=True, help="Seconds for each check.")
@click.option("--cordon-node", default="", metavar="NODE", help="A Kubernetes node to cordon for a moment.")
@click.option("--other-namespace", default="", metavar="NAME", help="A namespace that must get no token.")
@shared
def verify(options: Options, *, timeout: int, cordon_node: str, other_namespace: str) -> int:
    """Check that a Cluster works as promised, with small jobs.

    Names, users, jobs, isolation, cordons, drains and refusals are checked. It submits small jobs as the user of
    --as (slurm without one), one for each partition with an idle node, drains and cordons an idle node for a
    moment, looks up a user in all daemons, and tries what must be refused. Exit code 1 if a check fails. A check
    that cannot be made is skipped and says why.

    \b
    kubectl slurm verify --namespace slurm
    kubectl slurm verify --as alice -o json
    kubectl slurm verify --cordon-node host-7 --other-namespace team-b
    """  # noqa: D301 - as in `status`
    with open_session(options) as session:
        cluster = session.cluster()
        results = list(_results(session, cluster, Asked(timeout, cordon_node, other_namespace)))
        if options.is_json:
            options.printer.json(results)
        else:
            options.printer.show(verification.screen(results))
        return OK if verification.passed(results) else FAILED


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user has asked for."""

    timeout: int
    """Seconds for each check."""

    cordon_node: str = ""
    other_namespace: str = ""


def _results(session: Session, cluster: ClusterFacts, asked: Asked) -> Iterator[Result]:
    ready = Verdict.PASSED if cluster.ready else Verdict.FAILED
    yield Result("the operator reports the Cluster as ready", ready, cluster.summary)
    slurm = session.slurm(cluster)
    seen = session.ask(cluster, lambda: slurmrestd.picture(slurm, session.now(), accounting=True))
    pings = session.ask(cluster, slurm.ping)
    up = any(ping.responding for ping in pings)
    yield Result("slurmctld answers", Verdict.PASSED if up else Verdict.FAILED, seen.version)
    selector = f"{labels.LABEL_CLUSTER_NAME}={cluster.name},{labels.LABEL_DAEMON}=slurmd"
    pods = [reading.pod(obj) for obj in session.kube.objects(PODS, selector=selector)]
    yield verification.names(seen.nodes, pods)
    confined = {one.name for one in map(reading.nodeset, session.kube.objects(NODESETS)) if one.confined}
    places = {pod.slurm_node: pod.nodeset for pod in pods if pod.nodeset in confined}
    yield verify_kubernetes.users(session, cluster, pods, session.options.slurm_user or ADMINISTRATOR)
    yield from _jobs(session, cluster, seen, places, asked.timeout)
    yield _refused(session, cluster, seen)
    yield from _drain(session, cluster, seen, pods, asked.timeout)

    def drained() -> Mapping[str, bool]:
        with session.connected(cluster) as fresh:
            return {node.name: node.is_drain for node in fresh.nodes().items}

    yield verify_kubernetes.cordoned_pod(session, pods, verification.idle(seen), drained, asked.timeout)
    yield verify_kubernetes.cordoned_node(session, pods, asked.cordon_node, drained, asked.timeout)
    yield verify_kubernetes.token_elsewhere(session, cluster, asked.other_namespace)


def _jobs(
    session: Session, cluster: ClusterFacts, seen: SlurmPicture, confined: Mapping[str, str], timeout: int
) -> Iterator[Result]:
    """Jobs of the user of --as; without one of slurm, since Slurm takes none of nobody."""
    found = verification.partitions(seen)
    try:
        with session.connected(cluster, ADMINISTRATOR):
            pass
    except PluginError as error:
        yield Result("a job runs", Verdict.SKIPPED, str(error))
        return
    if not found:
        yield Result("a job runs", Verdict.SKIPPED, "no partition has an idle node")
        return
    run = partial(_job, session, cluster, timeout=timeout)
    for name in found:
        yield run(f"a job runs in partition {clip(name, 40)}", JobSpec(script=_script("true"), partition=name))
    spec = JobSpec(script=_script(verification.IDENTITY), partition=found[0])
    yield run("the node knows the job's user by the same name", spec)
    title, place = "a job sees no more CPUs than it has", verification.confined_partition(seen, confined)
    if place:
        spec = JobSpec(script=_script(verification.CORES), partition=place, cpus_per_task=1)
        yield run(title, spec)
    else:
        yield Result(title, Verdict.SKIPPED, "no partition has only nodes of NodeSets with confinement: Constrain")
    gpus = verification.gpu_partition(seen)
    title = "a job with one GPU sees one"
    if not gpus:
        yield Result(title, Verdict.SKIPPED, verification.without_gpu(seen))
        return
    spec = JobSpec(script=_script(verification.GPUS), partition=gpus, tres_per_node="gres/gpu:1")
    yield run(title, spec)
    title, place = "a job opens no GPU of others", verification.confined_gpu_partition(seen, confined)
    if not place:
        text = "no partition with GPUs has only nodes of NodeSets with confinement: Constrain"
        yield Result(title, Verdict.SKIPPED, text)
        return
    spec = JobSpec(script=_script(verification.DEVICES), partition=place, tres_per_node="gres/gpu:1")
    yield run(title, spec)


def _script(check: str) -> str:
    return f"#!/bin/sh\n{check}\n"


def _job(session: Session, cluster: ClusterFacts, title: str, spec: JobSpec, *, timeout: int) -> Result:
    """Submit a job and wait for its end; one that does not end, or that nobody waits for any more, is cancelled."""
    limit = timedelta(minutes=1)
    whole = replace(
        spec, name="kubectl-slurm-verify", nodes="1", tasks=1, time_limit=limit, standard_output="/dev/null"
    )
    try:
        with session.connected(cluster, ADMINISTRATOR) as slurm:
            number = slurm.submit_job(whole).id
    except (SlurmError, PluginError) as error:
        return Result(title, Verdict.FAILED, str(error))
    ended: FinishedJob | None = None
    try:
        ended = _ended(session, cluster, number, timeout)
        if ended is None:
            state = _state(session, cluster, number)
            text = f"job {number} {state} after {timeout} s, and was cancelled"
            return Result(title, Verdict.FAILED, text)
    except (SlurmError, PluginError) as error:
        return Result(title, Verdict.FAILED, f"job {number}: {error}")
    finally:
        # Also if the user interrupts.
        if ended is None:
            with suppress(SlurmError, PluginError), session.connected(cluster, ADMINISTRATOR) as slurm:
                slurm.cancel_job(number)
    if ended.exit_status == 0:
        return Result(title, Verdict.PASSED, f"job {number}")
    return Result(title, Verdict.FAILED, f"job {number} ended with exit status {ended.exit_status}")


def _ended(session: Session, cluster: ClusterFacts, number: int, timeout: int) -> FinishedJob | None:
    """Wait for a job's end, with another token before one ends; None if it does not end in time."""
    left = timeout
    while left > 0:
        with session.connected(cluster, ADMINISTRATOR) as slurm:
            try:
                return slurm.wait_job(number, timeout=min(left, WITH_ONE_TOKEN))
            except NotFinished:
                left -= WITH_ONE_TOKEN
    return None


def _state(session: Session, cluster: ClusterFacts, number: int) -> str:
    with session.connected(cluster, ADMINISTRATOR) as slurm:
        job = slurm.job(number)
    return f"is {job.state} ({job.state_reason})"


def _refused(session: Session, cluster: ClusterFacts, seen: SlurmPicture) -> Result:
    """An ordinary user may not drain a node. A token that is not good any more proves nothing."""
    title = "a user may not drain a node"
    name = verification.idle(seen)
    if session.has_token(cluster) or (session.options.slurm_user or READER) != READER or not name:
        return Result(title, Verdict.SKIPPED, "needs an idle node and the user nobody")
    reason = verification.REASON
    try:
        with session.connected(cluster) as slurm:
            slurm.drain_nodes([name], reason)
    except PermissionDenied:
        return Result(title, Verdict.PASSED, READER)
    except PluginError as error:
        return Result(title, Verdict.SKIPPED, str(error))
    except SlurmError as error:
        return Result(title, Verdict.FAILED, str(error))
    try:
        with session.connected(cluster, ADMINISTRATOR) as slurm:
            undone = _undrained(slurm, name, reason)
    except (SlurmError, PluginError) as error:
        return Result(title, Verdict.FAILED, f"{READER} drained {name}, and it is drained still: {error}")
    return Result(title, Verdict.FAILED, f"{READER} drained {name}; {undone or 'it was undrained'}")


def _drain(
    session: Session, cluster: ClusterFacts, seen: SlurmPicture, pods: Sequence[PodFacts], timeout: int
) -> Iterator[Result]:
    """A drain shows in Slurm and on the pod, says who, and ends with an undrain."""
    shown: list[Result] = []
    yield _drained(
        session, cluster, seen, lambda name: shown.append(verify_kubernetes.shown_on_pod(session, pods, name, timeout))
    )
    yield from shown or [Result(verify_kubernetes.VISIBLE, Verdict.SKIPPED, "no node was drained")]


def _drained(session: Session, cluster: ClusterFacts, seen: SlurmPicture, meanwhile: Callable[[str], None]) -> Result:
    """Drain a node and undrain it. What others drain meanwhile stays drained."""
    title = "a node is drained and undrained"
    name = verification.idle(seen)
    if not name or session.options.slurm_user or session.has_token(cluster):
        return Result(title, Verdict.SKIPPED, "needs an idle node, and no --as")
    reason = drains.full(verification.REASON, session.kube.user())
    try:
        with session.connected(cluster, ADMINISTRATOR) as slurm:
            node = slurm.node(name)
            if not (node.is_idle and node.is_usable):
                return Result(title, Verdict.SKIPPED, f"{name} is {service.state(node)} now")
            try:
                slurm.drain_nodes([name], reason)
                shown = slurm.node(name).is_drain
                meanwhile(name)
            finally:
                left = _undrained(slurm, name, reason)
            back = not slurm.node(name).is_drain
    except PluginError as error:
        return Result(title, Verdict.SKIPPED, str(error))
    except SlurmError as error:
        return Result(title, Verdict.FAILED, str(error))
    if left:
        return Result(title, Verdict.SKIPPED, left)
    return Result(title, Verdict.PASSED if shown and back else Verdict.FAILED, name)


def _undrained(slurm: SyncSlurmClient, name: str, reason: str) -> str:
    """Undrain a node if the drain is the one of this run; otherwise leave it and return why."""
    node = slurm.node(name)
    if node.is_drain and node.reason != reason:
        return f"{service.who(node)} drained {name} meanwhile ({clip(node.reason)}), and it stays so"
    slurm.undrain_nodes([name])
    return ""

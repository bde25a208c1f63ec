"""``kubectl slurm drain`` and ``undrain``: take nodes out of service and back, with a reason that says who."""

from __future__ import annotations

import re

import click

from kubectl_slurm.access.tokens import ADMINISTRATOR
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import open_session
from kubectl_slurm.errors import ObjectNotFound
from kubectl_slurm.rules.nodes import drains
from kubectl_slurm.screen.words import named
from slurm_client.notation import hostlist

MOST_NODES = 10_000


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODES...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; your name is added.")
@click.option("--overwrite", is_flag=True, help="Give this reason to nodes that are drained already, too.")
@shared
def drain(options: Options, *, names: tuple[str, ...], reason: str, overwrite: bool) -> None:
    """Let no new job start on nodes; running jobs go on.

    NODES are names or hostlists. The operator leaves such drains alone. A node that is drained already keeps its
    reason, unless --overwrite is given.

    \b
    kubectl slurm drain gpu-0 --reason 'new firmware'
    kubectl slurm drain 'cpu-[0-15]' gpu-3 --reason 'move of rack 4' --namespace slurm
    """  # noqa: D301 - as in `status`
    problem = drains.refusal(reason)
    if problem:
        raise click.UsageError(problem)
    wanted = expanded(names)
    with open_session(options) as session:
        cluster = session.cluster()
        slurm = session.slurm(cluster, ADMINISTRATOR)
        known = session.ask(cluster, slurm.nodes).items
        change = drains.drain(wanted, known, overwrite=overwrite)
        check(change)
        if change.names:
            text = drains.full(reason, session.kube.user())
            session.ask(cluster, lambda: slurm.drain_nodes(change.names, text), verb="create")
        if options.is_json:
            options.printer.json(change)
            return
        jobs = session.ask(cluster, slurm.jobs).items
        options.printer.show(drains.screen(change, known, jobs, drained=True))


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODES...")
@shared
def undrain(options: Options, *, names: tuple[str, ...]) -> None:
    """Let jobs start on nodes again, and show why they did not.

    Nodes that the operator drains are left alone: it undrains them itself. A node that is down stays down.

    \b
    kubectl slurm undrain gpu-0
    kubectl slurm undrain 'cpu-[0-15]' --namespace slurm
    """  # noqa: D301 - as in `status`
    wanted = expanded(names)
    with open_session(options) as session:
        cluster = session.cluster()
        slurm = session.slurm(cluster, ADMINISTRATOR)
        known = session.ask(cluster, slurm.nodes).items
        change = drains.undrain(wanted, known)
        check(change)
        if change.names:
            session.ask(cluster, lambda: slurm.undrain_nodes(change.names), verb="create")
        if options.is_json:
            options.printer.json(change)
            return
        options.printer.show(drains.screen(change, known, (), drained=False))


def expanded(names: tuple[str, ...]) -> list[str]:
    """Names of nodes, from hostlists; a list that cannot be read is an error of the command line."""
    text = ",".join(names)
    try:
        if hostlist.size(text) > MOST_NODES:
            raise click.UsageError(f"more than {MOST_NODES} nodes are named")
        found = list(hostlist.expand(text))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    strange = next((name for name in found if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,252}", name, re.ASCII) is None), None)
    if strange is not None:
        raise click.UsageError(f"{strange!r:.80} is no name of a node")
    return found


def check(change: drains.Change) -> None:
    """Raise ObjectNotFound before anything is changed, if a name is unknown."""
    if change.unknown:
        raise ObjectNotFound(f"Slurm has no node {named(change.unknown)}; nothing was changed")

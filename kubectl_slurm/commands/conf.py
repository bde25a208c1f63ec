"""``kubectl slurm conf``: slurm.conf and its family, as they are and as they will be."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import click

from kubectl_slurm.access.kinds import CONFIG_MAPS
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.errors import NoCluster, ObjectNotFound
from kubectl_slurm.facts.objects import ClusterFacts
from kubectl_slurm.rules import conf as rules
from kubectl_slurm.screen.blocks import Line, Section
from kubectl_slurm.screen.words import named


@click.command()
@click.argument("which", type=click.Choice(["live", "rendered", "diff"]), default="live")
@click.option("--file", "name", default="", metavar="NAME", help="One file, such as gres.conf.")
@shared
def conf(options: Options, *, which: str, name: str) -> None:
    """Show the live or the rendered configuration, or both compared.

    Live is what slurmctld has loaded last. Rendered is what the operator made of the Cluster and its NodeSets; while it
    is tried, refused or waits for jobs, both differ, and the condition ConfigApplied says why. Passwords and keys are
    in Secrets and not shown.

    \b
    kubectl slurm conf
    kubectl slurm conf live --file slurm.conf
    kubectl slurm conf diff --namespace slurm
    """  # noqa: D301 - as in `status`
    with open_session(options) as session:
        cluster = session.cluster()
        if cluster.external:
            raise NoCluster(f"Cluster {cluster.name!r} runs elsewhere: the operator writes no slurm.conf for it")
        found = {
            kind: _files(session, cluster, suffix)
            for kind, suffix in (("live", rules.LIVE), ("rendered", rules.RENDERED))
            if which in {kind, "diff"}
        }
        if name and all(name not in files for files in found.values()):
            known = sorted({each for files in found.values() for each in files})
            raise ObjectNotFound(f"there is no file {name!r}; there are {named(known, 20)}")
        if options.is_json:
            options.printer.json(found)
        elif which == "diff":
            lines = list(islice(rules.difference(found["live"], found["rendered"], name), rules.MOST_LINES))
            if lines:
                options.printer.lines(lines)
            else:
                text = "slurmctld has loaded what the operator has rendered."
                options.printer.show((Section("No difference", (Line(text),)),))
        else:
            options.printer.lines(islice(rules.texts(found[which], name), rules.MOST_LINES))


def _files(session: Session, cluster: ClusterFacts, suffix: str) -> Mapping[str, str]:
    try:
        data = session.kube.get(CONFIG_MAPS, f"{cluster.name}{suffix}").get("data") or {}
    except ObjectNotFound as error:
        raise ObjectNotFound(f"Cluster {cluster.name!r} has no such configuration yet: {error}") from error
    return {str(name): str(text) for name, text in data.items()}

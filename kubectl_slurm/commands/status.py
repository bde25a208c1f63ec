"""``kubectl slurm status``: what is not as wanted, on one screen."""

from __future__ import annotations

import click

from kubectl_slurm.access import slurmrestd
from kubectl_slurm.access.kinds import NODESETS, SECRETS, TOKENS
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.errors import MissingRight, ObjectNotFound, PluginError
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.objects import ClusterFacts, KeyFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.status import Overview, screen
from slurm_client import SlurmError


@click.command()
@shared
def status(options: Options) -> None:
    """Show how a Cluster is, and what is not as wanted.

    That is about its NodeSets and nodes, the queue, tokens and keys.

    \b
    kubectl slurm status
    kubectl slurm status --namespace slurm -o json
    """  # noqa: D301 - \b is for click: it leaves the lines as they are
    with open_session(options) as session:
        seen = [overview(session, cluster) for cluster in session.clusters()]
        if options.is_json:
            options.printer.json(seen)
            return
        options.printer.show(tuple(section for each in seen for section in screen(each)))


def overview(session: Session, cluster: ClusterFacts) -> Overview:
    """All that is shown of a Cluster; what cannot be seen is named in its place."""
    nodesets = [reading.nodeset(obj) for obj in session.kube.objects(NODESETS)]
    tokens = [reading.token(obj) for obj in session.kube.objects(TOKENS)]
    keys, hidden = _keys(session, cluster)
    slurm, silence = _slurm(session, cluster)
    return Overview(
        now=session.now(),
        cluster=cluster,
        nodesets=tuple(one for one in nodesets if one.cluster == cluster.name),
        tokens=tuple(one for one in tokens if one.cluster == cluster.name),
        keys=keys,
        slurm=slurm,
        silence=silence,
        hidden=hidden,
    )


def _slurm(session: Session, cluster: ClusterFacts) -> tuple[SlurmPicture | None, str]:
    try:
        slurm = session.slurm(cluster)
        return session.ask(cluster, lambda: slurmrestd.picture(slurm, session.now())), ""
    except (PluginError, SlurmError) as error:
        return None, f"Slurm was not asked, and what is shown of nodes and jobs is the operator's last report: {error}"


def _keys(session: Session, cluster: ClusterFacts) -> tuple[tuple[KeyFacts, ...], tuple[str, ...]]:
    if cluster.external:
        return (), ()
    found: list[KeyFacts] = []
    for name in dict.fromkeys(cluster.key_secrets):
        try:
            found += reading.keys(session.kube.get(SECRETS, name))
        except ObjectNotFound:
            # The operator reports a Secret that is missing; the screen shows that condition.
            continue
        except MissingRight as error:
            return tuple(found), (f"Whether keys end soon: {error}",)
    return tuple(found), ()

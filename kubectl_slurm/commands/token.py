"""``kubectl slurm token``: a token for slurmrestd, for programs."""

from __future__ import annotations

import click

from kubectl_slurm.access.kinds import TOKENS
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import open_session
from kubectl_slurm.facts import reading
from kubectl_slurm.rules.tokens import screen


@click.command()
@click.option("--print", "prints", is_flag=True, help="Print a token of the user of --as, and nothing else.")
@shared
def token(options: Options, *, prints: bool) -> None:
    """List Tokens and what they are good for, or print a token.

    A printed token is that of a Token of this namespace if one is good for the user; otherwise it lives no longer than
    five minutes. Anyone who has it acts as that user in Slurm: pass it to the program that needs it, and keep it out of
    files.

    \b
    kubectl slurm token
    kubectl slurm token --print --as alice
    SLURM_JWT=$(kubectl slurm token --print) slurm-rest --url http://localhost:6820 nodes
    """  # noqa: D301 - as in `status`
    with open_session(options) as session:
        if prints:
            value = session.token(session.cluster())
            options.printer.json({"token": value}) if options.is_json else options.printer.lines([value])
            return
        found = [reading.token(obj) for obj in session.kube.objects(TOKENS)]
        if options.is_json:
            options.printer.json(found)
            return
        options.printer.show(screen(found, session.kube.namespace, session.now()))

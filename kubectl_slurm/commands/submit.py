"""``kubectl slurm submit``: a script becomes a job of the user whom the token stands for."""

from __future__ import annotations

import click

from kubectl_slurm.commands.shared.files import read
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import open_session
from kubectl_slurm.screen.blocks import Line, Mood, Section
from slurm_client.cli.submission import specified
from slurm_client.encode.jobs import DIRECTORY


@click.command()
@click.argument("script", metavar="SCRIPT", type=click.Path(exists=True, allow_dash=True, dir_okay=False))
@click.option("--sbatch", "more", multiple=True, metavar="OPTION", help="An option of sbatch: --sbatch=--time=10.")
@click.option("--chdir", default=DIRECTORY, show_default=True, metavar="FOLDER", help="Where it starts, on the nodes.")
@shared
def submit(options: Options, *, script: str, more: tuple[str, ...], chdir: str) -> None:
    """Submit a batch script, and print the job's number.

    Its #SBATCH lines count, and options given here count more. SCRIPT is a file, or - for standard input. The job is
    that of the Slurm user of --as, whom the Cluster must grant to this namespace, or of the token in $SLURM_JWT, which
    is for the Cluster of --cluster or the slurmrestd of --server.

    \b
    kubectl slurm submit train.sh --as alice
    echo '#!/bin/sh' | kubectl slurm submit - --sbatch=--time=1 --as alice --chdir /home/alice
    """  # noqa: D301 - as in `status`
    if not options.slurm_user and not options.token_for(options.cluster):
        raise click.UsageError(
            "name the Slurm user whose job it is with --as, or give their token in $SLURM_JWT with --cluster:"
            " Slurm takes no jobs of nobody"
        )
    spec = specified(read(script), [f"--chdir={chdir}", *more])
    with open_session(options) as session:
        cluster = session.cluster()
        slurm = session.slurm(cluster)
        job = session.ask(cluster, lambda: slurm.submit_job(spec), verb="create")
        if options.is_json:
            options.printer.json(job)
            return
        notes = [str(warning) for warning in job.warnings] + ([job.message] if job.message else [])
        hint = f"kubectl slurm explain job/{job.id}{options.where}"
        lines = (*(Line(note, Mood.WARNING) for note in notes[:10]), Line(hint, Mood.QUIET))
        options.printer.show((Section(f"Job {job.id} submitted", lines, Mood.GOOD),))

"""``kubectl slurm convert``: values and objects of Slinky's charts become those of this project."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def convert(arguments: tuple[str, ...]) -> None:
    """Convert values or objects of Slinky's charts.

    It is the same as slurm-operator convert.

    \b
    kubectl slurm convert -f values.yaml > ours.yaml
    kubectl slurm convert --help
    """  # noqa: D301 - as in `status`
    from slinky_operator.conversion import command

    try:
        code = command.main(list(arguments))
    except SystemExit as end:
        # argparse ends the process after its help, and after an error.
        code = end.code if isinstance(end.code, int) else 0
    raise click.exceptions.Exit(code)

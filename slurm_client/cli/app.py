"""The command line as a whole: options that all commands share, errors, exit codes, completion."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slurm_client.cli import changes, history, lists, state, submission
from slurm_client.cli.connection import Connection
from slurm_client.cli.exits import FAILED, HELP, INTERRUPTED, OK, code_of, sentence
from slurm_client.errors import SlurmError
from slurm_client.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run", "slurm_rest"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=HELP)
@click.version_option(__version__, prog_name="slurm-rest")
@click.option(
    "--url",
    "urls",
    multiple=True,
    envvar="SLURMRESTD_URL",
    metavar="URL",
    help="slurmrestd, http://localhost:6820 without one; several for one cluster are tried in turn. $SLURMRESTD_URL",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    envvar="SLURMRESTD_SOCKET",
    metavar="PATH",
    help="Unix socket of slurmrestd. $SLURMRESTD_SOCKET",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SLURM_JWT_FILE",
    metavar="FILE",
    help="File with a token. Without it, $SLURM_JWT is taken. $SLURM_JWT_FILE",
)
@click.option("--jwt-key", type=_FILE, metavar="FILE", help="The cluster's jwt.key: make tokens with it.")
@click.option("--user", default="slurm", show_default=True, help="Whom tokens made with --jwt-key speak for.")
@click.option("--act-for", metavar="USER", help="Act for another user; slurmctld lets only SlurmUser and root.")
@click.option(
    "--ca", type=_FILE, envvar="SLURMRESTD_CA", metavar="FILE", help="Certificates to trust, for https. $SLURMRESTD_CA"
)
@click.option("--api-version", metavar="PARSER", help="Data parser, e.g. v0.0.42; the newest common one without it.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds for a call.",
)
@click.option(
    "--colour/--no-colour",
    "--color/--no-color",
    default=None,
    help="Colours; without it, on a terminal where $NO_COLOR is not set.",
)
@click.pass_context
def slurm_rest(context: click.Context, /, *, colour: bool | None, **options: object) -> None:
    """
    See and change a Slurm cluster through slurmrestd.

    \b
    slurm-rest --jwt-key jwt.key nodes
    slurm-rest jobs --user alice --json
    slurm-rest submit --time 10 --wrap 'srun hostname'
    slurm-rest drain 'w-[0-3]' --reason 'new fans'
    """  # noqa: D301 - \b is for click: it leaves the lines as they are
    if colour is None:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    context.color = colour
    context.obj = Connection(token=os.environ.get("SLURM_JWT", ""), colour=colour, **options)  # type: ignore[arg-type]


@slurm_rest.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """
    Print what makes a shell complete commands and options.

    \b
    eval "$(slurm-rest completion bash)"
    """  # noqa: D301 - as above
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    click.echo(kind(slurm_rest, {}, "slurm-rest", "_SLURM_REST_COMPLETE").source())


for _command in (*lists.COMMANDS, *state.COMMANDS, *history.COMMANDS, *changes.COMMANDS, *submission.COMMANDS):
    slurm_rest.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        done = slurm_rest.main(
            args=None if arguments is None else list(arguments),
            prog_name="slurm-rest",
            complete_var="_SLURM_REST_COMPLETE",
            standalone_mode=False,
        )
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # ``slurm-rest jobs | head``: nobody reads on, so there is nothing to report.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (SlurmError, ValueError, OSError) as error:
        click.echo(f"slurm-rest: {sentence(error)}", err=True)
        return code_of(error)
    # click returns the code of Exit, and else what a command returns: nothing.
    return done if isinstance(done, int) else OK

"""The command line: commands, errors as one line with an exit code, completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from kubectl_slurm.commands.conf import conf
from kubectl_slurm.commands.convert import convert
from kubectl_slurm.commands.drain import drain, undrain
from kubectl_slurm.commands.explain import explain
from kubectl_slurm.commands.logs import logs
from kubectl_slurm.commands.preflight import preflight
from kubectl_slurm.commands.report import report
from kubectl_slurm.commands.status import status
from kubectl_slurm.commands.submit import submit
from kubectl_slurm.commands.token import token
from kubectl_slurm.commands.verify import verify
from kubectl_slurm.errors import EXIT_CODES, FAILED, INTERRUPTED, OK, PluginError
from kubectl_slurm.screen.printing import cleaned
from kubectl_slurm.version import __version__
from slurm_client import SlurmError
from slurm_client.cli.exits import code_of

NAME: Final = "kubectl-slurm"
COMPLETE: Final = "_KUBECTL_SLURM_COMPLETE"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name=NAME)
def slurm() -> None:
    """Inspect, explain and manage a Slurm cluster that runs in Kubernetes.

    It uses your kubeconfig, as kubectl does; the role "edit" in the namespace is enough.

    \b
    kubectl slurm status --namespace slurm
    kubectl slurm explain job/4711
    kubectl slurm drain 'gpu-[0-3]' --reason 'new firmware'
    """  # noqa: D301 - \b is for click: it leaves the lines as they are


@slurm.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands and options.

    \b
    eval "$(kubectl-slurm completion bash)"
    """  # noqa: D301 - as above
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    click.echo(kind(slurm, {}, NAME, COMPLETE).source())


for _command in (status, explain, drain, undrain, conf, token, logs, submit, convert, report, preflight, verify):
    slurm.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        done = slurm.main(
            args=None if arguments is None else list(arguments),
            prog_name=NAME,
            complete_var=COMPLETE,
            standalone_mode=False,
        )
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        click.echo(f"{NAME}: {cleaned(error.format_message())}", err=True)
        return error.exit_code
    except BrokenPipeError:
        # ``kubectl slurm status | head``: nobody reads on, so there is nothing to report.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except PluginError as error:
        click.echo(f"{NAME}: {cleaned(str(error))}", err=True)
        return error.code
    except SlurmError as error:
        click.echo(f"{NAME}: Slurm: {cleaned(str(error))}", err=True)
        return code_of(error)
    return done if isinstance(done, int) else OK

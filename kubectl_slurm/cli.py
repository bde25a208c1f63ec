"""The command line: commands, errors as one line with an exit code, completion."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from kubectl_slurm.commands.conf import conf
from kubectl_slurm.commands.convert import convert
from kubectl_slurm.commands.drain import drain, undrain
from kubectl_slurm.commands.explain import explain
from kubectl_slurm.commands.logs.command import logs
from kubectl_slurm.commands.preflight.command import preflight
from kubectl_slurm.commands.report import report
from kubectl_slurm.commands.status import status
from kubectl_slurm.commands.submit import submit
from kubectl_slurm.commands.token import token
from kubectl_slurm.commands.verify.command import verify
from kubectl_slurm.errors import EXIT_CODES, FAILED, INTERRUPTED, OK, PluginError
from kubectl_slurm.screen.printing import cleaned
from kubectl_slurm.version import __version__
from slurm_client import SlurmError
from slurm_client.cli.exits import code_of

NAME: Final = "kubectl-slurm"
COMPLETE: Final = "_KUBECTL_SLURM_COMPLETE"
FOR_KUBECTL: Final = f"""\
#!/bin/sh
# kubectl calls this with the words after "slurm"; the last line says whether files may follow (0) or not (4).
found=$({COMPLETE}=bash_complete COMP_WORDS="{NAME} $*" COMP_CWORD=$# {NAME})
case "$found" in
file,* | dir,*) echo :0 ;;
'') echo :4 ;;
*)
    printf '%s\\n' "$found" | sed 's/^[a-z]*,//'
    echo :4
    ;;
esac
"""
"""The program by which kubectl completes a plugin."""


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
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "kubectl"]))
def completion(shell: str) -> None:
    """Print a script that completes commands in a shell.

    For "kubectl slurm", kubectl itself must complete, and asks a program kubectl_complete-slurm on the PATH: that is
    what is printed for kubectl.

    \b
    eval "$(kubectl-slurm completion bash)"
    kubectl-slurm completion kubectl > ~/.local/bin/kubectl_complete-slurm
    chmod +x ~/.local/bin/kubectl_complete-slurm
    """  # noqa: D301 - as above
    if shell == "kubectl":
        click.echo(FOR_KUBECTL, nl=False)
        return
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    click.echo(kind(slurm, {}, NAME, COMPLETE).source())


for _command in (status, explain, drain, undrain, conf, token, logs, submit, convert, report, preflight, verify):
    slurm.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    SIGTERM and SIGHUP end it as Ctrl-C does: what a command has made is put away first.
    """
    # A call that is interrupted may leave asyncio a result that nobody takes: that is no news.
    logging.getLogger("asyncio").addHandler(logging.NullHandler())
    with _signals():
        return _main(arguments)


@contextmanager
def _signals() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        done = slurm.main(
            args=None if arguments is None else list(arguments),
            prog_name=NAME,
            complete_var=COMPLETE,
            standalone_mode=False,
        )
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # ``kubectl slurm status | head``: nobody reads on, so there is nothing to report.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (click.ClickException, PluginError, SlurmError, OSError, UnicodeDecodeError) as error:
        text, code = _meaning(error)
        click.echo(f"{NAME}: {cleaned(' '.join(text.split()))}", err=True)
        return INTERRUPTED if _follows_an_interrupt(error) else code
    return done if isinstance(done, int) else OK


def _meaning(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    match error:
        case click.ClickException():
            return error.format_message(), error.exit_code
        case PluginError():
            return str(error), error.code
        case SlurmError():
            return f"Slurm: {error}", code_of(error)
        case OSError(filename=str(name)):
            return f"{name}: {error.strerror or error}", FAILED
        case UnicodeDecodeError():
            return f"what was read is not in UTF-8: {error.reason}", FAILED
        case _:
            return str(error), FAILED


def _follows_an_interrupt(error: BaseException) -> bool:
    """Whether it happened while things were put away after an interrupt."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None

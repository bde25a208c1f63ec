"""Options that all commands share. kubectl takes none before a plugin's name, so each command has them all."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

import click

from kubectl_slurm.screen.printing import Printer, stdout

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user has said about where and how.

    Attributes
    ----------
    slurm_user
        The Slurm user to be; empty for the command's default.
    token
        A token for slurmrestd, from the environment; never shown, and used by `token_for` alone.
    """

    namespace: str = ""
    cluster: str = ""
    context: str = ""
    kubeconfig: str = ""
    kubectl: str = "kubectl"
    slurm_user: str = ""
    server: str = ""
    ca: str = ""
    output: str = ""
    token: str = ""

    def token_for(self, cluster: str) -> str:
        """The token of the environment, if the user has said whom it is for: a server, or this Cluster."""
        return self.token if self.server or (cluster and self.cluster == cluster) else ""

    @property
    def where(self) -> str:
        """The options that say where, to be added to a command that is printed: `` --namespace=slurm``."""
        given = ("kubeconfig", "context", "namespace", "cluster")
        return "".join(f" --{name}={shlex.quote(value)}" for name in given if (value := str(getattr(self, name))))

    @property
    def is_json(self) -> bool:
        """Whether JSON is wanted."""
        return self.output == "json"

    @property
    def printer(self) -> Printer:
        """Where results go."""
        return stdout(os.environ)


_KUBERNETES: Final = (
    click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace; that of the context without it."),
    click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig."),
    click.option("--kubeconfig", default="", metavar="FILE", help="The kubeconfig; as kubectl finds it without one."),
    click.option("--kubectl", default="kubectl", envvar="KUBECTL", metavar="PROGRAM", help="kubectl. $KUBECTL"),
    click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="JSON instead of text."),
)
_SLURM: Final = (
    click.option(
        "--cluster",
        default="",
        metavar="NAME",
        help="The Cluster; not needed where there is one. $SLURM_JWT goes to it.",
    ),
    click.option("--as", "slurm_user", default="", metavar="USER", help="The Slurm user to be."),
    click.option(
        "--server", default="", metavar="URL", help="slurmrestd, if not through the API server. $SLURM_JWT goes to it."
    ),
    click.option("--ca", default="", metavar="FILE", help="Certificates to trust, with --server."),
)


def shared(command: F) -> F:
    """Give a command the options that say where Kubernetes and Slurm are; it gets them as `Options`."""
    return _with((*_KUBERNETES, *_SLURM), command)


def of_kubernetes(command: F) -> F:
    """The same for a command that does not ask Slurm."""
    return _with(_KUBERNETES, command)


def _with(options: tuple[Callable[[Any], Any], ...], command: F) -> F:
    names = {one.name for one in fields(Options)}

    @functools.wraps(command)
    def called(**given: Any) -> Any:
        ours = {name: given.pop(name) or "" for name in names & given.keys()}
        ours.setdefault("kubectl", "kubectl")
        return command(Options(**ours, token=os.environ.get("SLURM_JWT", "")), **given)

    decorated: Any = called
    for option in reversed(options):
        decorated = option(decorated)
    result: F = decorated
    return result

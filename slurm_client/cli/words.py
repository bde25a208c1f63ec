"""Words of filters: an unknown state or partition is an error, since nothing would match it and nobody would notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import click.shell_completion
from typing_extensions import override

from slurm_client import errors
from slurm_client.cli.text import safe
from slurm_client.models import JobState, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client.sync import SyncSlurmClient

__all__ = ["BASES", "OF_JOBS", "OF_NODES", "State", "nothing", "state_option"]

OF_NODES = NodeState.BASES | NodeState.FLAGS
OF_JOBS = JobState.BASES | JobState.FLAGS
BASES = JobState.BASES


# It takes a type argument from click 8.3 on, and none before.
class State(click.ParamType):  # type: ignore[type-arg]
    """
    A word of a state, in any case.

    Parameters
    ----------
    words
        Those that there are, in capitals.
    """

    name = "state"

    def __init__(self, words: frozenset[str]) -> None:
        self._words = sorted(words)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word in capitals."""
        word = str(value).upper()
        if word not in self._words:
            self.fail(f"{safe(str(value))!r:.40} is no state: there are {', '.join(self._words)}", param, ctx)
        return word

    @override
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the words that begin so."""
        words = [word for word in self._words if word.startswith(incomplete.upper())]
        return [click.shell_completion.CompletionItem(word) for word in words]


def state_option(words: frozenset[str], text: str) -> Callable[[Any], Any]:
    """Return the option ``--state``, which takes these words."""
    return click.option("--state", "-t", "states", multiple=True, type=State(words), help=text)


def nothing(slurm: SyncSlurmClient, what: str, partitions: tuple[str, ...]) -> None:
    """
    Say that nothing matches.

    Raises
    ------
    NotFound
        If that is because there is no such partition.
    """
    known = {each.name for each in slurm.partitions()} if partitions else set()
    for name in partitions:
        if name not in known:
            raise errors.NotFound(f"no partition {safe(name)}; there are {safe(', '.join(sorted(known)))}")
    click.echo(f"no {what} matches", err=True)

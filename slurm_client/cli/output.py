"""How commands print: lines for people, coloured on a terminal, or JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from slurm_client.models.plain import to_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["as_json", "print_json", "print_lines"]

F = TypeVar("F", bound="Callable[..., Any]")

_COLOURS = (
    ("red", ("DOWN", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "BOOT_FAIL", "NOT_RESPONDING", "INVALID")),
    ("yellow", ("DRAIN", "PENDING", "COMPLETING", "MAINT", "RESERVED", "INACTIVE", "SUSPENDED", "CANCELLED")),
    ("green", ("IDLE", "RUNNING", "COMPLETED", "MIXED", "ALLOCATED", "UP")),
)
"""Words of states by what they mean; the first that occurs decides."""


def as_json(command: F) -> F:
    """Give a command the option ``--json``."""
    return click.option("--json", "json_", is_flag=True, help="Print JSON, with the fields of the models.")(command)


def print_json(value: Any) -> None:
    """Print models, or a dictionary, as JSON: ASCII alone, so that no text in it is obeyed by a terminal."""
    click.echo(json.dumps(_plain(value), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else to_dict(value)


def print_lines(lines: Iterable[str], states: Iterable[str] = ()) -> None:
    """
    Print lines, the first of them in bold.

    Parameters
    ----------
    states
        The state that each line after the first tells of; it decides the colour of these words.
    """
    words = iter(states)
    for index, line in enumerate(lines):
        if index == 0:
            click.echo(click.style(line, bold=True))
            continue
        state = next(words, "")
        colour = next((name for name, marks in _COLOURS if any(mark in state for mark in marks)), None)
        shown = line.replace(state, click.style(state, fg=colour), 1) if state and colour else line
        click.echo(shown)

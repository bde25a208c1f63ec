"""Exit codes, and what to do about each kind of error, in one line."""

from __future__ import annotations

from slurm_client import errors
from slurm_client.cli.text import safe

__all__ = ["CODES", "HELP", "code_of", "sentence"]

OK, FAILED, USAGE, UNREACHABLE, REFUSED, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

CODES: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.InvalidArgument, USAGE, ""),
    (errors.InvalidDirective, USAGE, ""),
    (errors.ControllerDown, UNREACHABLE, "slurmrestd is up: look whether slurmctld runs"),
    (errors.Unreachable, UNREACHABLE, "check --url (or --socket) and whether slurmrestd runs"),
    (errors.Unauthorized, REFUSED, "give a token: --token-file, --jwt-key, or $SLURM_JWT from 'scontrol token'"),
    (errors.PermissionDenied, REFUSED, "the user of the token lacks the right: ask an operator of the cluster"),
    (errors.NotFound, NOT_FOUND, "see 'slurm-rest nodes' and 'slurm-rest jobs --all' for what there is"),
    (errors.NotSupported, FAILED, "this needs a newer Slurm, or another --api-version"),
    (errors.Conflict, FAILED, "it is in use: try again later"),
    (errors.DecodeError, FAILED, "check that --url is a slurmrestd and no proxy before it"),
)
"""Kinds of errors, the nearest first, with their exit code and what to do; any other error is 1."""

HELP = """\b
Exit codes:
    0  done
    1  Slurm refused it, or failed
    2  wrong command line, or a value that no call accepts; nothing was sent
    3  no answer: slurmrestd or slurmctld cannot be reached
    4  no token, a bad one, or no right to do this
    5  there is no such node, job or other object
  130  interrupted

\b
submit --wait ends with the exit code of the job instead, once there is one.
"""


def code_of(error: Exception) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code, _ in CODES if isinstance(error, kind)), FAILED)


def sentence(error: Exception) -> str:
    """Return one line: what happened, and what to do."""
    advice = next((words for kind, _, words in CODES if isinstance(error, kind)), "")
    return f"{type(error).__name__}: {safe(str(error))}" + (f" ({advice})" if advice else "")

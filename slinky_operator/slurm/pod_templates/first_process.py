"""The first process of a slurmd pod: a shell that starts slurmd, passes signals on, and reaps.

Each step's slurmstepd leaves slurmd's side, so that a restart of slurmd ends no job; when it ends, it is a child of the
container's first process. slurmd waits for none of them: as the first process it leaves a zombie for each step, until
no process identifiers are left (24.11 and 26.05). `wait` of a shell takes any child that has ended.

A shell is in every image that can run a batch script; `tini` is not in all of them. To share the pod's process
namespace would have the pause container reap, but would show the processes and the environment of each container to
the others.

A shell has what it starts in the background ignore SIGINT and SIGQUIT, and jobs of Slurm 26.05 would inherit that:
`scancel --signal=INT` would do nothing. Where `env` cannot undo it (coreutils before 8.31, busybox), slurmd stays the
first process. slurmd replaces itself in place when it is reconfigured, so its process identifier stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.slurm import naming

DEFAULT_SIGNALS: Final = "env --default-signal=INT,QUIT"
"""Starts a program that a shell runs in the background, as if in the foreground."""

CLOSE_RUN: Final = f"chmod 755 {naming.RUN_FOLDER} || :"
"""Closes the volume at /run to users, before there is a job.

Everybody may write to a new volume, and rename what is in it: users could put a folder of theirs in the place of
/run/slurm, from which commands of root read slurm.conf and slurmd starts health checks, or make those of the checks
first. Without the right to do so, `chmod` says why and slurmd starts: one that does not run as root starts jobs as its
own user only, and a template that mounts another volume there has to close it.
"""

KEEP_LAST_WORDS: Final = "chmod 644 /dev/termination-log 2>/dev/null || :"
"""Keeps users from writing why the container has ended: the kubelet makes the file for everybody, and the conditions
of the NodeSet quote it."""

_PREPARE: Final = f"""\
if ! command -v "$0" > /dev/null; then
  said="this image has no program $0"
  echo "$said" >&2
  {{ echo "$said" > /dev/termination-log; }} 2>/dev/null
  exit 127
fi
{CLOSE_RUN}
{KEEP_LAST_WORDS}
"""
"""What comes first, whatever is started: its name is the program. No text of a user is in it."""

_SCRIPT: Final = f"""\
{_PREPARE}\
{DEFAULT_SIGNALS} true 2>/dev/null || exec "$0" "$@"
trap 'exit 143' TERM INT QUIT
{DEFAULT_SIGNALS} "$0" "$@" &
slurmd=$!
for name in TERM INT QUIT HUP USR2; do
  trap "kill -s $name $slurmd 2>/dev/null" "$name"
done
while :; do
  wait "$slurmd"
  code=$?
  kill -0 "$slurmd" 2>/dev/null && continue
  # If a signal ended the wait while slurmd ended, its own code is still to be had.
  wait "$slurmd" 2>/dev/null
  last=$?
  [ "$last" = 127 ] || code=$last
  exit "$code"
done
"""
"""Its name is the program, its arguments are slurmd's. No text of a user is in it."""

_BEFORE: Final = f"""\
{_PREPARE}\
exec "$0" "$@"
"""
"""Its name is the program, its arguments are the program's. No text of a user is in it."""


def above(program: str) -> tuple[str, ...]:
    """Return the command of a container that runs slurmd below the first process.

    Parameters
    ----------
    program
        slurmd: a name in the image's PATH, or a path. The container's arguments are passed to it.
    """
    return ("/bin/sh", "-c", _SCRIPT, program)


def before(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command of a container that closes /run, and then is what its template says.

    The program takes the place of the shell, so that it is the first process, gets signals itself, and reaps or not as
    it would. It has to be done in this container: Kubernetes gives new volumes to everybody, of whatever medium and
    below whatever folder, and another container for it would start before each pod.

    Parameters
    ----------
    command
        The program and its words; not empty. The container's arguments follow them.
    """
    return ("/bin/sh", "-c", _BEFORE, *command)

"""Lines of a shell that several trials run, and the exit codes by which they end."""

from __future__ import annotations

from typing import Final

from slinky_operator.slurm import naming

REFUSED: Final = 1
"""Exit code of a daemon's container if the daemon has rejected what it is tried with."""

UNDECIDED: Final = 2
"""The same if it neither runs nor has ended in time."""

UNTRIED: Final = 3
"""The same if its image contains no such daemon."""

NOT_COPIED: Final = 4
"""The same if the state could not be copied; the message says why."""

PATIENCE: Final = 15
"""Seconds that a daemon gets for what normally takes 0.1 s; a machine may be busy."""

KEYS: Final = f"head -c 128 /dev/urandom > slurm.key && head -c 32 /dev/urandom > {naming.JWT_KEY}"
"""A command that makes keys of the trial's own."""


def started(daemon: str) -> str:
    """A line that starts a daemon; its log and its end are in files of its name."""
    return f"( {daemon} -D > {daemon}.log 2>&1; echo $? > {daemon}.end; mv {daemon}.end {daemon}.ended ) &"


def watch(seconds: int) -> str:
    """Lines of a shell that wait for a daemon's word, and end with its result if that does not come.

    A daemon ended by a signal (for example by the kernel, out of memory) has rejected nothing.
    """
    return f"""\
tries=0
until grep -q "$2" "$1.log" 2>/dev/null; do
  tries=$((tries + 1))
  if [ -e "$1.ended" ] || [ "$tries" -gt {20 * seconds} ]; then
    touch "$3"
    tail -n 60 "$1.log" | tail -c 4000 > /dev/termination-log
    case "$(cat "$1.ended" 2>/dev/null)" in
      126|127) exit 3 ;;
      ?|??|10?|11?|12?) exit 1 ;;
      *) exit 2 ;;
    esac
  fi
  sleep 0.05
done
"""


WATCH: Final = watch(PATIENCE)

"""The first process of slurmctld's container, a shell: it follows slurmctld, and ends it when it waits for itself.

In the foreground slurmctld replaces itself when it reconfigures, and exits on a file that it rejects, while slurmrestd
reports success. As a daemon it starts a successor and continues if that fails; slurmrestd reports so (both seen with
Slurm 24.11 and 26.05). So it runs as a daemon, below a first process that follows its pid file, forwards SIGTERM, and
reaps: `wait` takes any child that has ended.

**A slurmctld that waits for itself.** Without accounting slurmctld has no list of users. When a user who is neither
root nor SlurmUser asks it to end or signal jobs, and one of them is somebody else's (REQUEST_KILL_JOBS: `DELETE` of
slurmrestd, `scancel --ctld`), it takes the lock of that list to read, finds no list, and takes the same lock to write
in order to make one. It never gets on, and holds the locks of jobs and nodes: nobody gets an answer any more. No
setting avoids that (24.11 and 26.05; with slurmdbd the list is there). So the shell asks a question that needs the
lock of jobs, and ends a slurmctld that certainly waits for itself: it has started (it has answered, or has the thread
that saves its state, which both releases begin as the last), gives no answer to several questions in a row, uses no
processor, and is not reading its files again, for which it starts a successor. The kubelet starts it again, with its
pauses, and jobs go on. With accounting nothing is asked.

A kubelet takes two dollar signs in a command for one, so the shell's own id is in braces.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.slurm import naming

HUNG: Final = 75
"""Exit code of the container when slurmctld waited for itself."""

UNANSWERED: Final = 4
"""How many questions in a row get no answer until slurmctld certainly waits for itself."""

PAUSE: Final = 5
"""Seconds between two questions."""

PATIENCE: Final = 10
"""Seconds for an answer."""

IDLE: Final = 25
"""Ticks of the processor, of a hundred in each second that it is asked, below which slurmctld does nothing. One that
works under its locks uses a whole processor, or what its limit leaves; one that waits for itself, a few ticks."""

NO_JOB: Final = 67108863
"""The last id that fits into Slurm's ids, which no job gets: `MaxJobId` is lower. The answer is a line."""

WORDS: Final = (
    "error: slurmctld waited for itself and answered nobody; it is started again, and jobs go on. A user has ended or "
    "signalled a job of somebody else, through slurmrestd or with scancel --ctld: without accounting Slurm does not "
    "survive that"
)
"""What the container says last."""

_WATCH: Final = f"""\
ticks() {{
  {{ read -r words < "/proc/$1/stat"; }} 2>/dev/null || return
  set -- ${{words##*) }}
  echo "$((${{12}} + ${{13}}))"
}}
reads_files() {{
  for stat in /proc/[0-9]*/stat; do
    {{ read -r words < "$stat"; }} 2>/dev/null || continue
    case "$words" in "$1 "*) ;; *" (slurmctld) "* | *" (slurmctld-wlm) "*) return 0 ;; esac
  done
  return 1
}}
watch() {{
  followed= started= silent=0
  while sleep PAUSE; do
    pid=$(cat {naming.SLURMCTLD_PID} 2>/dev/null)
    [ "$pid" = "$followed" ] || {{ followed=$pid started= silent=0; }}
    if grep -Eiqs '^[[:space:]]*AccountingStorageType[[:space:]]*=.*slurmdbd' {naming.CONF_FOLDER}/slurm.conf; then
      silent=0
      continue
    fi
    before=$(ticks "$pid")
    case "$(timeout PATIENCE scontrol show job {NO_JOB} 2>&1; echo "exit $?")" in
      *"nvalid job id"* | *JobId=*) started=1 silent=0 ;;
      *"exit 124" | *"timed out"*)
        after=$(ticks "$pid")
        grep -qsx sstate "/proc/$pid/task"/*/comm && started=1
        if [ -n "$started" ] && [ -n "$before" ] && [ -n "$after" ] && ! reads_files "$pid" \\
          && [ "$((after - before))" -lt "$((PATIENCE * {IDLE}))" ]; then
          silent=$((silent + 1))
        else
          silent=0
        fi
        ;;
      *) silent=0 ;;
    esac
    [ "$silent" -lt {UNANSWERED} ] || {{ kill -USR1 "${{$}}"; silent=0; }}
  done
}}
"""

_FOLLOWED: Final = f"""\
slurmctld || exit
send() {{ kill "-$1" "$(cat {naming.SLURMCTLD_PID} 2>/dev/null)" 2>/dev/null; }}
trap 'ending=1; send TERM' TERM INT
trap 'hung=1' USR1
{_WATCH}watch &
missing=0
while [ "$missing" -lt 5 ]; do
  if [ -n "$hung" ] && [ -z "$ending" ]; then send KILL; echo "{WORDS}" >&2; exit {HUNG}; fi
  if send 0; then missing=0; elif [ -n "$ending" ]; then exit 0; else missing=$((missing + 1)); fi
  sleep "${{ending:+0.}}1" & wait $!
done
echo "slurmctld has ended" >&2
exit 1
"""


def first_process(pause: int = PAUSE, patience: int = PATIENCE) -> str:
    """The script.

    Parameters
    ----------
    pause
        Seconds between two questions.
    patience
        Seconds for an answer.
    """
    return _FOLLOWED.replace("PAUSE", str(pause)).replace("PATIENCE", str(patience))

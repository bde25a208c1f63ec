"""A trial of jobs: a disposable pod in which slurmctld takes a new configuration with a copy of the live state.

slurmctld validates every job again at a reconfigure, and what it knows of a job is more than it shows: 24.11 ends a
running job whose list of partitions loses one that the job does not run in. So slurmctld starts twice with copies of
the state, once with the running configuration and once with the new one, and the jobs that both show are compared. What
a copy alone changes (nodes that do not answer) is the same in both. Partitions are down there, so that no job starts.

What keeps it apart from the real Cluster is said in `state_pod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.state_pod import COPY, LIVE, READING, with_state
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.derive import FOLDER, SLURM_CONF, derive
from slinky_operator.slurm.conf.render import hash_of
from slinky_operator.slurm.conf.syntax.parsed import parse

GONE: Final = "GONE"
"""State of a job that slurmctld has forgotten."""

MOST_SHOWN: Final = 100
"""Jobs in the container's message, which has room for 4096 bytes."""

_LIVE: Final = "live."
"""Prefix of the running configuration's files that differ from the new ones."""

_ABSENT: Final = "ABSENT"
"""Variable with the names of files that the running configuration does not have."""

# A pending job whose folder is missing counts as failed; what is in it is not read.
_SCRIPT: Final = f"""\
{COPY}(cd {LIVE} && for one in hash.*; do
  if [ -d "$one" ]; then cp -R --attributes-only "$one" {FOLDER}/state/ || exit 1; fi
done) 2> copy.log || give_up "$(tail -n 1 copy.log)"
command -v squeue > /dev/null || give_up "its image has no squeue"
cp -R state kept && mkdir live || exit 2
for file in {naming.CONF_FOLDER}/*; do
  if [ -f "$file" ]; then cp -L "$file" live/ || exit 2; fi
done
for name in ${_ABSENT}; do rm -f "live/$name"; done
for file in live/{_LIVE}*; do
  if [ -e "$file" ]; then mv "$file" "live/${{file#live/{_LIVE}}}"; fi
done
# Start slurmctld, and list its jobs: $1 names its log and its list.
jobs_of() {{
  (
    slurmctld -D > "$1.log" 2>&1 &
    echo $! > "$1.pid"; wait $!; echo $? > "$1.end"; mv "$1.end" "$1.ended"
  ) &
  tries=0
  until grep -q "Running as primary controller" "$1.log" 2>/dev/null \\
      && env -u SLURM_SACK_KEY squeue -h -a -t all -o "%A %T" > "$1.jobs" 2> squeue.log; do
    tries=$((tries + 1))
    if [ -e "$1.ended" ] || [ "$tries" -gt {20 * READING} ]; then return 1; fi
    sleep 0.05
  done
  kill -9 "$(cat "$1.pid")"
  until [ -e "$1.ended" ]; do sleep 0.02; done
  LC_ALL=C sort -o "$1.jobs" "$1.jobs"
}}
SLURM_CONF={FOLDER}/live/slurm.conf; export SLURM_CONF
jobs_of before || give_up "slurmctld does not start with the running configuration: $(tail -n 3 before.log squeue.log)"
rm -rf state && mv kept state || exit 2
SLURM_CONF={naming.CONF_FOLDER}/slurm.conf
if ! jobs_of after; then
  tail -n 60 after.log | tail -c 4000 > /dev/termination-log
  case "$(cat after.ended 2>/dev/null)" in ?|??|10?|11?|12[0-5]) exit 1 ;; *) exit 2 ;; esac
fi
{{
  grep -c . before.jobs
  LC_ALL=C comm -23 before.jobs after.jobs \\
    | LC_ALL=C join -a 1 -e {GONE} -o 0,1.2,2.2 - after.jobs | head -n {MOST_SHOWN}
}} > /dev/termination-log
exit 0
"""


def jobs_trial(given: TrialInput, live: Mapping[str, str]) -> TrialObjects:
    """Build the trial of a configuration with the jobs there are.

    Parameters
    ----------
    live
        The running configuration.
    """
    new, old = (_closed(derive(one, "slurm", finds_jobs=True)) for one in (given.files, live))
    digest = hash_of({"": hash_of(live), **given.files})
    spec = with_state(given, _SCRIPT)
    container = spec["containers"][0]
    absent = " ".join(sorted(new.keys() - old.keys()))
    spec["containers"] = [{**container, "env": [*container["env"], {"name": _ABSENT, "value": absent}]}]
    data = {**new, **{f"{_LIVE}{key}": text for key, text in old.items() if new.get(key) != text}}
    return pods.objects(given.cluster, pods.JOBS, spec, identity={"hash": digest}, note=digest, data=data)


def _closed(files: Mapping[str, str]) -> dict[str, str]:
    """The files with partitions that start no job: there is nothing to compare then."""
    lines = []
    for line in files[SLURM_CONF].split("\n"):
        found = list(parse(line).partitions.values())
        lines.append(str(found[0].replaced(State="DOWN")) if found else line)
    return {**files, SLURM_CONF: "\n".join(lines)}

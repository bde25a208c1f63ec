"""A trial of the state: a disposable pod in which slurmctld of a new image starts with a copy of the live state.

A rehearsal (`rehearsal_pod`) starts without state, so it cannot tell whether the new slurmctld reads what the running
one has written. This pod runs on slurmctld's own Node, where a second pod may mount its claim, mounts it read-only,
copies the files, and is gone as soon as its slurmctld has read them. slurmctld replaces each file as a whole, so each
copy is one that it has written.

It finds the jobs and nodes of the real Cluster, and would call them. What keeps it apart: a key of auth/slurm of its
own, which slurmd, sackd and srun refuse (seen with both releases: slurmds log `Protocol authentication error`, and jobs
run on while it takes them for lost); no accounting, and no programs of slurm.conf (`slurm.conf.derive`); triggers,
federations and records for slurmdbd are not copied; and its first call would be seconds after it has read everything.
The claim is read-only for the kubelet too: it changes neither owners nor SELinux labels of what the real one uses.

Scripts of jobs are not copied either: slurmctld takes pending jobs without one for failed, in the copy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.preflight_pod import FOLDER_VOLUME, pod_spec
from slinky_operator.cluster.trials.rehearsal_pod import with_own
from slinky_operator.cluster.trials.scripts import KEYS, NOT_COPIED, watch
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.derive import FOLDER, derive
from slinky_operator.slurm.conf.render import hash_of

MOST_MIB: Final = 1024
"""The largest state that is copied, with the older copy of each file: that of half a million jobs of 1 KB each."""

READING: Final = 90
"""Seconds that slurmctld gets to read the copy: it read 3,000 jobs in 0.3 s on a busy machine."""

LIVE: Final = "/live-state"
"""Where it finds the live state."""

# `du` and `cp` of coreutils are in every image with a Slurm. For an instant, while slurmctld renames a file, only the
# old one has its name: then everything is copied again.
COPY: Final = f"""\
umask 027
cd {FOLDER} && mkdir state || exit 2
{KEYS} && chmod 600 ./*.key || exit 2
give_up() {{ printf '%s' "$*" | tail -c 600 > /dev/termination-log; exit {NOT_COPIED}; }}
copy() {{
  for name in clustername last_config_lite last_tres node_state part_state resv_state job_state; do
    for file in {LIVE}/"$name.old" {LIVE}/"$name"; do
      if [ -e "$file" ]; then cp "$file" state/ || return 1; fi
    done
    if [ -e "state/$name.old" ] && [ ! -e "state/$name" ]; then echo "$name is missing"; return 1; fi
  done
}}
ls {LIVE} > /dev/null 2> copy.log || give_up "$(cat copy.log)"
size=$(du -skL {LIVE}/*_state {LIVE}/*_state.old 2>/dev/null | {{
  sum=0
  while read -r one _; do sum=$((sum + one)); done
  echo "$sum"
}})
[ "$size" -le {MOST_MIB * 1024} ] || give_up "it has $((size / 1024)) MiB, and at most {MOST_MIB} are copied"
free=$(df -Pk . | {{ read -r _; read -r _ _ _ free _; echo "$free"; }})
[ "$free" -ge $((size * 4)) ] || give_up "it has $((size / 1024)) MiB, and its Node only $((free / 1024)) MiB of room"
tries=0
until copy > copy.log 2>&1; do
  tries=$((tries + 1))
  [ "$tries" -lt 20 ] || give_up "$(cat copy.log)"
  sleep 0.1
done
"""
"""Lines of a shell that copy the live state into the folder `state`."""

_SCRIPT: Final = f"""\
{COPY}(
  slurmctld -D > slurmctld.log 2>&1; code=$?
  case "$code" in
    12[89]|13[0-6]|139)
      echo "fatal: slurmctld was ended by signal $((code - 128))" >> slurmctld.log; code=1 ;;
  esac
  echo "$code" > slurmctld.end; mv slurmctld.end slurmctld.ended
) &
set -- slurmctld "Running as primary controller" refused
{watch(READING)}grep -o "Recovered information about .*" slurmctld.log | head -c 200 > /dev/termination-log
exit 0
"""


def state_trial(given: TrialInput) -> TrialObjects:
    """Build the trial of a slurmctld, with the live configuration and a copy of the state."""
    data, digest = derive(given.files, "slurm", finds_jobs=True), hash_of(given.files)
    return pods.objects(
        given.cluster, pods.STATE, with_state(given, _SCRIPT), identity={"hash": digest}, note=digest, data=data
    )


def with_state(given: TrialInput, script: str) -> dict[str, Any]:
    """Spec of a pod that mounts the live state and runs a script with the settings of slurmctld's container."""
    template, running = given.template, given.running
    spec = pod_spec(given)
    own = pods.container_of(template, naming.CONTROLLER_CONTAINER)
    container = with_own(spec["containers"][0], own)
    mounts = own.get("volumeMounts") or ()
    mounted: Mapping[str, Any] = next((one for one in mounts if one["name"] == slurmctld_pod.STATE), {})
    container |= {
        "command": ["/bin/sh", "-c", script],
        "volumeMounts": [
            *container["volumeMounts"],
            {**mounted, "name": slurmctld_pod.STATE, "mountPath": LIVE, "readOnly": True},
        ],
    }
    # A pod of another priority could displace the running one: a claim may be for one pod alone.
    free = {key: value for key, value in spec.items() if key not in {"priorityClassName", "priority"}}
    priority = {key: running[key] for key in ("priorityClassName",) if running.get(key)}
    state = {"claimName": given.claim, "readOnly": True}
    volumes = [
        {**one, "emptyDir": {"sizeLimit": f"{2 * MOST_MIB + 64}Mi"}} if one["name"] == FOLDER_VOLUME else one
        for one in spec["volumes"]
    ]
    made = {
        **free,
        **priority,
        "securityContext": _without_claims(template.get("securityContext") or {}),
        "containers": [container],
        "volumes": [*volumes, {"name": slurmctld_pod.STATE, "persistentVolumeClaim": state}],
    }
    return pods.placed(made, given.node)


def _without_claims(security: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's security context by which a kubelet does not change the owners of files."""
    rest = {key: value for key, value in security.items() if key not in {"fsGroup", "fsGroupChangePolicy"}}
    groups = [*(security.get("supplementalGroups") or ()), *(security[key] for key in ("fsGroup",) if key in security)]
    return {**rest, **({"supplementalGroups": groups} if groups else {})}

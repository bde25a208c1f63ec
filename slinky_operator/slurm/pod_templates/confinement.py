"""slurmd that confines its jobs by cgroups, in a container that is not privileged: first process, security context.

ProctrackType and TaskPlugin are keys of the whole cluster, which slurmds get from slurmctld with everything else. But
a slurmd that cannot write cgroups does not start with `proctrack/cgroup`, and ProctrackType cannot be changed while
jobs run. So that a Cluster can have both kinds of nodes, and a NodeSet can change from one to the other, the slurmds of
confined nodes read other values of these two keys: from files that their first process makes of the Cluster's own
(`slurmd -f`). slurmctld then logs that the node "appears to have a different slurm.conf", and uses it all the same.

What the first process does, before it starts slurmd:

- It makes the control groups of its own container writable. For that it needs SYS_ADMIN; under cgroup version 2 the
  container has a cgroup namespace, so that no group but its own is reachable. Without one it stops.
- Version 2 enables no controller for the children of a group that holds processes: it moves all processes of the
  container to a group below, beside which slurmd makes that of the jobs.
- It sees to it that a job which uses too much memory ends, and not the slurmstepd that watches it: see below.
- It copies the Cluster's files, with other plugins, and does so again when the kubelet brings new ones: slurmd is then
  signalled to read them (SIGHUP). The kubelet may need a minute for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates import first_process, security

GIVEN_FOLDER: Final = "/etc/slurm-cluster"
"""Where the Cluster's configuration is mounted."""

USED_FOLDER: Final = "/run/slurm/conf"
"""Where slurmd reads it; commands of jobs look there too."""

ARGUMENTS: Final = ("-f", f"{USED_FOLDER}/slurm.conf")
"""Of slurmd, in place of the address of slurmctld."""

CAPABILITIES: Final = (*security.CAPABILITIES, "SYS_ADMIN", "SYS_NICE")
"""Those of every slurmd, the one for mounting cgroups and for rules about devices (eBPF), and the one for giving cores
to processes of users: without it, only jobs of root start (`task_g_set_affinity`)."""

FIRST_PROCESS: Final = f"""\
set -eu
cgroups=/sys/fs/cgroup given={GIVEN_FOLDER} used={USED_FOLDER} old=
fail() {{ echo "confinement: $*" >&2; exit 1; }}

writable() {{
  mount -o "remount,$2" "$1" || fail "$1 cannot be made writable: the container needs the capability SYS_ADMIN, and no\\
 AppArmor profile that forbids mount"
}}

if [ -e "$cgroups/cgroup.controllers" ]; then
  read -r place < /proc/self/cgroup
  [ "$place" = 0::/ ] || fail "the container has no cgroup namespace of its own, but is in ${{place#0::}}"
  writable "$cgroups" rw
  mkdir -p "$cgroups/daemons"
  tries=0
  while read -r pid < "$cgroups/cgroup.procs"; do
    # One that has just ended cannot be moved.
    echo "$pid" 2>/dev/null > "$cgroups/daemons/cgroup.procs" || :
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || fail "$cgroups still holds process $pid"
  done
else
  while read -r _ place kind _; do
    if [ "$kind" = cgroup ]; then writable "$place" rw,bind; fi
  done < /proc/self/mounts
fi

assemble() {{
  # Looked at first: what changes while it is copied is copied again.
  seen=$(readlink "$given/..data" || echo none)
  new=$(mktemp -d "$used.XXXXXX")
  chmod 755 "$new"
  cp "$given"/* "$new/"
  for file in slurm cgroup; do rm -f "$new/$file.conf"; done
  {{
    grep -v -E '^(ProctrackType|TaskPlugin)=' "$given/slurm.conf" || :
    echo ProctrackType=proctrack/cgroup
    echo TaskPlugin=task/affinity,task/cgroup
  }} > "$new/slurm.conf"
  {{
    grep -v -i -E '^[[:space:]]*(CgroupPlugin|IgnoreSystemd|EnableControllers)[[:space:]]*=' "$given/cgroup.conf" || :
    echo CgroupPlugin=autodetect
    echo IgnoreSystemd=yes
    echo EnableControllers=yes
    for key in ConstrainCores ConstrainDevices ConstrainRAMSpace; do
      grep -q -i -E "^[[:space:]]*$key[[:space:]]*=" "$given/cgroup.conf" || echo "$key=yes"
    done
  }} > "$new/cgroup.conf"
  ln -sfn "$new" "$used.next"
  mv -T "$used.next" "$used"
  if [ -n "$old" ]; then rm -rf "$old"; fi
  old=$new
}}

{first_process.CLOSE_RUN}
{first_process.KEEP_LAST_WORDS}
mkdir -p "${{used%/*}}"
chmod 755 "${{used%/*}}"
assemble
export SLURM_CONF="$used/slurm.conf"
"""
"""Prepares the container. Ends it, with a reason, if that cannot be done. No text of a user is in it."""

_FOLLOW: Final = """\
# Of a job that uses too much memory, the kernel ends the process with the highest score. Slurm gives tasks 0;
# slurmstepd keeps that of the pod where it may not lower it, and a job whose slurmstepd has ended never ends.
for wanted in -1000 0; do
  read -r score < /proc/self/oom_score_adj
  if [ "$score" -le "$wanted" ]; then break; fi
  { echo "$wanted" > /proc/self/oom_score_adj; } 2>/dev/null && break
done
read -r score < /proc/self/oom_score_adj
[ "$score" -le 0 ] || fail "oom_score_adj is $score: out of memory, the kernel would end slurmstepd and not the job.\
 Set limits of cpu and memory, and no lower requests (QoS class Guaranteed), or add the capability SYS_RESOURCE"
DEFAULT_SIGNALS true 2>/dev/null && above='DEFAULT_SIGNALS' || above=
PREPARE_BESIDE
$above slurmd "$@" &
slurmd=$! ending=
trap 'ending=1; kill -TERM "$slurmd" 2>/dev/null || :' TERM INT
while kill -0 "$slurmd" 2>/dev/null && [ -z "$ending" ]; do
ATTEND_BESIDE
  sleep 5 &
  wait "$!" || :
  if [ "$(readlink "$given/..data" || echo none)" != "$seen" ]; then
    assemble
    kill -HUP "$slurmd" 2>/dev/null || :
  fi
done
code=0
wait "$slurmd" || code=$?
exit "$code"
""".replace("DEFAULT_SIGNALS", first_process.DEFAULT_SIGNALS)
"""Starts slurmd with the container's arguments, tells it of new files, reaps, and ends with it."""


def command(prepare: str = "", attend: str = "") -> tuple[str, ...]:
    """Return the command of slurmd's container, whose arguments are slurmd's.

    Parameters
    ----------
    prepare
        Lines of shell for what runs beside slurmd, which come before its start. A line that fails ends the container.
    attend
        Lines that come again every few seconds, from slurmd's start on.
    """
    follow = _FOLLOW.replace("PREPARE_BESIDE\n", prepare).replace("ATTEND_BESIDE\n", attend)
    return ("/bin/sh", "-c", FIRST_PROCESS + follow, "slurmd")


COMMAND: Final = command()
"""Where nothing runs beside slurmd."""


def security_context(more: Sequence[str] = ()) -> dict[str, Any]:
    """Of slurmd's container: root with SYS_ADMIN, which the mount profile of AppArmor would forbid to use.

    Parameters
    ----------
    more
        Further capabilities, of what runs beside slurmd.
    """
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "appArmorProfile": {"type": "Unconfined"},
        "capabilities": {"drop": ["ALL"], "add": [*CAPABILITIES, *more]},
    }


def volume(name: str, cluster: str) -> dict[str, Any]:
    """The volume with a Cluster's configuration; its files can be run, since scripts are among them."""
    return {"name": name, "configMap": {"name": naming.config(cluster), "defaultMode": 0o555}}


def is_confined(container: Mapping[str, Any]) -> bool:
    """Whether a slurmd container confines its jobs."""
    return any(mount.get("mountPath") == GIVEN_FOLDER for mount in container.get("volumeMounts") or ())


def environment(key: naming.KeySource | None) -> list[dict[str, str]]:
    """Variables by which slurmd finds its key: with files of its own, it would look for it beside them."""
    if key is None:
        return []
    variable = "SLURM_SACK_JWKS" if key.file == naming.SLURM_JWKS else "SLURM_SACK_KEY"
    return [{"name": variable, "value": f"{naming.CONF_FOLDER}/{key.file}"}]

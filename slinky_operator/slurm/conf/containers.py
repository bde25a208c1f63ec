"""oci.conf: how slurmd starts the containers of `srun --container`. Pure.

The runtime is crun. It runs as the user of the job, and needs neither capabilities nor a /proc of its own, so that it
works in a pod like any other. What each command has to do is decided by how Slurm calls it (24.11 and 26.05, measured):

- RunTimeRun is run by a shell as the user, in a folder that belongs to the user, but that all in the user's group may
  write to: it closes the folder, and takes no config.json that another user has put there.
- The others are run as root when the step has ended, with a task of which they know nothing. So they take no path from
  which a user could lead them elsewhere, and what is to be removed is removed as the user. `%b` must not be in them:
  there it is what the user gave to `--container`, in a command line of root's.
- Slurm itself ends the processes of a step. They are no secret to it, since the container has no PID namespace: signals
  reach the program, as they do without a container. A first process of a PID namespace would not hear of SIGTERM.
- Nor could there be one in a pod: the kernel refuses a new /proc beside one of which parts are hidden, as they are in
  pods. The container gets that of the node.

Slurm takes neither double quotes nor backslashes in a value. Nothing of a user's is in these lines but the names of
folders, which have letters, digits, dots, dashes and underscores only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OCI_CONF: Final = "oci.conf"

TWICE: Final = f"{OCI_CONF} is given by configFiles or configFileRefs already: remove one of them"

_CONFIG: Final = """\
(.process.user.uid // 0) as $u | (.process.user.gid // 0) as $g
 | .process.user = {uid: $u, gid: $g}
 | .linux.namespaces = [.linux.namespaces[]? | select(.type != $pid and .type != $user)] + [{type: $user}]
 | .linux.uidMappings = [{containerID: $u, hostID: $uid, size: 1}]
 | .linux.gidMappings = [{containerID: $g, hostID: $gid, size: 1}]
 | del(.linux.resources, .linux.cgroupsPath)
 | .mounts = [.mounts[]? | select(.destination != $proc)]
 | .mounts = [$proc, $ARGS.positional[] | {destination: ., type: $none, source: ., options: [$rbind]}] + .mounts
"""
"""What is changed in the config.json that Slurm has made of the bundle's: the user that the image asks for is the user
of the job outside, limits are Slurm's, and folders of the node are mounted first."""

_WORDS: Final = ("pid", "user", "none", "rbind")
"""Texts in it, which cannot be in quotes there."""


@dataclass(frozen=True, slots=True)
class ContainerConf:
    """What a Cluster says about containers."""

    mounts: tuple[str, ...] = ()
    """Folders of the node in every container."""


def text(conf: ContainerConf) -> str:
    """The file."""
    excluded = "^(SLURM_CONF|SLURM_CONF_SERVER)="
    values = {
        # They name files of the node, at which a Slurm command in a container would look in vain.
        "EnvExclude": excluded,
        "RunTimeEnvExclude": excluded,
        # Slurm asks only when all is over.
        "RunTimeQuery": "jq -n --arg status stopped '{status: $status}'",
        "RunTimeKill": "true",
        "RunTimeDelete": "setpriv --reuid=%U --regid=65534 --clear-groups rm -rf %m/task-*/crun",
        "RunTimeRun": _run(conf.mounts),
    }
    lines = (f'{key}="{value}"' for key, value in values.items())
    return "\n".join(("# Written by slurm-operator: srun --container, by crun, as the user of the job.", *lines, ""))


def _run(mounts: Sequence[str]) -> str:
    config = "%b/config.json"
    named = " ".join(f"--arg {word} {word}" for word in _WORDS)
    words = f"--argjson uid %U --argjson gid $(id -g) --arg proc /proc {named}"
    steps = (
        "set -efC",
        "umask 077",
        "chmod 700 %b %b/..",
        f"[ -O {config} ] || {{ echo 'slurm: another user has changed the container of this step' >&2; exit 1; }}",
        "set --",
        *((f"for f in {' '.join(mounts)}; do if [ -d $f ]; then set -- $@ $f; fi; done",) if mounts else ()),
        f"jq {words} '{_joined(_CONFIG)}' {config} --args $@ > %b/changed",
        f"mv -f %b/changed {config}",
        "exec crun --cgroup-manager=disabled --root=%b/crun run --bundle=%b job-%j.%s.%t",
    )
    return "; ".join(steps)


def _joined(lines: str) -> str:
    return " ".join(lines.split())

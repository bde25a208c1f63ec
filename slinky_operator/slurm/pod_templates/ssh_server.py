"""sshd beside a slurmd that confines its jobs: who has a running job on the node may log in, into that job.

sshd is in slurmd's own container, since `pam_slurm_adopt` needs the mounts, process ids and cgroups of slurmd: it finds
the sockets of steps in slurmd's spool folder, and has the job's external step (`PrologFlags=Contain`) take the process
of the session into its cgroups. So a session has the cores, memory and devices of the job, and ends with it.

The container's first process (`confinement`) starts sshd, and starts it again when it has ended. slurmd and jobs do not
depend on it: whatever fails here is said in the container's log, and slurmd goes on without sshd. A session is a child
of the first process once its sshd has ended, and goes on.

Files are in a folder of the container that only root may write. sshd accepts no keys from a volume, whose folders
anybody may write, so they are copied. Denied are users without a job, and everybody when Slurm cannot be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CAPABILITIES: Final = ("AUDIT_WRITE", "NET_BIND_SERVICE", "SYS_CHROOT")
"""What sshd needs beside slurmd's capabilities: it records logins, listens below 1024, and keeps strangers in an empty
folder."""

GIVEN_FOLDER: Final = "/etc/slurm-ssh"
USERS_FOLDER: Final = f"{GIVEN_FOLDER}/users"
HOST_KEYS_FOLDER: Final = f"{GIVEN_FOLDER}/host-keys"
"""Where Secrets of the NodeSet are mounted."""

USERS_VOLUME: Final = "ssh-users"
HOST_KEYS_VOLUME: Final = "ssh-host-keys"

HOST_KEYS: Final = "ssh_host_*_key"
"""Names of private host keys in their Secret, as a pattern of the shell."""

OWN_FOLDER: Final = "/etc/ssh/slurm"
"""What sshd reads; in the container's own file system."""

_PREPARE: Final = f"""\
ssh_given={GIVEN_FOLDER} ssh={OWN_FOLDER} ssh_pam=/etc/pam.d/sshd
sshd= ssh_users= ssh_failed= ssh_pause=0 ssh_left=0 ssh_age=0
ssh_says() {{ echo "ssh: $*" >&2; }}

copy_keys() {{
  chmod 0755 "$ssh_new" || return 1
  ssh_any=
  for file in "$ssh_given"/users/*; do
    [ -f "$file" ] || continue
    # sshd reads a user's keys as that user.
    ssh_any=1 && cp "$file" "$ssh_new/" && chmod 0644 "$ssh_new/${{file##*/}}" || return 1
  done
  ln -sfn "$ssh_new" "$ssh/keys.next" && mv -T "$ssh/keys.next" "$ssh/keys"
}}

take_keys() {{
  # Looked at first, as above.
  ssh_next=$(readlink "$ssh_given/users/..data" || echo none)
  ssh_old=$(readlink "$ssh/keys" || :)
  if ! ssh_new=$(mktemp -d "$ssh/keys.XXXXXX") || ! copy_keys; then
    [ -z "$ssh_new" ] || rm -rf "$ssh_new"
    [ "$ssh_next" = "$ssh_failed" ] || ssh_says "keys of users cannot be copied, and the former\
 ones are still accepted: tried again every 5 seconds"
    ssh_failed=$ssh_next
    return 1
  fi
  ssh_users=$ssh_next ssh_failed=
  [ -z "$ssh_old" ] || rm -rf "$ssh_old"
  [ ! -d "$ssh_given/users" ] || [ -n "$ssh_any" ] || ssh_says "the Secret of spec.ssh.authorizedKeysRef does not\
 exist, or is empty: only keys in home folders and in the directory are accepted"
}}

prepare_sshd() {{
  command -v sshd > /dev/null || {{ ssh_says "the image has no sshd: nobody can log in to this node"; return 1; }}
  ssh_module=
  for file in /lib/*/security /lib64/security /lib/security /usr/lib/*/security /usr/lib64/security; do
    [ ! -e "$file/pam_slurm_adopt.so" ] || ssh_module=$file
  done
  [ -n "$ssh_module" ] || {{ ssh_says "the image has no pam_slurm_adopt: nobody can log in to this node"; return 1; }}
  ssh_node= ssh_word=
  for word in "$@"; do
    [ "$ssh_word" != -N ] || ssh_node=$word
    ssh_word=$word
  done
  rm -rf "$ssh" && mkdir -p "$ssh" /run/sshd && chmod 0755 "$ssh" /run/sshd || return 1
  {{
    echo "account required pam_slurm_adopt.so nodename=$ssh_node action_no_jobs=deny action_unknown=newest\\
 action_adopt_failure=deny action_generic_failure=deny disable_x11=1"
    echo "auth required pam_deny.so"
    echo "password required pam_deny.so"
    echo "session required pam_permit.so"
  }} > "$ssh_pam" || return 1
  {{
    echo "Port PORT_NUMBER"
    echo "PidFile none"
    echo "PermitRootLogin no"
    echo "AuthorizedKeysFile $ssh/keys/%u .ssh/authorized_keys"
    if [ -x /usr/bin/sss_ssh_authorizedkeys ] && [ -d /var/lib/sss/pipes ]; then
      echo "AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys %u"
      echo "AuthorizedKeysCommandUser nobody"
    fi
    echo "PasswordAuthentication no"
    echo "KbdInteractiveAuthentication no"
    echo "UsePAM yes"
    echo "X11Forwarding no"
    echo "PrintMotd no"
    echo "AcceptEnv LANG LC_*"
    echo "ClientAliveInterval 60"
    echo "Subsystem sftp internal-sftp"
  }} > "$ssh/sshd_config" || return 1
  ssh_found=
  for file in "$ssh_given"/host-keys/{HOST_KEYS}; do
    [ -f "$file" ] || continue
    ssh_found=$ssh/${{file##*/}}
    cp "$file" "$ssh_found" && chmod 0600 "$ssh_found" && echo "HostKey $ssh_found" >> "$ssh/sshd_config" || return 1
  done
  if [ -z "$ssh_found" ]; then
    ssh-keygen -q -t ed25519 -N "" -f "$ssh/ssh_host_ed25519_key" || return 1
    echo "HostKey $ssh/ssh_host_ed25519_key" >> "$ssh/sshd_config"
    ssh_says "no host keys are mounted: this pod has made one of its own"
  fi
  # From OpenSSH 9.8 on. Who is refused for want of a job would lock out everybody else of the same login pod.
  cp "$ssh/sshd_config" "$ssh/sshd_config.next" && echo "PerSourcePenalties no" >> "$ssh/sshd_config.next"
  if sshd -t -f "$ssh/sshd_config.next" 2> /dev/null; then mv "$ssh/sshd_config.next" "$ssh/sshd_config"; fi
}}

attend_sshd() {{
  [ -n "$ssh" ] || return 0
  [ "$(readlink "$ssh_given/users/..data" || echo none)" = "$ssh_users" ] || take_keys
  if [ -n "$sshd" ] && kill -0 "$sshd" 2> /dev/null; then
    ssh_age=$((ssh_age + 1))
    return 0
  fi
  if [ -n "$sshd" ]; then
    ssh_says "sshd has ended, and is started again; sessions go on"
    sshd= ssh_pause=$((ssh_pause * 2 + 1))
    [ "$ssh_age" -lt 12 ] || ssh_pause=0
    [ "$ssh_pause" -le 60 ] || ssh_pause=60
    ssh_left=$ssh_pause
  fi
  if [ "$ssh_left" -gt 0 ]; then
    ssh_left=$((ssh_left - 1))
    return 0
  fi
  mkdir -p /run/sshd
  ssh_age=0
  $above "$(command -v sshd)" -D -e -f "$ssh/sshd_config" &
  sshd=$!
}}

prepare_sshd "$@" || {{ ssh_says "sshd is not started; slurmd is"; ssh=; }}
"""
"""Functions, and what is done once. No text of a user is in it, but names that Kubernetes has checked."""

ATTEND: Final = "  attend_sshd || :\n"
"""Starts sshd where it does not run, after a pause that grows while it ends at once, and takes new keys of users."""


def prepare(port: int) -> str:
    """Return what is done before slurmd starts: sshd is configured, and not started."""
    return _PREPARE.replace("PORT_NUMBER", str(port))


def volumes(users: str | None, host_keys: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return volumes and mounts of Secrets; they are optional, since slurmd starts without them.

    Parameters
    ----------
    users
        Name of the Secret with keys of users, if there is one.
    host_keys
        Name of the Secret with host keys, if there is one.
    """
    given: Mapping[str, tuple[str | None, str]] = {
        USERS_VOLUME: (users, USERS_FOLDER),
        HOST_KEYS_VOLUME: (host_keys, HOST_KEYS_FOLDER),
    }
    made: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for name, (secret, folder) in given.items():
        if secret is not None:
            made.append({"name": name, "secret": {"secretName": secret, "defaultMode": 0o400, "optional": True}})
            mounts.append({"name": name, "mountPath": folder, "readOnly": True})
    return made, mounts

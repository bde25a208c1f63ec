#!/bin/sh
# Before a login container starts: PAM's files of the image, with a line that makes the user's home folder.
#
# They go to a volume that the login container mounts read-only over the image's. Whatever the line does, a login goes on.
set -eu
umask 022
chmod 0755 /pam
if [ -d /etc/pam.d ]; then cp -R /etc/pam.d/. /pam/; fi
if [ -f /pam/sshd ]; then
    echo "session optional pam_exec.so quiet type=open_session /bin/sh /etc/slurm-login/scripts/make-home.sh" >> /pam/sshd
else
    echo "home folders: the image has no /etc/pam.d/sshd, so none is made at a login" >&2
fi

#!/bin/bash
set -euo pipefail
# An image whose entrypoint ran can be told from one where slurmd was started past it.
touch /run/entrypoint-was-here
export SLURMD_OPTIONS="${SLURMD_OPTIONS:-} $*"
export NOTIFY_SOCKET=/dev/null
exec bash -c "exec slurmd --systemd $SLURMD_OPTIONS"

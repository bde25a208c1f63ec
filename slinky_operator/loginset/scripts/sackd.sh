#!/bin/sh
# sackd, started again when the key that it has read is replaced. If it ends by itself, so does the container.
set -u
version() { readlink /etc/slurm/..data || echo none; }

ending=
trap 'ending=1; kill "$sackd"' TERM INT
while [ -z "$ending" ]; do
    key=$(version)
    # By its path: when Slurm's configuration changes, sackd starts itself again by the name that it was started with.
    "$(command -v sackd)" -D --conf-server "$1" &
    sackd=$!
    while kill -0 "$sackd" 2> /dev/null && [ -z "$ending" ] && [ "$(version)" = "$key" ]; do
        sleep 1 &
        wait $!
    done
    if [ -z "$ending" ] && kill -0 "$sackd" 2> /dev/null; then
        echo "the key has been replaced: sackd is started again" >&2
        kill "$sackd"
        wait "$sackd"
    else
        wait "$sackd"
        status=$?
        [ -n "$ending" ] || exit "$status"
    fi
done

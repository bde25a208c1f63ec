#!/bin/sh
# First process of a login container: sshd, with the configuration and the authorized keys that are mounted now.
#
# sshd accepts neither from a volume, whose folders anybody may write: they are copied. A new configuration is checked
# again before sshd reads it. A session goes on while its sshd reads a new configuration, and while it is started again.
set -u
mounted=/etc/slurm-login run=/run/slurm-login

umask 022
chmod 0755 /run
chmod 1777 /tmp
# Why the container has ended is quoted in conditions: the kubelet lets everybody write it.
chmod 0644 /dev/termination-log 2> /dev/null
mkdir -p /run/sshd "$run"

# What the kubelet has mounted: it changes the link when it has written new files.
version() { readlink "$mounted/$1/..data" || echo "$1"; }

take_config() {
    cp "$mounted/config/sshd_config" "$run/sshd_config.new" || return 1
    /usr/sbin/sshd -t -f "$run/sshd_config.new" || return 1
    mv "$run/sshd_config.new" "$run/sshd_config"
}

take_keys() {
    new="$run/keys.$(date +%s).$$"
    mkdir "$new" || return 1
    for file in "$mounted"/users/*; do
        [ -f "$file" ] && cp "$file" "$new/${file##*/}"
    done
    printf '\n' >> "$new/root"
    cat "$mounted/config/root_authorized_keys" >> "$new/root"
    # sshd reads a user's keys as that user.
    chmod 0644 "$new"/*
    old=$(readlink "$run/keys")
    ln -s "$new" "$run/keys.next" && mv -T "$run/keys.next" "$run/keys"
    [ -z "$old" ] || rm -rf "$old"
}

serve() {
    /usr/sbin/sshd -D -e -f "$run/sshd_config" &
    sshd=$!
}

config=$(version config) users=$(version users)
take_config || exit 1
take_keys
ending=
trap 'ending=1; kill "$sshd"' TERM INT
serve
while [ -z "$ending" ]; do
    sleep 2 &
    wait $!
    if [ "$(version config)" != "$config" ]; then
        config=$(version config)
        take_keys
        if take_config; then
            echo "sshd reads its new configuration" >&2
            kill -HUP "$sshd"
        else
            echo "sshd refuses the new configuration, and keeps the one it has" >&2
        fi
    fi
    if [ "$(version users)" != "$users" ]; then
        users=$(version users)
        take_keys
    fi
    if [ -z "$ending" ] && ! kill -0 "$sshd" 2> /dev/null; then
        echo "sshd has ended, and is started again; sessions go on" >&2
        serve
    fi
done
wait "$sshd"

#!/bin/sh
# Runs SSSD with a configuration that is mounted, and again when that changes.
#
#   $SSSD_CONF           the configuration; by default /config/sssd.conf. Other files beside it may be certificates.
#   /etc/sssd, /run      writable, empty
#   /var/lib/sss         writable: caches, which may outlive the container
#   /var/lib/sss/pipes   writable, shared with those who ask: the sockets
#   /var/lib/sss/pipes/offline   which domains it cannot reach, while it runs; see directory.pl
#   /run/refused         a configuration that leaves numbers of daemons to the directory, see ids.pl; never used
#   /run/tried           appears as soon as somebody may ask: SSSD listens, or cannot run, or has no configuration
#
# A daemon that starts after this container must not wait for a directory, nor for a configuration that is wrong.
set -u
umask 077

conf=${SSSD_CONF:-/config/sssd.conf} pipes=/var/lib/sss/pipes pid=''

stop_listening() {
    [ -z "${LISTENER:-}" ] || kill "$LISTENER" 2>/dev/null
    rm -f "$pipes/offline"
}

end() {
    stop_listening
    [ -z "$pid" ] || { kill -TERM "$pid" 2>/dev/null && wait "$pid"; }
    exit 0
}
trap end TERM INT

pause() {
    sleep 1 &
    wait $!
}

# A volume of a pod may belong to another group, which the sockets would inherit: clients trust only root's.
chgrp 0 "$pipes" && chmod 0755 "$pipes" || exit 1
rm -f "$pipes/nss"
stop_listening
mkdir -p "$pipes/private" /etc/sssd/conf.d /var/log/sssd
for folder in db gpo_cache secrets mc pubconf pubconf/krb5.include.d deskprofile; do
    mkdir -p "/var/lib/sss/$folder"
done
chmod 0755 /var/lib/sss/mc /var/lib/sss/pubconf

until [ -s "$conf" ]; do
    touch /run/tried
    echo "waiting for the configuration $conf" >&2
    pause
done
until ids.pl "$conf" >&2; do
    touch /run/tried
    echo "waiting for another configuration" >&2
    cp "$conf" /run/refused
    while cmp -s "$conf" /run/refused; do pause; done
done
cp "$conf" /etc/sssd/sssd.conf
chgrp 0 /etc/sssd/sssd.conf
chmod 0600 /etc/sssd/sssd.conf
rm -f /run/sssd.pid

LISTENER=$(directory.pl) || echo "nobody will know which directories cannot be reached" >&2
export LISTENER
sssd -i --logger=stderr &
pid=$!
while kill -0 "$pid" 2>/dev/null; do
    [ ! -S "$pipes/nss" ] || touch /run/tried
    if [ -s "$conf" ] && ! cmp -s "$conf" /etc/sssd/sssd.conf && ! cmp -s "$conf" /run/refused; then
        if ! ids.pl "$conf" >&2; then
            echo "SSSD goes on with the earlier configuration" >&2
            cp "$conf" /run/refused
            continue
        fi
        echo "the configuration has changed" >&2
        kill -TERM "$pid"
        wait "$pid"
        exec "$0"
    fi
    pause
done
wait "$pid"
status=$?
echo "SSSD has ended with status $status" >&2
stop_listening
# Time for whoever looks for this file.
touch /run/tried
pause
pause
pause
exit 1

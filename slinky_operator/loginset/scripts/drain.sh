#!/bin/sh
# Before a login container is stopped: a note on each terminal, then wait while sessions go on, for $1 seconds at most.
set -u
grace=$1
pod=$(hostname)

# One owner's process writes to their terminal: root may not, without capabilities. A stopped terminal waits alone.
note() {
    for tty in /dev/pts/[0-9]*; do
        [ -c "$tty" ] || continue
        owner=$(stat -c %u "$tty")
        timeout 5 setpriv --reuid "$owner" --regid "$owner" --clear-groups \
            sh -c 'printf "\r\n*** %s\r\n" "$1" > "$2"' note "$1" "$tty" 2> /dev/null &
    done
}

# SSH connections, commands started from outside (kubectl exec), and what users have left running. Connections that an
# earlier sshd has accepted belong to the first process since it has crashed.
sessions() {
    sshd=$(cat /run/sshd.pid 2> /dev/null || echo none)
    for status in /proc/[0-9]*/status; do
        pid=${status#/proc/} pid=${pid%/status} name='' parent='' user=''
        while read -r field value _; do
            case $field in
                Name:) name=$value ;;
                PPid:) parent=$value ;;
                Uid:) user=$value && break ;;
            esac
        done 2> /dev/null < "$status"
        case $parent in
            "$sshd") return 0 ;;
            0) [ "$pid" = 1 ] || [ "$pid" = $$ ] || return 0 ;;
            1)
                [ "$user" = 0 ] || return 0
                case $name in sshd*) [ "$pid" = "$sshd" ] || return 0 ;; esac
                ;;
        esac
    done
    return 1
}

sessions || exit 0
now=$(date +%s)
end=$((now + grace))
note "This login node ($pod) is being removed. Sessions here end at $(date -u -d "@$end" '+%H:%M:%S UTC'). Log in again to go on elsewhere."
warned=
while sessions && now=$(date +%s) && [ "$now" -lt "$end" ]; do
    if [ -z "$warned" ] && [ $((end - now)) -le 60 ] && [ "$grace" -gt 120 ]; then
        warned=1
        note "This login node ($pod) is being removed in one minute."
    fi
    sleep 1
done
exit 0

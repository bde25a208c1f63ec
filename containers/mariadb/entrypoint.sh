#!/bin/sh
# Lays out an empty data folder, brings that of an older series of MariaDB up to date, then becomes mariadbd.
#
# The system tables of an older series are upgraded by mariadb-upgrade, with a server that only this script can reach.
# What is ended half-way is done again by the next start: the file with the version is written last. Data of a newer
# series are refused: MariaDB cannot go back. So is a folder with other data but no system tables, such as that of an
# interrupted restore: nothing there is changed.
#
# Statements in /etc/mysql/init/init.sql (a Secret, say) are executed at each start, before connections are accepted:
# write them so that they may be repeated (CREATE DATABASE IF NOT EXISTS …; CREATE USER IF NOT EXISTS …; ALTER USER …).
set -eu
umask 027
data=/var/lib/mysql
statements=/etc/mysql/init/init.sql

fresh="$data/.being-laid-out"

# Names in the data folder beside those in the folder $1; what file systems have of their own does not count.
others() {
    for path in "$data"/* "$data"/.[!.]*; do
        name="${path##*/}"
        [ -e "$path" ] || [ -L "$path" ] || continue
        case "$name" in lost+found | .snapshot | .being-laid-out) continue ;; esac
        [ -e "$1/$name" ] || printf ' %s' "$name"
    done
}

refuse() {
    echo "mariadb: $data has data of another origin but no folder mysql, as after an interrupted restore:$1." \
        "Nothing was changed: finish the restore, or empty the volume for a new database" | cut -c 1-1000 >&2
    exit 1
}

# The folder `mysql` arrives last, by one rename, and $fresh stays until then: it marks a start that was ended half-way.
if [ ! -d "$data/mysql" ]; then
    if [ ! -d "$fresh" ]; then
        found="$(others /nonexistent)"
        [ -z "$found" ] || refuse "$found"
    fi
    rm -rf "$fresh"
    mkdir "$fresh"
    mariadb-install-db --no-defaults --datadir="$fresh" --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user=mysql > /dev/null
    # Only what an earlier start has moved here may be replaced.
    found="$(others "$fresh")"
    [ -z "$found" ] || refuse "$found"
    for made in "$fresh"/*; do
        name="${made##*/}"
        [ "$name" = mysql ] && continue
        rm -rf "${data:?}/$name"
        mv "$made" "$data/$name"
    done
    sync "$data"
    mv "$fresh/mysql" "$data/mysql"
    rm -rf "$fresh"
fi

# 11.8 of 11.8.6-MariaDB
series() { sed 's/^\([0-9]*\.[0-9]*\).*/\1/'; }

upgrade() {
    socket="$data/.upgrade.sock"
    mariadbd --skip-networking --socket="$socket" --pid-file="$data/.upgrade.pid" &
    server=$!
    trap 'kill -TERM "$server" 2>/dev/null' TERM INT
    until mariadb --user=mysql --socket="$socket" --execute="SELECT 1" > /dev/null 2>&1; do
        kill -0 "$server" 2>/dev/null || exit 1
        sleep 0.2
    done
    mariadb-upgrade --user=mysql --socket="$socket" --force >&2 || { kill -TERM "$server"; wait "$server"; exit 1; }
    kill -TERM "$server"
    wait "$server"
    trap - TERM INT
}

if [ "${1:-}" = mariadbd ]; then
    had="$(cat "$data/mariadb_upgrade_info" 2>/dev/null | series)"
    has="$(mariadbd --version | sed 's/.* Ver //' | series)"
    if [ -z "$had" ] || [ "$had" != "$has" ]; then
        newest="$(printf '%s\n' "$had" "$has" | sort --version-sort | tail -n 1)"
        if [ "$newest" != "$has" ]; then
            echo "mariadb: the data in $data are of MariaDB $had, which $has cannot read: use an image of $had" >&2
            exit 1
        fi
        echo "mariadb: upgrading the data in $data from ${had:-an unknown version} to $has" >&2
        upgrade
    fi
fi

if [ "${1:-}" = mariadbd ] && [ -r "$statements" ]; then
    shift
    set -- mariadbd "--init-file=$statements" "$@"
fi
exec "$@"

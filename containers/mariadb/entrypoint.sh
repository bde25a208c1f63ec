#!/bin/sh
# Lays out an empty data folder, then becomes mariadbd.
#
# Statements in /etc/mysql/init/init.sql (a Secret, say) are executed at each start, before connections are accepted:
# write them so that they may be repeated (CREATE DATABASE IF NOT EXISTS …; CREATE USER IF NOT EXISTS …; ALTER USER …).
set -eu
umask 027
data=/var/lib/mysql
statements=/etc/mysql/init/init.sql

# The folder `mysql` arrives last, by one rename: without it, an earlier start was ended half-way.
if [ ! -d "$data/mysql" ]; then
    fresh="$data/.being-laid-out"
    rm -rf "$fresh"
    mkdir "$fresh"
    mariadb-install-db --no-defaults --datadir="$fresh" --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user=mysql > /dev/null
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

if [ "${1:-}" = mariadbd ] && [ -r "$statements" ]; then
    shift
    set -- mariadbd "--init-file=$statements" "$@"
fi
exec "$@"

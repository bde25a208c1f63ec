#!/bin/sh
# Space and inodes of the file systems of CHECK_PATHS.
set -f
most=${CHECK_MAX_USED_PERCENT:-95}
look() { # path flag what
    answer=$(timeout -k 1 5 df "$2" "$1" 2>&1)
    if [ "$?" -ne 0 ]; then
        echo "$1: df: $(printf '%s\n' "$answer" | head -n 1)"
        exit 3
    fi
    used=$(printf '%s\n' "$answer" | tail -n 1 | tr -s ' ' | cut -d ' ' -f 5)
    used=${used%\%}
    case $used in
    '' | *[!0-9]*) return ;; # a file system without inodes says -
    esac
    if [ "$used" -gt "$most" ]; then
        echo "$1: $used % of $3 used, and $most % at most"
        exit 1
    fi
}
for path in ${CHECK_PATHS:-/ /tmp}; do
    look "$path" -P space
    look "$path" -Pi inodes
done
exit 0

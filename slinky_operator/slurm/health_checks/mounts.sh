#!/bin/sh
# Something is mounted on each folder of CHECK_PATHS, and answers.
set -f
for path in $CHECK_PATHS; do
    found=no
    while read -r _ place _; do
        if [ "$place" = "$path" ]; then found=yes; fi
    done < /proc/self/mounts
    if [ "$found" = no ]; then
        echo "nothing is mounted on $path"
        exit 1
    fi
    timeout -k 1 5 stat "$path" > /dev/null 2>&1
    case $? in
    0) ;;
    124 | 137)
        echo "$path does not answer"
        exit 1
        ;;
    *)
        echo "$path cannot be read"
        exit 1
        ;;
    esac
done
exit 0

#!/bin/sh
# Memory of the machine: free, with what its caches would give back, and in total, since a module may be lost.
total='' free=''
while read -r key value _; do
    case $key in
    MemTotal:) total=$((value / 1024)) ;;
    MemAvailable:) free=$((value / 1024)) ;;
    esac
done < /proc/meminfo
if [ -z "$total" ] || [ -z "$free" ]; then
    echo "/proc/meminfo does not say"
    exit 3
fi
if [ "$free" -lt "${CHECK_MIN_FREE_MB:-512}" ]; then
    echo "$free MB of memory free, and ${CHECK_MIN_FREE_MB:-512} expected"
    exit 1
fi
if [ "$total" -lt "${CHECK_MIN_TOTAL_MB:-0}" ]; then
    echo "$total MB of memory, and $CHECK_MIN_TOTAL_MB expected"
    exit 1
fi
exit 0

#!/bin/sh
# Ports of InfiniBand as the kernel shows them: all are active, or as many as CHECK_COUNT says, at CHECK_MIN_GBITS.
folder=/sys/class/infiniband
good=0 bad=''
for port in "$folder"/*/ports/*; do
    if [ ! -r "$port/link_layer" ]; then continue; fi
    read -r layer < "$port/link_layer"
    if [ "$layer" != InfiniBand ]; then continue; fi
    read -r state < "$port/state"
    read -r rate _ < "$port/rate"
    name=${port#"$folder/"}
    case $state in
    *ACTIVE)
        if [ "${rate%%.*}" -lt "${CHECK_MIN_GBITS:-0}" ]; then
            bad="${bad:-$name: $rate Gb/s, and ${CHECK_MIN_GBITS} expected}"
        else
            good=$((good + 1))
        fi
        ;;
    *) bad="${bad:-$name: $state}" ;;
    esac
done
if [ -n "${CHECK_COUNT:-}" ]; then
    if [ "$good" -ge "$CHECK_COUNT" ]; then exit 0; fi
    echo "$good good ports, and $CHECK_COUNT expected${bad:+; $bad}"
    exit 1
fi
if [ -n "$bad" ]; then
    echo "$bad"
    exit 1
fi
if [ "$good" -eq 0 ]; then
    echo "no InfiniBand in this container"
    exit 3
fi
exit 0

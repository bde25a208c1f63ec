#!/bin/sh
# GPUs as the driver shows them: how many, errors that ECC has not corrected, memory rows that could not be replaced or
# wait for a reset, and, where asked for, clocks slowed by the hardware and links that are down.
fail() {
    echo "$*"
    exit 1
}
ask() { # the answer of nvidia-smi; one that does not come means a GPU, or a driver, that hangs
    answer=$(timeout -k 1 15 nvidia-smi "$@" 2>&1)
    ended=$?
    case $ended in
    0 | 14) ;; # 14: the record of the board's data is damaged; the GPU works
    124 | 137) fail "nvidia-smi does not answer" ;;
    *) fail "nvidia-smi: $(printf '%s\n' "$answer" | head -n 1)" ;;
    esac
}
if ! command -v nvidia-smi > /dev/null; then
    echo "nvidia-smi is not in this image"
    exit 127
fi

ask --query-gpu=index,ecc.errors.uncorrected.volatile.total,clocks_throttle_reasons.hw_thermal_slowdown,clocks_throttle_reasons.hw_power_brake_slowdown --format=csv,noheader,nounits
count=0
while IFS=, read -r index errors hot brake; do
    if [ -z "$index" ]; then continue; fi
    count=$((count + 1))
    errors=$(printf %s "$errors" | tr -d ' ')
    case $errors in
    '' | *[!0-9]*) ;; # no ECC
    *) if [ "$errors" -gt "${CHECK_MAX_ECC_ERRORS:-0}" ]; then fail "GPU $index: $errors uncorrected ECC errors"; fi ;;
    esac
    if [ "${CHECK_CLOCKS:-false}" = true ]; then
        case "$hot,$brake" in
        ' Active'* | *', Active') fail "GPU $index: clocks are slowed down by the hardware" ;;
        esac
    fi
done << END
$answer
END
if [ "$count" -lt "${CHECK_COUNT:-1}" ]; then fail "$count GPUs, and ${CHECK_COUNT:-1} expected"; fi

ask --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader
while IFS=, read -r bus pending failed; do
    case "$failed" in
    *[1-9]* | *Yes*) fail "GPU $bus: a memory row could not be remapped" ;;
    esac
    case "$pending" in
    *[1-9]* | *Yes*) fail "GPU $bus: remapped memory rows wait for a reset" ;;
    esac
done << END
$answer
END

if [ "${CHECK_NVLINK:-false}" = true ]; then
    ask nvlink --status
    down=$(printf '%s\n' "$answer" | grep -c '<inactive>')
    if [ "$down" -gt 0 ]; then fail "$down NVLinks are down"; fi
fi
exit 0

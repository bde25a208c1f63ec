#!/bin/sh
# The quick diagnostics of DCGM (`dcgmi diag -r 1`), which may run beside jobs. They need its host engine.
if ! command -v dcgmi > /dev/null; then
    echo "dcgmi is not in this image"
    exit 127
fi
answer=$(dcgmi diag -r 1 2>&1)
ended=$?
failed=$(printf '%s\n' "$answer" | grep -m 1 -E '\| *Fail' | tr -s '| ' ' ')
if [ -n "$failed" ]; then
    echo "dcgmi:$failed"
    exit 1
fi
if [ "$ended" -ne 0 ]; then
    echo "dcgmi has ended with $ended: $(printf '%s\n' "$answer" | grep -m 1 .)"
    exit 3
fi
exit 0

#!/bin/sh
# The clock of the machine, as its chronyd sees it: the image has chronyc, and the pod its socket (/run/chrony).
if ! command -v chronyc > /dev/null; then
    echo "chronyc is not in this image"
    exit 127
fi
answer=$(timeout -k 1 10 chronyc -n -c tracking 2>&1)
if [ "$?" -ne 0 ]; then
    echo "chronyc: $(printf '%s\n' "$answer" | head -n 1)"
    exit 3
fi
offset=$(printf '%s\n' "$answer" | head -n 1 | cut -d , -f 5)
leap=$(printf '%s\n' "$answer" | head -n 1 | cut -d , -f 14)
if [ "$leap" = "Not synchronised" ]; then
    echo "the clock is not synchronised"
    exit 1
fi
offset=${offset#-}
case $offset in
[0-9]*.[0-9]*) ;;
*)
    echo "chronyc says no offset"
    exit 3
    ;;
esac
part=${offset#*.}000
rest=${part#???}
part=${part%"$rest"}
while [ "${#part}" -gt 1 ] && [ "${part#0}" != "$part" ]; do part=${part#0}; done
off=$((${offset%%.*} * 1000 + part))
if [ "$off" -gt "${CHECK_MAX_OFFSET_MS:-500}" ]; then
    echo "the clock is $off ms off, and ${CHECK_MAX_OFFSET_MS:-500} ms at most"
    exit 1
fi
exit 0

#!/bin/sh
# Runs the health checks of this node's NodeSet, and tells slurmctld what they say, in the comment of the node.
#
# It drains nothing, and always ends with 0: how many nodes may be out at a time is known to the operator alone, and
# Slurm would drain a node whose prolog or epilog fails. A check ends with 0 if the node is well, and with 1 if it is
# not; anything else, or no end at all, means that the check could not be run.
#
# Nothing waits for a check that hangs: what it says is read from files, each check has a lock that it keeps while it
# lives, and one that still runs is not started again. Of what a check prints, some thousand bytes are kept.
given=FOLDER_OF_CHECKS
state=FOLDER_OF_RESULTS
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077
node=${SLURMD_NODENAME:-}
if [ ! -r "$given/approved" ] || [ -z "$node" ]; then exit 0; fi

longest_wait=40   # seconds for all checks; Slurm ends a HealthCheckProgram after 60
longest_text=100  # characters of what a check says
repeats=2         # times that a report is sent again, since a slurmctld that is killed forgets the last seconds;
repeat_after=300  # one of a check that has not passed is sent again always, after so many seconds

case ${1:-} in
report) context=R ;;
*)
    case ${SLURM_SCRIPT_CONTEXT:-} in
    prolog*) context=P ;;
    epilog*) context=E ;;
    *) context=H ;;
    esac
    ;;
esac

mkdir -p "$state" && chmod 700 "$state" && mkdir -p "$state/results" "$state/locks" "$state/work" || exit 0

# The kubelet changes all files at once, by a link: one run reads the files of one time.
if [ -L "$given/..data" ]; then files=$given/$(readlink "$given/..data"); else files=$given; fi
table=$files/approved
if [ -r "$files/trial" ]; then
    while read -r word name _; do
        if [ "$word" = node ] && [ "$name" = "$node" ]; then table=$files/trial; fi
    done < "$files/trial"
fi
revision=none
while read -r word name _; do
    if [ "$word" = revision ]; then revision=$name; fi
done < "$table"

now() { date +%s; }

plain() { # what a check says, as one line of harmless characters
    tr '\n\t' '  ' | tr -cd 'A-Za-z0-9 ._:/%+,()@-' | cut -c "1-$longest_text"
}

keep() { # name state key text...: a result takes the place of the last one at once
    kept_name=$1
    shift
    printf '%s\n' "$*" > "$state/work/$kept_name.new.$$" && mv "$state/work/$kept_name.new.$$" "$state/results/$kept_name"
}

run() { # name timeout script parameters: run one check, and keep its result
    exec 9>> "$state/locks/$1"
    if ! flock -n 9; then
        read -r began < "$state/work/$1.began" || began=
        late=$(($(now) - ${began:-$(now)} - $2))
        if [ "$late" -gt 10 ]; then keep "$1" unknown "$3:$4" "has not ended $late s after its timeout of $2 s"; fi
        return
    fi
    now > "$state/work/$1.began"
    if [ ! -r "$files/$3" ]; then return; fi # the kubelet has just brought others
    if [ "$4" != - ]; then
        while IFS= read -r line; do export "CHECK_$line"; done < "$files/$4"
    fi
    out=$state/work/$1.out
    code=$state/work/$1.code
    : > "$code"
    {
        timeout -k 2 "$2" "$files/$3" < /dev/null
        echo "$?" > "$code"
    } 2>&1 | {
        head -c 4096 > "$out"
        cat > /dev/null
    }
    read -r ended < "$code" || ended=137
    said=$(head -n 1 "$out" | plain)
    case $ended in
    0) keep "$1" passed "$3:$4" ;;
    1) keep "$1" failed "$3:$4" "${said:-it says nothing}" ;;
    124 | 137) keep "$1" unknown "$3:$4" "did not end within $2 s" ;;
    126 | 127) keep "$1" unknown "$3:$4" "exit code $ended, a program is missing: ${said:-it says nothing}" ;;
    *) keep "$1" unknown "$3:$4" "exit code $ended: ${said:-it says nothing}" ;;
    esac
}

run_all() {
    started='' listed=''
    while read -r word name contexts limit script parameters; do
        if [ "$word" != check ]; then continue; fi
        listed=yes
        case $contexts in
        *"$context"*) ;;
        *) continue ;;
        esac
        rm -f "$state/work/$name.done.$$"
        # No check keeps Slurm's pipe, which would be waited for.
        (
            run "$name" "$limit" "$script" "$parameters"
            : > "$state/work/$name.done.$$"
        ) > /dev/null 2>&1 &
        started="$started $name"
    done < "$table"
    # At each interval it is also told which checks the node has, even if they all run with jobs.
    if [ -z "$started" ] && { [ "$context" != H ] || [ -z "$listed" ]; }; then exit 0; fi
    waited=0
    for name in $started; do
        while [ ! -e "$state/work/$name.done.$$" ] && [ "$waited" -lt $((longest_wait * 20)) ]; do
            sleep 0.05
            waited=$((waited + 1))
        done
        rm -f "$state/work/$name.done.$$"
    done
}

compose() { # sets `report` and `sign`, which is reported again when it changes
    report='' sign=$revision
    while read -r word name contexts _ script parameters; do
        if [ "$word" != check ]; then continue; fi
        kind='' key='' text=''
        if [ -r "$state/results/$name" ]; then read -r kind key text < "$state/results/$name" || :; fi
        if [ "$key" != "$script:$parameters" ]; then
            # Without a result of this version; a prolog or epilog may not come for days.
            case $contexts in
            *H*) kind=pending text= ;;
            *) continue ;;
            esac
        fi
        if [ "$kind" = passed ]; then continue; fi
        sign="$sign $name=$kind"
        report="$report|$name $kind${text:+ $text}"
    done < "$table"
}

tell() { # writes the comment, if it says anything new
    exec 8>> "$state/locks/..report"
    flock -w 5 8 || return 0
    compose
    since='' sent=0 last=0 old=
    if [ -r "$state/reported" ]; then read -r since sent last old < "$state/reported" || :; fi
    if [ "$old" = "$sign" ]; then
        if [ -z "$report" ] && [ "$sent" -ge "$repeats" ]; then return 0; fi
        if [ $(($(now) - last)) -lt "$repeat_after" ]; then return 0; fi
        sent=$((sent + 1))
    else
        since=$(now) sent=0
    fi
    if timeout 8 scontrol update "NodeName=$node" "Comment=slurm-operator checks $revision $since$report" \
        > /dev/null 2>&1 8>&-; then
        printf '%s %s %s %s\n' "$since" "$sent" "$(now)" "$sign" > "$state/reported.new" \
            && mv "$state/reported.new" "$state/reported"
        return 0
    fi
    return 1
}

if [ "$context" = R ]; then
    # slurmd runs its first checks before it registers: slurmctld does not know the node yet.
    for _ in 1 2 3 4 5 6 7 8; do
        sleep 3
        if tell; then exit 0; fi
    done
    exit 0
fi
run_all
if ! tell; then setsid sh "$0" report < /dev/null > /dev/null 2>&1 8>&- & fi
exit 0

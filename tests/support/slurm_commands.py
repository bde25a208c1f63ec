"""What Slurm's own commands print, as the exporter's families should show it.

Nothing of the exporter is used: names, labels and sums are formed here from the text that an administrator reads.
`sdiag` is read by `tests.support.sdiag`. Values are by family and by label values in the order of the label names.
Gauges that are zero are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

MIB: Final = 1024 * 1024
ENDED: Final = frozenset({"cancelled", "completed", "deadline", "failed", "node_fail", "out_of_memory", "timeout"})
WAIT_FOR_NODES: Final = frozenset({"None", "Priority", "ReqNodeNotAvail", "Resources"})
DESCRIPTIONS: Final = {"Nodes required for job are DOWN": "Resources"}
"""Sentences, up to their first comma, that `squeue` prints in place of a reason."""
NOT_USABLE: Final = frozenset({"drain", "maintenance", "reserved", "invalid_reg", "not_responding"})

Labels = tuple[str, ...]
Values = dict[str, dict[Labels, float]]
Run = Callable[..., str]
"""Run a command, given as words, and return what it prints."""


class Sums:
    """Sums by family and labels."""

    def __init__(self) -> None:
        self._values: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, family: str, labels: Labels, value: float) -> None:
        """Add to one sample."""
        self._values[family][labels] += value

    def all(self) -> Values:
        """All samples."""
        return {family: dict(found) for family, found in self._values.items()}

    def values(self) -> Values:
        """All samples that are not zero."""
        return {family: {k: v for k, v in found.items() if v} for family, found in self.all().items()}


def records(text: str) -> Iterator[dict[str, str]]:
    """Read lines of `scontrol --oneliner show`: words with an equals sign in them."""
    for line in text.splitlines():
        yield dict(re.findall(r"(\w+)=(\S*)", line))


def columns(run: Run, command: Iterable[str], fields: Iterable[str]) -> Iterator[list[str]]:
    """Read lines of `sinfo` or `squeue` with `--Format`."""
    wanted = ",".join(f"{field}:200|" for field in fields)
    for line in run(*command, "-h", "-O", wanted).splitlines():
        yield [word.strip() for word in line.split("|")[:-1]]


def gres(text: str) -> dict[tuple[str, str], int]:
    """Read `gpu:a100:4(IDX:0-3)`: count by name and type."""
    return {(name, kind): int(count) for name, kind, count in re.findall(r"(\w+):(?:(\w+):)?(\d+)", text)}


def seconds(text: str) -> float:
    """Read a point in time, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# nodes


def nodes(run: Run) -> Values:
    """Sums over nodes by `sinfo`, single nodes by `scontrol`."""
    sums = Sums()
    fields = ("nodelist", "partition", "cpusstate", "memory", "allocmem", "gres", "gresused", "statecomplete")
    seen: set[str] = set()
    for name, partition, *rest in columns(run, ("sinfo", "-a", "-N"), fields):
        _add_node(sums, "partition_", (partition.rstrip("*"),), rest)
        if name not in seen:
            seen.add(name)
            _add_node(sums, "", (), rest)
    for record in records(run("scontrol", "-o", "-d", "show", "nodes")):
        _add_single(sums, record)
    return sums.values()


def _add_node(sums: Sums, prefix: str, before: Labels, fields: list[str]) -> None:
    cpus, memory, used_memory, all_gres, used_gres, state = fields
    base, *flags = state.lower().split("+")
    usable = not NOT_USABLE.intersection(flags) and base != "down"
    free = "idle" if usable else "unavailable"
    sums.add(f"{prefix}nodes", (*before, base), 1)
    sums.add(f"{prefix}nodes_usable", before, usable)
    if not prefix:
        for flag in flags:
            sums.add("nodes_flagged", (flag,), 1)
        if "drain" in flags:
            sums.add("nodes_drain", ("draining" if base in {"allocated", "mixed"} else "drained",), 1)
    allocated, idle, other, total = map(int, cpus.split("/"))
    assert allocated + idle + other == total
    sums.add(f"{prefix}cpus", (*before, "allocated"), allocated)
    sums.add(f"{prefix}cpus", (*before, free), idle + other)
    sums.add(f"{prefix}memory_bytes", (*before, "allocated"), int(used_memory) * MIB)
    sums.add(f"{prefix}memory_bytes", (*before, free), (int(memory) - int(used_memory)) * MIB)
    taken = gres(used_gres)
    for (name, kind), count in gres(all_gres).items():
        where = (name, *before)
        sums.add(f"{prefix}gres", (*where, "allocated", kind), taken[name, kind])
        sums.add(f"{prefix}gres", (*where, free, kind), count - taken[name, kind])


def _add_single(sums: Sums, record: Mapping[str, str]) -> None:
    name = record["NodeName"]
    base, *flags = record["State"].lower().split("+")
    sums.add("node_state", (name, base), 1)
    sums.add("node_usable", (name,), not NOT_USABLE.intersection(flags) and base != "down")
    sums.add("node_info", (record["Arch"], name, record["Version"]), 1)
    sums.add("node_cpus", (name,), int(record["CPUTot"]))
    sums.add("node_cpus_allocated", (name,), int(record["CPUAlloc"]))
    sums.add("node_load", (name,), float(record["CPULoad"]))
    sums.add("node_memory_bytes", (name,), int(record["RealMemory"]) * MIB)
    sums.add("node_memory_allocated_bytes", (name,), int(record["AllocMem"]) * MIB)
    sums.add("node_memory_free_bytes", (name,), int(record["FreeMem"]) * MIB)
    sums.add("node_boot_time_seconds", (name,), seconds(record["BootTime"]))
    taken = gres(record.get("GresUsed", ""))
    for (kind, model), count in gres(record["Gres"]).items():
        sums.add("node_gres", (kind, name, model), count)
        sums.add("node_gres_allocated", (kind, name, model), taken[kind, model])


# jobs


def jobs(run: Run) -> Values:
    """Sums over jobs by `squeue`; the state behind `COMPLETING` is that of `sacct`."""
    sums = Sums()
    command = ("squeue", "-a", "-r", "-t", "all")
    fields = ("jobarrayid", "state", "reason", "partition", "username", "account", "qos", "numcpus", "numnodes")
    largest: dict[str, list[int]] = {}
    for job, shown, reason, partitions, user, account, qos, cpus, count, tres in columns(
        run, command, (*fields, "tres-alloc")
    ):
        state = recorded(run, job) if shown == "COMPLETING" else shown.lower()
        asked = 0 if state in ENDED and shown != "COMPLETING" else int(cpus)
        sums.add("jobs", (state,), 1)
        sums.add("jobs_flagged", ("completing",), shown == "COMPLETING")
        for labels, family in (
            ((qos, state), "qos_jobs"),
            ((account, state), "account_jobs"),
            ((state, user), "user_jobs"),
            *(((name, state), "partition_jobs") for name in partitions.split(",")),
        ):
            sums.add(family, labels, 1)
            sums.add(f"{family}_cpus", labels, asked)
        if asked:
            _add_asked(sums, state, asked, int(count), tres)
        if state == "pending":
            why = DESCRIPTIONS.get(reason.split(",")[0], reason.split(",")[0])
            sums.add("jobs_pending", (why,), 1)
            sums.add("jobs_held", (), why.startswith("JobHeld"))
            for name in partitions.split(","):
                sums.add("partition_jobs_pending", (name, why), 1)
                if why in WAIT_FOR_NODES:
                    sums.add("partition_nodes_wanted", (name,), int(count))
                    sums.add("partition_cpus_wanted", (name,), int(cpus))
                    largest.setdefault(name, []).append(int(count))
    for name, counts in largest.items():
        sums.add("partition_pending_job_nodes_max", (name,), max(counts))
        sums.add("partition_pending_job_nodes_min", (name,), min(counts))
    sums.add("job_records", (), len(run("squeue", "-a", "-h", "-t", "all", "-o", "%i").splitlines()))
    return sums.values()


def _add_asked(sums: Sums, state: str, cpus: int, nodes: int, tres: str) -> None:
    sums.add("jobs_cpus", (state,), cpus)
    sums.add("jobs_nodes", (state,), nodes)
    amounts = dict(re.findall(r"([\w/:]+)=(\d+)", tres))
    sums.add("jobs_memory_bytes", (state,), int(amounts.get("mem", 0)) * MIB)
    typed = {name: int(count) for name, count in amounts.items() if name.startswith("gres/") and ":" in name}
    for name, count in typed.items():
        kind, model = name.removeprefix("gres/").split(":")
        sums.add("jobs_gres", (kind, state, model), count)
    for name, count in amounts.items():
        if name.startswith("gres/") and ":" not in name:
            rest = int(count) - sum(n for other, n in typed.items() if other.startswith(f"{name}:"))
            sums.add("jobs_gres", (name.removeprefix("gres/"), state, ""), rest)


def recorded(run: Run, job: str) -> str:
    """State of a job in slurmdbd; empty if it has none."""
    return run("sacct", "-X", "-n", "-P", "-j", job, "-o", "state").split(" ")[0].strip().lower()


def started(run: Run) -> dict[str, int]:
    """Jobs that were started or have ended, by their state in slurmdbd."""
    lines = run("sacct", "-X", "-a", "-n", "-P", "--array", "-S", "now-1day", "-o", "state").splitlines()
    return dict(Counter(state for line in lines if (state := line.split(" ")[0].lower()) != "pending"))


def oldest(run: Run) -> float:
    """When the first pending job that is not held became eligible, since 1970."""
    found = columns(run, ("squeue", "-a", "-r", "-t", "PD"), ("reason", "eligibletime"))
    times = [seconds(time) for reason, time in found if time != "N/A" and not reason.startswith("JobHeld")]
    return min(time for time in times if time <= datetime.now(UTC).timestamp())


# what else there is


def partitions(run: Run) -> Values:
    """Partitions by `scontrol`."""
    sums = Sums()
    for record in records(run("scontrol", "-o", "-a", "show", "partitions")):
        name = record["PartitionName"]
        sums.add("partition_up", (name,), record["State"] == "UP")
        sums.add("partition_state", (name, record["State"].lower()), 1)
        sums.add("partition_priority_tier", (name,), int(record["PriorityTier"]))
        sums.add("partition_time_limit_seconds", (name,), _limit(record["MaxTime"]))
    return sums.values()


def _limit(text: str) -> float:
    if text == "UNLIMITED":
        return float("inf")
    days, _, clock = text.rpartition("-")
    hours, minutes, rest = map(int, clock.split(":"))
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest


def holdings(run: Run) -> Values:
    """Licenses and reservations by `scontrol`."""
    sums = Sums()
    for record in records(run("scontrol", "-o", "show", "licenses")):
        name = record["LicenseName"]
        for family, field in (("", "Total"), ("_used", "Used"), ("_free", "Free"), ("_reserved", "Reserved")):
            sums.add(f"licenses{family}", (name,), int(record[field]))
    for record in records(run("scontrol", "-o", "show", "reservations")):
        name = record["ReservationName"]
        sums.add("reservation_active", (name,), record["State"] == "ACTIVE")
        sums.add("reservation_nodes", (name,), int(record["NodeCnt"]))
        sums.add("reservation_cores", (name,), int(record["CoreCnt"]))
        sums.add("reservation_start_time_seconds", (name,), seconds(record["StartTime"]))
        sums.add("reservation_end_time_seconds", (name,), seconds(record["EndTime"]))
    return sums.values()


def shares(run: Run) -> Values:
    """Fair share by `sshare`, which prints six digits."""
    sums = Sums()
    fields = ("Account", "User", "NormShares", "EffectvUsage", "RawUsage", "FairShare")
    for line in run("sshare", "-a", "-l", "-n", "-P", "-o", ",".join(fields)).splitlines():
        account, user, norm, effective, raw, factor = (word.strip() for word in line.split("|"))
        sums.add("share_normalized", (account, user), float(norm or 0))
        sums.add("share_usage_effective", (account, user), float(effective or 0))
        sums.add("share_usage_seconds", (account, user), float(raw))
        sums.add("share_factor", (account, user), float(factor or 0) if user else 0)
    return sums.values()


def services(run: Run) -> Values:
    """The daemons that answer by `scontrol ping` and `sacctmgr ping`."""
    sums = Sums()
    for family, command in (("slurmctld_up", "scontrol"), ("slurmdbd_up", "sacctmgr")):
        for host, state in re.findall(r"at (\S+) is (\w+)", run(command, "ping")):
            sums.add(family, (host,), state == "UP")
    return sums.values()

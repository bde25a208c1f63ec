"""What `sdiag` prints, as the exporter's families should show it.

Gauges and counters are formed from its text alone, as in `tests.support.slurm_commands`.
"""

from __future__ import annotations

import re
from typing import Final

from tests.support.slurm_commands import Run, Sums, Values

EXITS: Final = {
    "End of job queue": "end_job_queue",
    "Hit default_queue_depth": "default_queue_depth",
    "Hit sched_max_job_start": "max_job_start",
    "Blocked on licenses": "licenses",
    "Hit max_rpc_cnt": "max_rpc_cnt",
    "Timeout (max_sched_time)": "max_sched_time",
}
BACKFILL_EXITS: Final = {
    "End of job queue": "end_job_queue",
    "Hit bf_max_job_start": "bf_max_job_start",
    "Hit bf_max_job_test": "bf_max_job_test",
    "System state changed": "state_changed",
    "Hit table size limit (bf_node_space_size)": "bf_node_space_size",
    "Timeout (bf_max_time)": "bf_max_time",
}


def scheduler(run: Run) -> tuple[Values, Values, dict[str, tuple[str, int, int]]]:
    """Numbers of `sdiag`: gauges, counters since its counters began, and mean values.

    Of some counters it prints only the mean, cut to an integer: by family of the sum, the family that it is divided by,
    the mean, and the parts of a base unit that the mean is in.
    """
    text = run("sdiag")
    head, main, exits, backfill, backfill_exits, by_type, by_user, waiting = re.split(
        r"\n(?:Main schedule statistics|Main scheduler exit|Backfilling stats|Backfill exit"
        r"|Remote Procedure Call statistics by message type|Remote Procedure Call statistics by user"
        r"|Pending RPC statistics)",
        text,
    )
    gauges, counters = Sums(), Sums()
    for family, words in (
        ("server_threads", "Server thread count"),
        ("agents", "Agent count"),
        ("agent_queue_length", "Agent queue size"),
        ("slurmdbd_queue_length", "DBD Agent queue size"),
    ):
        gauges.add(family, (), _number(head, words))
    gauges.add("stats_since_seconds", (), _stamp(head, "Data since"))
    for word in ("submitted", "started", "completed", "canceled", "failed"):
        counters.add(f"jobs_{word}_total", (), _number(head, f"Jobs {word}"))
    for prefix, part in (("schedule", main), ("backfill", backfill)):
        gauges.add(f"{prefix}_cycle_last_seconds", (), round(_number(part, "Last cycle") * 1e-6, 9))
        gauges.add(f"{prefix}_cycle_max_seconds", (), round(_number(part, "Max cycle") * 1e-6, 9))
        gauges.add(f"{prefix}_queue_length", (), _number(part, "Last queue length"))
        counters.add(f"{prefix}_cycles_total", (), _number(part, "Total cycles"))
    gauges.add("backfill_last_run_time_seconds", (), _stamp(backfill, "Last cycle when:"))
    gauges.add("backfill_table_size", (), _number(backfill, "Last table size"))
    since = "Total backfilled jobs (since last stats cycle start)"
    counters.add("backfill_jobs_started_total", (), _number(backfill, since))
    het = "Total backfilled heterogeneous job components"
    counters.add("backfill_het_jobs_started_total", (), _number(backfill, het))
    for family, part, reasons in (
        ("schedule_exits_total", exits, EXITS),
        ("backfill_exits_total", backfill_exits, BACKFILL_EXITS),
    ):
        for words, reason in reasons.items():
            counters.add(family, (reason,), _number(part, words))
    for kind, part in (("rpc", by_type), ("user_rpc", by_user)):
        for name, count, total in re.findall(r"(\w+)\s+\([\s\d]+\) count:(\d+)\s+\S+\s+total_time:(\d+)", part):
            counters.add(f"{kind}s_total", (name,), int(count))
            counters.add(f"{kind}_seconds_total", (name,), int(total) * 1e-6)
    for name, count in re.findall(r"(\w+)\s+\([\s\d]+\) count:(\d+)", waiting):
        gauges.add("rpcs_pending", (name,), int(count))
    micro = 1_000_000
    means = {
        "schedule_cycle_seconds_total": ("schedule_cycles_total", _mean(main, "Mean cycle"), micro),
        "schedule_jobs_considered_total": ("schedule_cycles_total", _mean(main, "Mean depth cycle"), 1),
        "backfill_cycle_seconds_total": ("backfill_cycles_total", _mean(backfill, "Mean cycle"), micro),
        "backfill_jobs_considered_total": ("backfill_cycles_total", _mean(backfill, "Depth Mean"), 1),
        "backfill_jobs_tried_total": ("backfill_cycles_total", _mean(backfill, "Depth Mean (try depth)"), 1),
    }
    return gauges.values(), counters.all(), means


def _number(text: str, words: str) -> int:
    found = re.search(rf"^\s*{re.escape(words)}:\s*(\d+)", text, re.MULTILINE)
    assert found is not None, f"sdiag does not print {words!r}"
    return int(found[1])


def _mean(text: str, words: str) -> int:
    """A mean, which is not printed before there was a cycle."""
    found = re.search(rf"^\s*{re.escape(words)}:\s*(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _stamp(text: str, words: str) -> int:
    found = re.search(rf"{re.escape(words)}.*\((\d+)\)", text)
    return int(found[1]) if found else 0

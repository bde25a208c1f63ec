"""Panels about SlurmJobs, of the operator's own metrics: a row of its dashboard."""

from __future__ import annotations

from typing import Final

from hack.dashboards.panels import Panel, Query


def _share(metric: str, share: float) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


SLURMJOBS: Final = (
    "SlurmJobs",
    (
        Panel(
            "By state",
            "As their column STATE has it.",
            [Query("sum by (state) (slurm_operator_slurmjobs)", "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Not in Slurm",
            "SlurmJobs that Slurm does not have, by reason.",
            [Query("sum by (reason) (slurm_operator_slurmjobs_waiting) > 0", "{{reason}}")],
            stacked=True,
        ),
        Panel(
            "Submissions",
            "Calls by outcome; those that Slurm refuses are repeated.",
            [
                Query(
                    "sum by (outcome) (increase(slurm_operator_slurmjob_submissions_total[$__rate_interval]))",
                    "{{outcome}}",
                )
            ],
            stacked=True,
        ),
        Panel(
            "Until Slurm has them",
            "Half and nine of ten were submitted in less, not counting what they waited for themselves.",
            [
                Query(_share("slurm_operator_slurmjob_submit_duration_seconds", 0.5), "half"),
                Query(_share("slurm_operator_slurmjob_submit_duration_seconds", 0.9), "nine of ten"),
            ],
            "s",
        ),
        Panel(
            "In Slurm's queue",
            "Half and nine of ten of the jobs that started had waited for less.",
            [
                Query(_share("slurm_operator_slurmjob_pending_duration_seconds", 0.5), "half"),
                Query(_share("slurm_operator_slurmjob_pending_duration_seconds", 0.9), "nine of ten"),
            ],
            "s",
        ),
        Panel(
            "Ends",
            "By reason, with those that left a job behind or of which nobody knows whether there is one.",
            [
                Query(
                    "sum by (reason) (increase(slurm_operator_slurmjobs_ended_total[$__rate_interval])) > 0",
                    "{{reason}}",
                ),
                Query("sum(increase(slurm_operator_slurmjobs_left_behind_total[$__rate_interval]))", "left behind"),
                Query(
                    "sum(increase(slurm_operator_slurmjob_submissions_unknown_total[$__rate_interval]))",
                    "unknown",
                ),
            ],
            stacked=True,
        ),
    ),
)

"""What the operator does is counted from zero, under causes that the code names."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from slinky_operator.cluster.memory.rollout import Outcome
from slinky_operator.metrics.changes import (
    DELETED,
    MOST_PREFLIGHTS,
    PREFLIGHT_OUTCOMES,
    SEVERAL,
    UNDRAINED,
    UNKNOWN,
    Changes,
    label_of,
)
from slinky_operator.metrics.job_changes import OUTCOMES


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def changes(registry: CollectorRegistry) -> Changes:
    return Changes(registry, causes=("scale-in", "update"), without_drain=("given-up",))


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"slurm_operator_{name}", labels)


def test_every_cause_begins_at_zero(registry: CollectorRegistry, changes: Changes) -> None:
    assert changes is not None
    for cause in ("scale-in", "update", SEVERAL, UNKNOWN):
        assert sample(registry, "drains_started_total", cause=cause) == 0
        assert sample(registry, "pods_deleted_total", cause=cause) == 0
        for outcome in (DELETED, UNDRAINED):
            assert sample(registry, "drain_duration_seconds_count", cause=cause, outcome=outcome) == 0
    assert sample(registry, "pods_deleted_total", cause="given-up") == 0


def test_combinations_of_causes_are_one_label() -> None:
    assert label_of({"update"}) == "update"
    assert label_of({"update", "scale-in"}) == SEVERAL
    assert label_of(()) == UNKNOWN


def test_a_drain_from_its_start_to_its_end(registry: CollectorRegistry, changes: Changes) -> None:
    changes.drains_started({"scale-in"}, 2)
    changes.drain_ended({"scale-in"}, DELETED, 90.0)
    # Slurm's clock may be ahead of the operator's.
    changes.drain_ended({"scale-in"}, DELETED, -1.0)
    assert sample(registry, "drains_started_total", cause="scale-in") == 2
    assert sample(registry, "drain_duration_seconds_count", cause="scale-in", outcome=DELETED) == 2
    assert sample(registry, "drain_duration_seconds_sum", cause="scale-in", outcome=DELETED) == 90.0


def test_a_preflight_has_a_duration_only_if_this_process_began_it(
    registry: CollectorRegistry, changes: Changes
) -> None:
    changes.preflight_ended("uid", "a", "passed", 7.0)
    assert sample(registry, "preflight_duration_seconds_count", outcome="passed") == 0
    changes.preflight_started("uid", "a", 10.0)
    changes.preflight_started("uid", "a", 12.0)
    changes.preflight_ended("uid", "a", "passed", 15.0)
    assert sample(registry, "preflight_duration_seconds_sum", outcome="passed") == 5.0


def test_preflights_that_never_end_are_forgotten(registry: CollectorRegistry, changes: Changes) -> None:
    for number in range(MOST_PREFLIGHTS + 1):
        changes.preflight_started("uid", str(number), 0.0)
    changes.preflight_ended("uid", "0", "passed", 1.0)
    changes.preflight_ended("uid", "1", "passed", 1.0)
    assert sample(registry, "preflight_duration_seconds_count", outcome="passed") == 1


def test_a_configuration_counts_from_when_it_was_described_to_when_it_runs(
    registry: CollectorRegistry, changes: Changes
) -> None:
    def told() -> tuple[float | None, float | None]:
        return tuple(sample(registry, f"config_rollout_duration_seconds_{what}") for what in ("count", "sum"))  # type: ignore[return-value]

    # A new Cluster runs none yet, and one that runs what it describes changes nothing.
    changes.configuration("new", "a", "", 1.0)
    changes.configuration("new", "a", "a", 5.0)
    changes.configuration("uid", "a", "a", 5.0)
    assert told() == (0, 0)
    # Of two changes in a row the last one is applied.
    changes.configuration("uid", "b", "a", 10.0)
    changes.configuration("uid", "c", "a", 20.0)
    changes.configuration("uid", "c", "a", 25.0)
    changes.configuration("uid", "c", "c", 32.0)
    changes.configuration("uid", "c", "c", 40.0)
    assert told() == (1, 12.0)
    # One that is taken back has not been applied.
    changes.configuration("uid", "d", "c", 50.0)
    changes.configuration("uid", "c", "c", 60.0)
    assert told() == (1, 12.0)


def test_configurations_that_are_never_applied_are_forgotten(registry: CollectorRegistry, changes: Changes) -> None:
    for number in range(MOST_PREFLIGHTS + 1):
        changes.configuration(str(number), "b", "a", 0.0)
    for number in range(MOST_PREFLIGHTS + 1):
        changes.configuration(str(number), "b", "b", 1.0)
    assert sample(registry, "config_rollout_duration_seconds_count") == MOST_PREFLIGHTS


def test_the_outcomes_of_preflights_are_those_there_are() -> None:
    assert {outcome.name.lower() for outcome in Outcome} == set(PREFLIGHT_OUTCOMES)


def test_figures_of_jobs_begin_at_zero_and_times_are_never_negative(registry: CollectorRegistry) -> None:
    jobs = Changes(registry, ends=("Completed",)).jobs
    assert [sample(registry, "slurmjob_submissions_total", outcome=one) for one in OUTCOMES] == [0] * len(OUTCOMES)
    assert sample(registry, "slurmjobs_ended_total", reason="Completed") == 0
    for name in ("slurmjobs_left_behind_total", "slurmjob_submissions_unknown_total"):
        assert sample(registry, name) == 0
    jobs.submitted(-1.0)
    jobs.started(-1.0)
    for name in ("submit", "pending"):
        assert sample(registry, f"slurmjob_{name}_duration_seconds_sum") == 0
        assert sample(registry, f"slurmjob_{name}_duration_seconds_count") == 1

"""Rules of virtual Nodes broken on purpose, one at a time, by name, each with the test that tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from slinky_operator.kube import errors
from tests.unit.slurm.jobs import test_job_facts
from tests.unit.virtual_nodes.mutants import nodes, pods
from tests.unit.virtual_nodes.nodes import test_leases, test_partitions_shown, test_passes, test_reachability
from tests.unit.virtual_nodes.pods import test_life, test_outages


@dataclass(frozen=True)
class Mutant:
    """A broken rule."""

    break_rule: Callable[[pytest.MonkeyPatch], None]
    test: Callable[..., Awaitable[None] | None]
    """Fails with it; a parameter `world` gets the world of pods, `monkeypatch` the fixture."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Its other parameters."""


_BY_OUTAGE: Final = {"reason": "DeletionByTaintManager"}
_FENCED: Final = {"error": errors.Fenced, "went_well": True}

MUTANTS: Final[Mapping[str, Mutant]] = {
    "away is not ready": Mutant(
        nodes.away_is_not_ready, test_passes.test_slurm_away_keeps_nodes_ready_and_new_pods_off_them
    ),
    "pods come while slurm is away": Mutant(
        nodes.pods_come_while_slurm_is_away, test_passes.test_slurm_away_keeps_nodes_ready_and_new_pods_off_them
    ),
    "nodes go with their pods": Mutant(
        nodes.nodes_go_with_their_pods, test_passes.test_a_partition_that_goes_keeps_its_node_until_no_pod_is_left
    ),
    "nodes go at once": Mutant(
        nodes.nodes_go_at_once,
        test_passes.test_a_node_is_not_removed_before_kube_scheduler_has_seen_that_it_takes_no_more_pods,
    ),
    "an empty answer counts": Mutant(
        nodes.an_empty_answer_counts, test_passes.test_an_answer_without_any_partition_removes_no_node
    ),
    "labels make a node ours": Mutant(
        nodes.labels_make_a_node_ours,
        test_passes.test_a_real_node_is_not_taken_for_one_of_the_operators_by_what_anybody_can_write,
    ),
    "cordons of others end": Mutant(
        nodes.cordons_of_others_end,
        test_passes.test_a_partition_that_comes_back_ends_the_operators_cordon_and_no_other,
    ),
    "labels of others go": Mutant(
        nodes.labels_of_others_go, test_passes.test_what_slurm_says_later_is_written_and_labels_of_others_stay
    ),
    "the last has the host": Mutant(nodes.the_last_has_the_host, test_passes.test_the_oldest_cluster_has_a_host_name),
    "everybody may": Mutant(nodes.everybody_may, test_passes.test_a_cluster_that_the_settings_do_not_name_has_no_nodes),
    "nodes of others are overwritten": Mutant(
        nodes.nodes_of_others_are_overwritten, test_passes.test_the_node_of_somebody_else_is_not_touched
    ),
    "partitions are written at each change": Mutant(
        nodes.partitions_are_written_at_each_change,
        test_partitions_shown.test_they_are_written_when_something_has_changed_and_then_every_five_seconds_at_most,
    ),
    "jobs are listed each time": Mutant(
        nodes.jobs_are_listed_each_time, test_partitions_shown.test_jobs_are_listed_only_where_nobody_else_does
    ),
    "what is not read is none": Mutant(
        nodes.what_is_not_read_is_none,
        test_partitions_shown.test_what_is_pending_is_not_made_up_where_only_running_jobs_are_read,
    ),
    "a job counts once": Mutant(
        nodes.a_job_counts_once, test_job_facts.test_a_job_counts_in_each_partition_that_it_waits_for
    ),
    "one failure counts": Mutant(
        nodes.one_failure_counts, test_reachability.test_a_pod_that_has_just_started_may_be_late
    ),
    "a busy api server counts": Mutant(
        nodes.a_busy_api_server_counts,
        test_reachability.test_nothing_follows_from_an_api_server_that_is_busy_or_away,
        {"answer": test_reachability.of_status(503, "the server is currently unable to handle the request")},
    ),
    "standby renews": Mutant(
        nodes.standby_renews,
        test_leases.test_a_process_that_does_not_lead_waits_and_one_that_fails_tries_again_soon,
        _FENCED,
    ),
    "leases of real nodes": Mutant(
        nodes.leases_of_real_nodes, test_leases.test_each_virtual_node_has_a_lease_that_goes_with_it_and_no_other_node
    ),
    "an outage cancels": Mutant(
        pods.an_outage_cancels, test_outages.test_the_job_of_a_pod_that_an_outage_took_runs_on, _BY_OUTAGE
    ),
    "preemption cancels": Mutant(
        pods.preemption_cancels,
        test_outages.test_preemption_is_a_decision_only_where_the_partition_is_offered,
        {"allocatable": "Unlimited", "expected": "RUNNING"},
    ),
    "a drain is an outage": Mutant(pods.a_drain_is_an_outage, test_outages.test_a_drain_is_a_decision),
    "any pod takes over": Mutant(pods.any_pod_takes_over, test_outages.test_a_pod_of_another_job_takes_over_nothing),
    "an index is not its own": Mutant(
        pods.an_index_is_not_its_own, test_outages.test_each_index_of_an_indexed_job_takes_over_its_own
    ),
    "refused pods fail": Mutant(
        pods.refused_pods_fail, test_life.test_a_refused_pod_of_a_replicaset_waits_so_that_no_other_is_made
    ),
    "the scheduler grants": Mutant(
        pods.the_scheduler_grants, test_life.test_a_node_whose_partition_is_not_granted_gives_no_job
    ),
    "pods go before their jobs": Mutant(
        pods.pods_go_before_their_jobs, test_life.test_deleted_it_cancels_its_job_and_goes_when_that_has_ended
    ),
    "a job is made again": Mutant(
        pods.a_job_is_made_again, test_life.test_no_job_comes_twice_after_its_slurmjob_was_deleted
    ),
}

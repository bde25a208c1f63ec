"""Rules broken on purpose, one at a time, by name, each with histories that detect it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest

from tests.unit.nodeset.mutants import belongings, checking, drains, health, machines, replacing, seeing, updates
from tests.unit.nodeset.simulation.steps import BAD_MACHINES, Step

Mutant = Callable[[pytest.MonkeyPatch], None]

_LATE: tuple[Step, ...] = (("time", 3), ("time", 2), ("pass", 0), ("pass", 0), ("pass", 0), ("poll", 0))

_SHRINK: tuple[Step, ...] = (("scale", 0), ("scale", 1), ("see_all", 0), ("pass", 0), ("poll", 0))

_NAMING: tuple[Step, ...] = (*_SHRINK, ("job_names", 0), ("job_names", 1), ("job_names", 5), ("kubelet_ends", 0))

_GIVEN_UP: tuple[Step, ...] = (
    *(("job_starts", 0), ("delete", 0), ("give_up", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
)

_SILENT: tuple[Step, ...] = (
    *(("user_deletes_pod", 0), ("user_deletes_pod", 1), ("kubelet_ends", 0), ("stick", 6)),
    *(("come_up", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("poll", 0), ("time", 3)),
)

_SICK: tuple[Step, ...] = (
    *(("health", 0), ("health", 1), ("sicken", 0), ("sicken", 1), ("sicken", 2), ("recover", 0), ("recover", 1)),
    *(("see_all", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("time", 1), ("time", 2)),
)

_CHECKED: tuple[Step, ...] = (
    *(("check", 0), ("break", 0), ("checks_run", 1), ("checks_run", 1), ("checks_run", 0), ("kubelet_ends", 0)),
    *(("come_up", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("poll", 0), ("time", 3)),
)

_PLACED: tuple[Step, ...] = (
    *(("place", 0), ("rack", 0), ("rack", 4), ("rack", 6), ("rack", 2), ("rack", 5)),
    *(("see_all", 0), ("pass", 0), ("poll", 0), ("pass", 0)),
)

_REPLACED: tuple[Step, ...] = (*_SICK, ("replace", 0), ("replace", 3), ("come_up", 0), ("kubelet_ends", 0))

MUTANTS: Mapping[str, tuple[Mutant, tuple[Step, ...]]] = {
    "COMPLETING dropped": (seeing.completing_dropped, (*_SHRINK, ("job_starts", 1), ("job_ends", 1))),
    "SUSPENDED dropped": (seeing.suspended_dropped, (*_SHRINK, ("job_starts", 1), ("job_suspends", 0))),
    "STAGE_OUT dropped": (seeing.stage_out_dropped, (*_SHRINK, ("job_starts", 1), ("job_ends", 2))),
    "first node of a job": (
        seeing.first_node_of_a_job,
        (
            ("scale", 0),
            ("scale", 1),
            ("see_all", 0),
            ("pass", 0),
            ("job_starts", 2),
            ("job_starts", 5),
            ("job_suspends", 0),
        ),
    ),
    "any change is load": (
        seeing.any_change_is_load,
        (("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("job_starts", 1), ("admin_drains", 0)),
    ),
    "all pods alike": (
        seeing.all_pods_alike,
        (*(("see_all", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0)), ("cordon", 0), ("cordon", 1)),
    ),
    "loads stand still": (
        seeing.loads_stand_still,
        (("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("job_starts", 1), ("job_ends", 1)),
    ),
    "pods read once": (seeing.pods_read_once, ()),
    "records read once": (seeing.records_read_once, ()),
    "fail open on 401": (
        seeing.fail_open_on_401,
        (
            *(("scale", 0), ("see_all", 0), ("pass", 0), ("pass", 1), ("fault", 0), ("heal", 0)),
            *(("job_starts", 1), ("job_suspends", 0), ("job_suspends", 1)),
        ),
    ),
    "no uid precondition": (seeing.no_uid_precondition, (*_SHRINK, ("usurp", 0), ("usurp", 1))),
    "prefix match": (seeing.prefix_match, ()),
    "stale cache trusted": (seeing.stale_cache_trusted, (*_SHRINK, ("admin_drains", 0), ("job_starts", 1))),
    "RESUME instead of UNDRAIN": (
        drains.resume_instead_of_undrain,
        (("cordon", 0), ("cordon", 1), ("node_lost", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "foreign drains undone": (drains.foreign_drains_undone, (("admin_drains", 1), ("poll", 0), ("pass", 0))),
    "Slurm's drain is a stranger's": (drains.slurms_drain_is_a_strangers, (("misfit", 0), ("misregister", 0))),
    "mended nodes stay drained": (drains.mended_nodes_stay_drained, (("misregister", 0), ("reregister", 0))),
    "all words are Slurm's": (
        drains.all_words_are_slurms,
        (("admin_drains", 1), ("poll", 0), ("pass", 0), ("misregister", 0)),
    ),
    "rejected nodes count as ready": (
        drains.rejected_nodes_count_as_ready,
        (("misfit", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("come_up", 0), ("kubelet_ends", 0)),
    ),
    "rejected nodes count as empty": (
        drains.rejected_nodes_count_as_empty,
        (("job_starts", 1), ("misregister", 1), ("edit", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "record of a foreign drain deleted": (
        drains.record_of_foreign_drain_deleted,
        (*_SHRINK, ("admin_drains", 1), ("kubelet_ends", 0)),
    ),
    "registrations remembered alone": (
        seeing.registrations_remembered_alone,
        (("restart", 0), ("come_up", 0), ("see_all", 0), ("poll", 0), ("pass", 0), ("time", 3)),
    ),
    "registrations of namesakes": (
        seeing.registrations_of_namesakes,
        (("restart", 0), ("stick", 6), ("come_up", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0)),
    ),
    "registrations of the cache": (
        seeing.registrations_of_the_cache,
        (("takeover", 0), ("come_up", 0), ("poll", 0), ("pass", 0), ("time", 3), ("slurm_forgets", 1)),
    ),
    "forgotten registrations dropped": (
        seeing.forgotten_registrations_dropped,
        (("restart", 0), ("come_up", 0), ("see_all", 0), ("poll", 0), ("pass", 0), ("time", 3)),
    ),
    "unknown node is free": (seeing.unknown_node_is_free, (*_SHRINK, ("job_starts", 1), ("slurm_forgets", 0))),
    "budget ignored": (
        updates.budget_ignored,
        (("edit", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0)),
    ),
    "half the deadline": (drains.deadline_early, (*_SHRINK, *_LATE, ("policy", 2), ("policy", 3), ("job_starts", 1))),
    "cordons count": (drains.cordon_counts, (*_LATE, ("cordon", 0), ("cordon", 1), ("policy", 2), ("job_starts", 1))),
    "all jobs requeued by DOWN": (
        drains.all_jobs_requeued_by_down,
        (
            ("scale", 0),
            ("see_all", 0),
            ("policy", 1),
            ("time", 3),
            ("pass", 0),
            ("pass", 0),
            ("poll", 0),
            *(("job_starts", number) for number in (1, 4, 5, 6, 7)),
        ),
    ),
    "force instead of wait": (drains.force_instead_of_wait, (*_SHRINK, *_LATE, ("policy", 0), ("job_starts", 1))),
    "budget for health ignored": (health.budget_ignored, _SICK),
    "drained for health and not counted": (health.drained_already_is_not_counted, _SICK),
    "health overlooked": (health.overlooked, _SICK),
    "drained for health too early": (health.too_early, _SICK),
    "given back too early": (health.given_back_too_early, _SICK),
    "unknown health is good health": (health.unknown_is_well, (*_SICK, ("doubt", 0), ("doubt", 1), ("doubt", 2))),
    "a lost Node is a good one": (health.lost_is_well, (*_SICK, ("host_goes", 0), ("host_goes", 1))),
    "emptiness is inferred": (
        health.emptiness_not_proven,
        (*_SICK, ("health", 4), ("health", 6), ("job_starts", 1), ("job_suspends", 0), ("admin_drains", 0)),
    ),
    "states of nodes stay": (health.states_stay, (("health", 4), ("admin_drains", 0), ("admin_undrains", 0))),
    "drains of others not looked at": (
        replacing.drains_of_others_not_looked_at,
        (*_REPLACED, ("admin_drains", 0), ("admin_drains", 1), ("admin_undrains", 0), ("pass", 1), ("pass", 2)),
    ),
    "jobs not looked at": (
        replacing.jobs_not_looked_at,
        (*_REPLACED, ("admin_undrains", 0), ("job_starts", 0), ("job_starts", 1), ("pass", 1), ("pass", 2)),
    ),
    "tries begun before they are counted": (replacing.begun_before_it_is_counted, _REPLACED),
    "tries not counted": (replacing.tries_not_counted, (*_REPLACED, ("replace", 4))),
    "no pause between tries": (replacing.no_pause, (*_REPLACED, ("replace", 2), ("replace", 5))),
    "no end of tries": (replacing.no_end, (*_REPLACED, ("replace", 1))),
    "all replaced at once": (replacing.all_at_once, (*_REPLACED, ("health", 4))),
    "what is replaced does not count": (replacing.absent_do_not_count, _REPLACED),
    "well nodes replaced": (replacing.well_ones_too, (*_REPLACED, ("doubt", 0), ("doubt", 1), ("doubt", 2))),
    "jobs on machines not looked at": (machines.jobs_not_looked_at, BAD_MACHINES),
    "drains by others on machines not looked at": (machines.drains_of_others_not_looked_at, BAD_MACHINES),
    "other NodeSets on machines not looked at": (machines.other_nodesets_not_looked_at, BAD_MACHINES),
    "silence proves machines empty": (machines.silence_is_emptiness, BAD_MACHINES),
    "pods of others end with machines": (machines.pods_of_others_not_counted, BAD_MACHINES),
    "machines asked for again": (machines.asked_again, BAD_MACHINES),
    "what has been sent is forgotten": (machines.sent_is_forgotten, BAD_MACHINES),
    "RebootNodes not awaited": (machines.requests_not_awaited, BAD_MACHINES),
    "requests of others taken": (machines.requests_of_others_taken, BAD_MACHINES),
    "cordons of others taken": (machines.marks_not_looked_at, BAD_MACHINES),
    "uncordoned is safe": (machines.uncordoned_is_safe, BAD_MACHINES),
    "machines without a place": (machines.places_not_held, BAD_MACHINES),
    "machines that are gone do not count": (machines.absent_machines_do_not_count, BAD_MACHINES),
    "boots for ever": (replacing.boots_for_ever, (*_SICK, *(("boot", number) for number in (0, 1, 2, 0, 1, 2)))),
    "requests overlooked": (replacing.requests_overlooked, (("drain_request", 0), ("drain_request", 1), ("pass", 0))),
    "requests outlived": (replacing.requests_outlived, (("drain_request", 0), ("drain_request", 1), ("pass", 0))),
    "any boot": (replacing.any_boot, (*_SICK, *(("boot", number) for number in (0, 1, 2, 0, 1, 2)))),
    "reasons of cordons stay": (health.reason_never_written_again, (*_SICK, ("cordon_host", 0), ("cordon_host", 1))),
    "Node's cordon overlooked": (drains.node_cordon_overlooked, (("cordon_host", 0), ("cordon_host", 1))),
    "drain of a cordoned Node stays": (
        drains.drain_of_a_cordoned_node_stays,
        (("cordon_host", 0), ("cordon_host", 1), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "broken pods not counted": (
        updates.broken_pods_not_counted,
        (("edit", 2), ("come_up", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "what is under way overlooked": (updates.under_way_overlooked, (("slurmctld_restarts", 0), ("edit", 0))),
    "cordoned pods overlooked": (
        updates.cordoned_pods_overlooked,
        (("slurmctld_restarts", 0), ("cordon", 2), ("see_all", 0), ("poll", 0), ("pass", 0)),
    ),
    "mended nodes count as broken": (
        updates.mended_nodes_count_as_broken,
        (("misregister", 1), ("reregister", 0), ("poll", 0), ("pass", 0)),
    ),
    "partition ignored": (updates.partition_ignored, (("hold_back", 2), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "carried revisions dropped": (
        updates.carried_revisions_dropped,
        (("edit", 0), ("edit", 1), ("see_all", 0), ("pass", 0)),
    ),
    "revision not recorded": (updates.revision_not_recorded, (("edit", 0), ("see_all", 0), ("pass", 0))),
    "protection lifted unasked": (
        drains.protection_lifted_unasked,
        (("cordon", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0), ("kubectl_drain", 0)),
    ),
    "claims of replaced pods deleted": (
        belongings.claims_of_replaced_pods_deleted,
        (("edit", 0), ("edit", 1), ("see_all", 0), ("pass", 0), ("poll", 0), ("kubelet_ends", 0)),
    ),
    "foreign claims used": (belongings.foreign_claims_used, (("scale", 0), ("scale", 3), ("squat", 2), ("see_all", 0))),
    "lost guard overlooked": (belongings.lost_guard_overlooked, (("user_deletes_guard", 0),)),
    "ended by our clock": (
        drains.ended_by_our_clock,
        (*_SHRINK, ("slurm_clock", 1), ("policy", 2), ("policy", 3), ("job_starts", 1)),
    ),
    "claims always deleted": (
        belongings.claims_always_deleted,
        (*_SHRINK, ("retain", 1), ("retain", 5), ("kubelet_ends", 0)),
    ),
    "kept claims deleted": (
        belongings.kept_claims_deleted,
        (*_SHRINK, ("retain", 1), ("retain", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0)),
    ),
    "marks outlive a change of mind": (
        belongings.marks_outlive_a_change_of_mind,
        (*_SHRINK, ("retain", 1), ("retain", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0)),
    ),
    "marks outlive a scale-out": (
        belongings.marks_outlive_a_scale_out,
        (*_SHRINK, ("scale", 3), ("kubelet_ends", 0)),
    ),
    "kept claims deleted with the NodeSet": (
        belongings.kept_claims_deleted_with_the_nodeset,
        (*_SHRINK, ("retain", 5), ("retain", 0), ("delete", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0)),
    ),
    "other features dropped": (belongings.other_features_dropped, (("annotate_host", 4), ("see_all", 0), ("pass", 0))),
    "features written once": (
        belongings.features_written_once,
        (("annotate_host", 4), ("annotate_host", 7), ("annotate_host", 1), ("see_all", 0), ("pass", 0)),
    ),
    "what cannot be run passes": (checking.what_cannot_be_run_passes, (*_CHECKED, ("check", 4))),
    "late reports count": (checking.late_reports_count, (*_CHECKED, ("check", 2))),
    "no trial": (checking.no_trial, _CHECKED),
    "unknown is passed": (checking.unknown_is_passed, (*_CHECKED, ("check", 4))),
    "silence is passed": (checking.silence_is_passed, (*_CHECKED, ("break", 0), ("break", 1))),
    "trials drain": (checking.trials_drain, (*_CHECKED, ("check", 2))),
    "places outlive their labels": (belongings.places_outlive_their_labels, _PLACED),
    "places taken unasked": (belongings.places_taken_unasked, (*_PLACED, ("annotate_host", 4), ("place", 7))),
    "annotated places overlooked": (belongings.annotated_places_overlooked, (*_PLACED, ("annotate_host", 1))),
    "windows overlooked": (
        updates.windows_overlooked,
        (*(("window", 7), ("window", 1), ("edit", 0), ("edit", 1)), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "windows for ever": (
        updates.windows_for_ever,
        (*(("window", 3), ("window", 0), ("edit", 0)), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "mismatch overlooked": (belongings.mismatch_overlooked, (("label_host", 0), ("label_host", 1))),
    "cordoned Nodes filled": (belongings.cordoned_hosts_filled, (("cordon_host", 0), ("user_deletes_pod", 1))),
    "limit ignored": (belongings.limit_ignored, (("scale", 1), ("scale", 2))),
    "repairs without a budget": (
        updates.repairs_without_budget,
        _SILENT,
    ),
    "forgotten pods repaired": (
        updates.forgotten_pods_repaired,
        (("job_starts", 1), ("slurm_forgets", 0), ("poll", 0), ("time", 4), ("see_all", 0), ("pass", 0)),
    ),
    "no second look at jobs": (seeing.no_second_look_at_jobs, _SHRINK),
    "named nodes overlooked": (seeing.named_nodes_overlooked, _NAMING),
    "excluded nodes overlooked": (seeing.excluded_nodes_overlooked, _NAMING),
    "named nodes not looked up again": (seeing.named_nodes_not_looked_up_again, _NAMING),
    "writes to Slurm not awaited": (
        seeing.writes_to_slurm_not_awaited,
        (("edit", 0), ("pass", 0), ("pass", 0), ("see_all", 0), ("lose_slurm", 0)),
    ),
    "jobs of a DOWN node not awaited": (
        seeing.jobs_of_a_down_node_not_awaited,
        (("pass", 0), ("poll", 0), ("see_all", 0), ("kubelet_ends", 0)),
    ),
    "names used again unlisted": (
        seeing.names_used_again_unlisted,
        (
            ("job_starts", 0),
            ("job_starts", 1),
            ("user_deletes_pod", 0),
            ("kubelet_ends", 0),
            ("see_all", 0),
            ("pass", 0),
        ),
    ),
    "finalizer after the pods": (
        belongings.finalizer_after_the_pods,
        (("finalizer_taken", 0), ("scale", 0), ("scale", 3), ("see_all", 0), ("pass", 0), ("kubelet_ends", 0)),
    ),
    "arrays ended whole": (drains.arrays_ended_whole, (*_SHRINK, *_LATE, ("policy", 2), ("job_starts", 1))),
    "force without a deadline": (drains.force_without_deadline, (*_SHRINK, ("policy", 6), ("job_starts", 1))),
    "guard of the NodeSet": (belongings.guard_of_the_nodeset, (("delete", 1), ("collect", 0), ("job_starts", 0))),
    "OnDelete ignored": (updates.on_delete_ignored, (("hold_back", 7), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "impatient": (updates.impatient, (("patience", 2), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "one more than the budget": (
        updates.one_more_than_the_budget,
        (("edit", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0)),
    ),
    "neighbours overlooked": (belongings.neighbours_overlooked, (("scale", 3), ("neighbour_comes", 2))),
    "padding overlooked": (
        belongings.padding_overlooked,
        (("pad", 0), ("pad", 1), ("user_deletes_pod", 0), ("see_all", 0)),
    ),
    "unreachable is ended": (
        seeing.unreachable_is_ended,
        (("host_goes", 0), ("host_goes", 1), ("pods_collected", 0), ("job_starts", 0), ("see_all", 0), ("pass", 0)),
    ),
    "silence is enough": (seeing.silence_is_enough, (*_SHRINK, ("fault", 0))),
    "given up in silence": (drains.given_up_in_silence, _GIVEN_UP),
    "marked down alive": (drains.marked_down_alive, _GIVEN_UP),
    "record left behind": (
        drains.record_left_behind,
        (("job_starts", 1), ("user_deletes_pod", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
}
"""Each with steps that make its mistake show more often."""


def _steps(*words: str) -> tuple[Step, ...]:
    """Steps, each a name and a number where that is not 0."""
    found = [word.partition(":") for part in words for word in part.split()]
    return tuple((name, int(number or 0)) for name, _, number in found)


_ONE_LESS = _steps("scale:2 see_all pass poll pass kubelet_ends kubelet_ends see_all pass poll see_all pass")
"""a-2 is drained and deleted, and its record and its claim too."""

_ONE_RECREATED = _steps("user_deletes_pod kubelet_ends kubelet_ends see_all pass time poll pass see_all")
"""a-0 is deleted and made again; the controller has seen it."""

_EMPTY_AND_SICK = _steps(
    "health:4 see_all sicken sicken:1 sicken:2 see_all time:3 pass poll pass see_all poll pass see_all",
)
"""All three are drained for their health and hold no job."""

_DRAINED = "see_all sicken see_all time:3 pass poll pass see_all"
"""A node is drained for its health."""

_MOUNTED = _steps(
    # Pods with the volume for checks, one after the other; the kubelets have brought no files yet.
    "hold_back:5 check:0 see_all pass see_all poll pass see_all poll pass kubelet_ends kubelet_ends kubelet_ends",
    "kubelet_ends kubelet_ends kubelet_ends see_all poll pass time see_all poll pass time see_all poll pass",
    "come_up see_all time poll pass see_all time poll pass see_all pass see_all pass",
)

_APPROVED = (*_MOUNTED, *_steps("checks_run:1 poll pass see_all poll pass checks_run:1 poll pass see_all"))
"""All nodes run a check, which has passed on one of them."""

_CORDONED = "see_all pass poll pass see_all machine_policy see_all poll pass see_all pass see_all poll"
"""A node is drained for its health, and then its machine is to be rebooted: its Node has been cordoned for that."""

_ASKED = f"{_CORDONED} pass see_all"
"""And it has been asked for."""

_SHARED = _steps(
    # Somebody else's node is on the same machine, with a job.
    "claims_go time:3 neighbour_comes:2 neighbour_registers see_all poll job_starts:2 poll",
    f"health:3 sicken {_CORDONED}",
)

_FRESH = (
    "user_deletes_pod:1 kubelet_ends kubelet_ends see_all poll pass time poll pass see_all come_up see_all time poll "
    "pass see_all pass see_all"
)
"""A pod has another one in its place, whose slurmd has registered: where three are many, the status says so."""

_FORGOTTEN = "job_starts job_starts job_starts poll slurm_forgets:1 poll"
"""Each pod has a job, and Slurm has lost all that it knew."""

BEGINNINGS: Mapping[str, Sequence[Step]] = {
    "registrations remembered alone": _steps(
        f"{_FRESH} {_FORGOTTEN} restart scale:0 see_all time:3 pass poll pass see_all time:3 poll pass",
    ),
    "registrations of the cache": _steps(
        # The status says so, and the next operator's cache does not show that yet. Clocks differ by less than it runs.
        "user_deletes_pod:1 kubelet_ends kubelet_ends see_all poll pass time poll pass see_all come_up see_all time",
        f"poll pass {_FORGOTTEN} takeover time:4 time:4 time:4 pass poll pass time:3 poll pass time:3 poll pass",
    ),
    "registrations of namesakes": _steps(
        # It is deleted again, and one that never registers takes its place. Two operators end before they say so.
        f"{_FRESH} stick:6 time:1 user_deletes_pod:1 kubelet_ends kubelet_ends see_all poll dies:0 pass time see_all",
        "poll dies:0 pass see_all poll come_up see_all time:4 poll pass see_all time:4 poll pass",
    ),
    "forgotten registrations dropped": _steps(
        f"{_FRESH} {_FORGOTTEN} pass see_all pass see_all restart scale:0 see_all time:3 pass poll pass see_all",
        "time:3 poll pass",
    ),
    "what cannot be run passes": (
        *_APPROVED,
        *_steps("check:4 see_all pass see_all poll pass checks_run:1 poll pass see_all poll pass"),
    ),
    "late reports count": (*_APPROVED, *_steps("check:2 see_all pass see_all poll pass see_all poll pass")),
    "no trial": (*_APPROVED, *_steps("check:2 see_all pass see_all poll pass see_all poll pass")),
    "unknown is passed": (
        *_APPROVED,
        *_steps("break checks_run:1 poll pass see_all poll pass see_all break:4 checks_run:1 time:3 see_all poll pass"),
        *_steps("see_all poll pass"),
    ),
    "silence is passed": (
        *_APPROVED,
        *_steps("break checks_run:1 poll pass see_all poll pass see_all comment_lost time:3 see_all poll pass"),
        *_steps("see_all poll pass"),
    ),
    "trials drain": (
        *_APPROVED,
        *_steps("check:2 see_all pass see_all poll pass checks_run:1 poll pass see_all poll pass"),
    ),
    "jobs on machines not looked at": _steps("health:3 sicken", _CORDONED, "pass:2 admin_undrains job_starts"),
    "drains by others on machines not looked at": _steps("health:3 sicken", _CORDONED, "pass:1 admin_drains"),
    "other NodeSets on machines not looked at": (*_ONE_LESS, *_SHARED, *_steps("pass see_all")),
    "silence proves machines empty": (*_ONE_LESS, *_SHARED, *_steps("pass:1 fault:1 heal")),
    "pods of others end with machines": _steps("health:3 sicken tenant", _ASKED),
    "machines asked for again": _steps("settings:1 health:3 sicken", _ASKED, "pass see_all pass"),
    "what has been sent is forgotten": _steps(
        # The cache does not show the mark as it is yet.
        "enrol:2 health:3 sicken",
        _CORDONED.replace("machine_policy", "machine_policy:1"),
        "pass poll pass",
    ),
    "RebootNodes not awaited": _steps("health:3 sicken", _ASKED, "machines_work:2 recover see_all time:3 poll pass"),
    "requests of others taken": _steps("settings:1 health:3 sicken", _CORDONED, "reboot_asked recover see_all pass"),
    "cordons of others taken": _steps(
        "health:3 sicken:1 see_all pass poll pass see_all cordon_host machine_policy see_all poll pass see_all pass",
    ),
    "uncordoned is safe": _steps(
        "health:3 sicken:1",
        _ASKED,
        "cordon_host recover:1 see_all time:3 poll pass see_all poll pass",
    ),
    "machines without a place": (*_EMPTY_AND_SICK, *_steps("machine_policy see_all poll pass see_all poll pass")),
    "machines that are gone do not count": _steps(
        "health:3 sicken",
        _ASKED.replace("machine_policy", "machine_policy:1"),
        "sicken:1 machines_work see_all pods_collected pods_collected see_all poll pass see_all poll pass",
    ),
    "given back too early": _steps(f"health {_DRAINED} recover see_all pass see_all pass"),
    "any boot": _steps(f"health see_all boot see_all time {_DRAINED} recover see_all poll pass see_all pass"),
    "boots for ever": _steps(
        # The machine starts while its Node is bad, and again when that is well.
        f"health {_DRAINED} time boot see_all pass see_all time:1 recover",
        "boot see_all poll pass see_all pass see_all pass",
    ),
    "drains of others not looked at": (
        *_EMPTY_AND_SICK,
        *_steps("replace:0 see_all pass see_all pass:1 admin_drains"),
    ),
    "jobs not looked at": (
        *_EMPTY_AND_SICK,
        *_steps("replace:0 see_all pass see_all pass:2 admin_undrains job_starts"),
    ),
    "well nodes replaced": (
        *_EMPTY_AND_SICK,
        *_steps("recover recover:1 recover:2 replace:0 see_all pass see_all pass see_all pass"),
    ),
    "given up in silence": _steps("job_starts poll delete give_up see_all pass kubelet_ends kubelet_ends see_all pass"),
    "marked down alive": _steps("job_starts poll delete give_up see_all pass"),
    "names used again unlisted": _steps(
        # A pod comes back and registers, and Slurm is not asked for its nodes after that.
        "user_deletes_pod kubelet_ends kubelet_ends see_all poll pass poll pass see_all come_up see_all pass",
        "job_starts:0 job_starts:1 job_starts:6 job_starts:3 user_deletes_pod kubelet_ends kubelet_ends see_all pass",
    ),
    "jobs of a DOWN node not awaited": _steps(
        # The last pod of a scale-in is lost with its job. Two passes at one moment share an answer about jobs.
        "job_starts scale:0 see_all poll pass poll pass see_all kubelet_ends kubelet_ends kubelet_ends kubelet_ends",
        "kubelet_ends kubelet_ends see_all poll pass poll pass user_deletes_pod see_all kubelet_ends see_all",
        "kubelet_ends see_all poll pass pass poll pass",
    ),
    "all jobs requeued by DOWN": _steps(
        # A job that can be requeued and one that cannot, both on a-1.
        "policy:1 job_starts:5 job_starts:7 job_starts:7 job_starts:4",
        "scale:0 see_all poll pass pass time:3 time:2 poll pass pass",
    ),
    "unknown health is good health": _steps(
        "health:3 sicken sicken:1 sicken:2 see_all pass poll pass see_all pass doubt doubt:1 doubt:2 time:2",
        "see_all pass see_all pass see_all pass poll pass",
    ),
    "emptiness is inferred": _steps(
        "health:4 see_all pass job_starts:1 job_starts:1 job_suspends job_suspends:1 poll pass",
        "admin_drains admin_drains:1 admin_drains:2 time:3 poll pass see_all pass",
    ),
    "arrays ended whole": _steps(
        # Of three tasks the one that has the id of the array is in the way.
        "policy:2 job_starts:1 job_starts:2 job_starts:4 scale:2 see_all poll pass pass time:3 time:3 poll pass pass",
    ),
    "cordons count": _steps(
        "policy:2 job_starts cordon see_all poll pass poll",
        "time:3 time:3 poll scale:0 see_all pass pass",
    ),
    "repairs without a budget": _steps(
        # Three are recreated at once, and none of them registers.
        "stick:6 user_deletes_pod user_deletes_pod:1 user_deletes_pod:2 kubelet_ends kubelet_ends kubelet_ends",
        "kubelet_ends kubelet_ends kubelet_ends see_all poll pass pass come_up see_all poll pass",
    ),
    "rejected nodes count as ready": _steps(
        # One is replaced by a misfit, and the next would be.
        "misfit see_all poll pass time poll pass kubelet_ends kubelet_ends see_all poll pass time poll pass see_all",
        "come_up see_all poll pass see_all pass poll pass",
    ),
    "fail open on 401": _steps("job_starts job_suspends poll scale:0 see_all pass time poll fault:0 pass"),
    "features written once": _steps("annotate_host:4 see_all pass annotate_host:7 see_all pass"),
    "force instead of wait": _steps("policy:0 job_starts scale:0 see_all poll pass time:3 time:3 poll pass pass"),
    "foreign claims used": (*_ONE_LESS, *_steps("claims_go see_all squat:2 scale:3 see_all pass pass")),
    "half the deadline": _steps("policy:2 job_starts scale:0 see_all poll pass time:2 time:2 poll pass pass"),
    "neighbours overlooked": (*_ONE_LESS, *_steps("claims_go neighbour_comes:2 time:3 scale:3 see_all poll pass pass")),
    "no second look at jobs": _steps(
        "scale:2 see_all pass",
        "job_starts job_suspends user_deletes_pod kubelet_ends kubelet_ends see_all pass",
    ),
    # The operator that knew that the pod had ended is another one.
    "record left behind": _steps("job_starts user_deletes_pod kubelet_ends kubelet_ends restart poll pass"),
    "silence is enough": (
        *_ONE_RECREATED,
        *_steps("schedule see_all start register job_starts fault poll scale:0 see_all pass"),
    ),
    "writes to Slurm not awaited": _steps(
        # Of three pods the one without a job is taken; then another one is free, and would be taken as well.
        "job_starts:1 job_starts:1 job_suspends:0 job_suspends:1 poll edit:0 see_all lose_slurm pass",
        "job_ends:3 time pass",
    ),
    "what is under way overlooked": _steps(
        # a-2 is recreated from the new spec; before it comes up slurmctld has not heard of the others.
        "edit see_all pass poll pass see_all kubelet_ends kubelet_ends see_all poll pass poll pass see_all",
        "slurmctld_restarts poll pass",
    ),
    "cordoned pods overlooked": _steps(
        # The same, and a-2 is cordoned.
        "edit see_all pass poll pass see_all kubelet_ends kubelet_ends see_all poll pass poll pass see_all",
        "slurmctld_restarts cordon:2 see_all poll pass",
    ),
    "mended nodes count as broken": (
        *_steps("patience:2"),
        *_ONE_RECREATED,
        *_steps("come_up see_all poll pass see_all edit misregister:1 reregister see_all poll pass"),
    ),
    "impatient": (
        *_steps("patience:2"),
        *_ONE_RECREATED,
        *_steps("come_up see_all poll pass see_all edit see_all pass pass"),
    ),
}
"""How histories begin for those whose mistake shows only after a certain course of things."""

OF_HEALTH: Collection[str] = {
    "budget for health ignored",
    "drained for health and not counted",
    "health overlooked",
    "drained for health too early",
    "given back too early",
    "unknown health is good health",
    "a lost Node is a good one",
    "reasons of cordons stay",
    "emptiness is inferred",
    "states of nodes stay",
    "drains of others not looked at",
    "jobs not looked at",
    "tries begun before they are counted",
    "tries not counted",
    "no pause between tries",
    "no end of tries",
    "all replaced at once",
    "what is replaced does not count",
    "well nodes replaced",
    "boots for ever",
    "any boot",
    "requests overlooked",
    "requests outlived",
    "places outlive their labels",
    "places taken unasked",
    "annotated places overlooked",
    "windows overlooked",
    "windows for ever",
}
"""Those whose mistake shows only where conditions of Nodes come and go."""

OF_MACHINES: Collection[str] = {name for name, (mutant, _) in MUTANTS.items() if mutant.__module__ == machines.__name__}
"""Those whose mistake shows only where machines are rebooted and deleted."""

OF_CHECKS: Collection[str] = {
    "what cannot be run passes",
    "late reports count",
    "no trial",
    "unknown is passed",
    "silence is passed",
    "trials drain",
}
"""Those whose mistake shows only where nodes run health checks."""

ON_HOSTS: Collection[str] = {
    "mismatch overlooked",
    "cordoned Nodes filled",
    "limit ignored",
}
"""Those whose mistake shows only with one pod on each Node."""

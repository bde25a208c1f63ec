"""Rules of the rollout broken on purpose, one at a time, by name, each with a story that it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.unit.cluster.mutants import in_use, loading, trials

Mutant = Callable[[pytest.MonkeyPatch], None]

MUTANTS: Mapping[str, tuple[Mutant, str]] = {
    "goes live without trial": (trials.goes_live_without_trial, "refused"),
    "no result is a good one": (trials.no_result_is_a_good_one, "no result"),
    "jobs are not tried": (trials.jobs_are_not_tried, "harms jobs"),
    "forgets what waits": (trials.forgets_what_waits, "waiting and refused"),
    "deletes the trial of another": (trials.deletes_the_trial_of_another, "beside"),
    "leaves trials behind": (trials.leaves_trials_behind, "refused"),
    "remembers nothing": (trials.remembers_nothing, "refused"),
    "one holds up all": (trials.one_holds_up_all, "one of three"),
    "left out for good": (trials.left_out_for_good, "untriable"),
    "replaced without rehearsal": (trials.replaced_without_rehearsal, "rehearsal refused"),
    "state is not tried": (trials.state_is_not_tried, "state refused"),
    "loads before the kubelet": (loading.loads_before_the_kubelet, "late kubelet"),
    "an old answer of the agent counts": (loading.an_old_answer_of_the_agent_counts, "taken back"),
    "reconfigures again": (loading.reconfigures_again, "busy"),
    "refused text is live": (loading.refused_text_is_live, "rolled back"),
    "unproven text is live": (loading.unproven_text_is_live, "rolled back"),
    "refused text stays": (loading.refused_text_stays, "rolled back"),
    "refused text is tried at once": (loading.refused_text_is_tried_at_once, "rolled back"),
    "one end is a refusal": (loading.one_end_is_a_refusal, "ended once"),
    "texts of others are ours": (loading.texts_of_others_are_ours, "put back"),
    "names of no node are live": (loading.names_of_no_node_are_live, "no address"),
    "released before it is out": (loading.released_before_it_is_out, "node set goes"),
    "good before it is proven": (loading.good_before_it_is_proven, "rolled back"),
    "nothing ever ran": (loading.nothing_ever_ran, "refused"),
    "partitions go at once": (in_use.partitions_go_at_once, "in use: partition"),
    "silence is nobody": (in_use.silence_is_nobody, "silent"),
    "old answers count": (in_use.old_answers_count, "old answer"),
    "no second question": (in_use.no_second_question, "expensive answer"),
    "keys go at once": (in_use.keys_go_at_once, "in use: key"),
    "nodes go at once": (in_use.nodes_go_at_once, "in use: node"),
    "licenses go at once": (in_use.licenses_go_at_once, "in use: license"),
    "reservations do not count": (in_use.reservations_do_not_count, "reserved"),
    "opened by hand goes": (in_use.opened_by_hand_goes, "opened by hand"),
    "states set by hand are lost": (in_use.states_set_by_hand_are_lost, "closed by hand"),
}

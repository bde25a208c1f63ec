"""A key set is rotated step by step: what is accepted and when, and what conditions say meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slinky_operator.cluster.parts.keys.proof import key_holders
from slinky_operator.cluster.secrets.checks import Missing
from tests.unit.cluster.parts.keys.key_model import (
    CONTROLLER,
    COPY,
    EXPIRES,
    MINE,
    OURS,
    SLURMDS,
    STAGED,
    Model,
    key_set,
    pod,
)

A, AB, BA, B = ("A",), ("A", "b"), ("a-", "B"), ("B",)


def until_done(model: Model, passes: int = 200) -> None:
    for _ in range(passes):
        if model.is_done:
            return
        model.passes(3)
    raise AssertionError(f"not done: {model.keys.trouble or model.keys.held}")


def refusal(model: Model) -> Missing:
    assert model.keys.slurm is not None
    return model.keys.slurm


def a_text_waits(model: Model) -> bool:
    return model.wants_reload


def expire(model: Model) -> None:
    model.world.wall += EXPIRES
    model.world.now += EXPIRES.total_seconds()
    model.passes(3, 3)


def test_a_rotation_needs_nothing_but_its_three_steps_and_one_reconfigure_for_each_that_matters() -> None:
    model = Model()
    model.passes(3)
    for names in (AB, BA):
        model.write(*names)
        until_done(model)
        assert model.accepted == key_set(*names)
        assert {*model.loaded.values()} == {key_set(*names)}
    expire(model)
    model.write(*B)
    until_done(model)
    assert model.accepted == key_set(*B)
    # Daemons that still have the earlier key in memory refuse it: it has expired.
    assert model.reloads == 2
    assert not model.separated


def test_a_generated_set_becomes_the_users_with_the_first_step_and_is_rotated_like_any_other() -> None:
    model = Model(OURS)
    model.passes(3, 3)
    assert not model.reloads
    for names in (AB, BA):
        model.write(*names)
        until_done(model)
        assert {*model.loaded.values()} == {model.accepted} == {key_set(*names)}
    expire(model)
    model.write(*B)
    until_done(model)
    assert model.accepted == key_set(*B)
    assert not model.separated
    assert not model.replaced_pods
    # Who takes the name away again gets the set that daemons have back into the generated Secret. The rest of the
    # plan has removed the fingerprint of the first one.
    del model.world.children["StatefulSet", "slurm-controller"]["metadata"]["annotations"]
    model.world.raw = {**model.world.raw, "spec": {}}
    model.passes(3, 3)
    assert model.world.secrets[OURS] == {"slurm.jwks": key_set(*B)}
    assert model.world.secrets[STAGED] == {"slurm.jwks": key_set(*B)}
    assert model.accepted == key_set(*B)


@pytest.mark.parametrize("names", [("B",), ("a", "B"), ("b",)])
def test_a_set_without_the_generated_key_or_with_another_default_is_refused(names: tuple[str, ...]) -> None:
    model = Model(OURS)
    model.write(*names)
    model.wait()
    assert refusal(model).reason == "KeyChanged"
    assert model.accepted == model.offered == key_set(*A)
    assert not model.separated


def test_the_second_step_before_the_first_is_read_is_refused_and_says_who_lacks_it_and_what_to_write() -> None:
    """This order separated slurmctld from every slurmd: the first step went with a configuration that was refused."""
    model = Model(MINE, refused_text=True, wants_reload=True)
    model.passes(3)
    model.write(*AB)
    model.passes(5)
    model.write(*BA)
    model.passes(5, 5)
    trouble = refusal(model)
    assert trouble.reason == "KeyChanged"
    assert "slurmd of compute-0 does not have key b" in trouble.message
    assert "Put that set back, which is slurm.key of Secret slurm-auth-copy" in trouble.message
    assert model.accepted == key_set(*AB)
    # The text is mended, and waits: no reconfigure carries the keys that are refused.
    model.refused_text = False
    model.wait()
    assert model.reloads == 0
    assert a_text_waits(model)
    # It waits no longer than kubelets need, once the set is back.
    model.put_back()
    model.passes(5, 5)
    assert model.reloads == 0
    model.wait()
    assert not a_text_waits(model)
    until_done(model)
    model.write(*BA)
    until_done(model)
    assert model.accepted == key_set(*BA)
    assert not model.separated


def test_an_early_step_waits_until_the_one_before_is_proven_and_nothing_has_to_be_put_back() -> None:
    model = Model(refused_text=True, wants_reload=True)
    model.passes(3)
    model.write(*AB)
    model.write(*BA)
    model.passes(5, 5)
    assert model.accepted == key_set(*AB)
    trouble = refusal(model)
    assert trouble.reason == "KeyPending"
    assert "is the next step, which is taken when all daemons have proven to have the set before it" in trouble.message
    assert "slurmd of compute-0 does not have key b" in trouble.message
    model.refused_text = False
    model.passes(3)
    assert not a_text_waits(model), "no configuration waits for it"
    until_done(model)
    assert {*model.loaded.values()} == {key_set(*BA)}
    assert not model.separated


def test_while_a_set_is_refused_daemons_that_start_get_the_accepted_one_and_configurations_go_live() -> None:
    """A pod that started mounted the refused set, and was separated from all others."""
    model = Model()
    model.passes(3)
    model.write("a", "C")
    model.passes(5)
    assert refusal(model).reason == "KeyChanged"
    assert "so none gets it: daemons and new pods go on with the key that was accepted before" in refusal(model).message
    for name in (*SLURMDS, CONTROLLER):
        model.start(name)
    model.wants_reload = True
    model.wait()
    assert not a_text_waits(model)
    assert {*model.loaded.values()} == {key_set(*A)}
    assert model.keys.mountable
    assert not model.separated
    # Daemons that mount the user's Secret are separated by it.
    direct = Model(MINE)
    direct.write("a", "C")
    direct.start(SLURMDS[0])
    assert direct.separated


def test_a_key_of_the_users_that_is_gone_or_no_key_set_stops_nothing() -> None:
    for left in ({}, {"slurm.jwks": b"{}"}):
        model = Model()
        model.passes(3)
        model.world.secrets[MINE] = left
        model.wants_reload = True
        model.passes(3, 3)
        assert "daemons and new pods go on with the key that was accepted before" in refusal(model).message
        assert not a_text_waits(model)
        assert model.keys.mountable
        model.start(SLURMDS[0])
        assert not model.separated


@pytest.mark.parametrize("restart", [False, True], ids=["same-operator", "another"])
def test_what_pods_mount_is_written_again_if_somebody_deletes_or_changes_it(restart: bool) -> None:
    model = Model()
    model.write(*AB)
    until_done(model)
    del model.world.secrets[STAGED]
    if restart:
        model.kill()
    model.passes(3)
    assert model.offered == key_set(*AB)
    until_done(model)
    model.tamper()
    model.wants_reload = True
    if restart:
        model.kill()
    model.passes(3, 3)
    assert model.offered == key_set(*AB)
    assert restart or a_text_waits(model), "a kubelet may have mounted the other one in between"
    model.wait()
    assert not a_text_waits(model)
    until_done(model)


def test_the_accepted_key_is_known_from_what_pods_mount_if_the_copy_is_lost() -> None:
    model = Model()
    model.write(*AB)
    until_done(model)
    model.write("a", "C")
    del model.world.secrets[COPY]
    model.kill()
    model.passes(3)
    assert model.accepted == key_set(*AB)
    assert refusal(model).reason == "KeyChanged"


def test_a_refused_text_does_not_keep_a_step_from_the_daemons() -> None:
    model = Model(refused_text=True, wants_reload=True)
    model.write(*AB)
    until_done(model)
    model.write(*BA)
    until_done(model)
    assert {*model.loaded.values()} == {key_set(*BA)}
    assert not model.separated


def test_a_set_that_was_refused_and_put_back_unseen_is_not_carried_by_a_configuration() -> None:
    model = Model(MINE)
    model.passes(3)
    # Kubelets have mounted it before the operator reads the Secret again.
    for name in model.mounted:
        model.mounted[name] = key_set("a", "C")
    model.put_back()
    model.wants_reload = True
    model.passes(3, 3)
    assert model.reloads == 0
    assert "kubelets may still have mounted what it had before" in model.keys.held.message  # type: ignore[union-attr]
    model.wait()
    assert not a_text_waits(model)
    assert not model.separated


@pytest.mark.parametrize("restart", [False, True], ids=["same-operator", "another"])
def test_a_slurmd_that_cannot_be_reached_keeps_the_next_step_waiting_and_is_named(restart: bool) -> None:
    model = Model()
    model.passes(3)
    model.write(*AB)
    model.away = {SLURMDS[0]}
    model.wait()
    if restart:
        model.kill()
    model.write(*BA)
    model.passes(5, 5)
    assert model.accepted == key_set(*AB)
    trouble = refusal(model)
    assert "slurmd of compute-0 cannot be asked: no answer within 3 s" in trouble.message
    assert "compute-1" not in trouble.message
    model.put_back()
    model.away = set()
    until_done(model)
    model.write(*BA)
    until_done(model)
    assert not model.separated


def test_the_earlier_key_is_dropped_only_when_slurmctld_refuses_it() -> None:
    """slurmctld does not show its default: one that has not read the second step takes the earlier key for ever."""
    model = Model()
    for names in (AB, BA):
        model.write(*names)
        until_done(model)
    # A slurmctld that has come back with what its kubelet had mounted long ago.
    model.loaded[CONTROLLER] = model.mounted[CONTROLLER] = key_set(*AB)
    model.world.wall += EXPIRES
    model.world.now += EXPIRES.total_seconds()
    model.write(*B)
    model.passes(5)
    assert model.accepted == key_set(*BA)
    assert "slurmctld still takes key a, which has expired" in refusal(model).message


def test_a_key_that_expired_in_an_earlier_set_does_not_show_a_later_switch() -> None:
    model = Model()
    for names in (AB, BA):
        model.write(*names)
        until_done(model)
    expire(model)
    model.write("a-", "B", "c")
    model.passes(3, 3)
    until_done(model)
    model.write("a-", "b", "C")
    model.passes(3, 3)
    assert model.accepted == key_set("a-", "b", "C")
    # All slurmds have read the switch by themselves, and slurmctld refuses the key that expired long ago.
    for name in SLURMDS:
        model.loaded[name] = model.mounted[name] = key_set("a-", "b", "C")
    model.passes(6, 12)
    assert not model.is_done
    assert "slurmctld has not read the set" in model.keys.step.message  # type: ignore[union-attr]
    until_done(model)
    assert model.loaded[CONTROLLER] == key_set("a-", "b", "C")


def test_a_configuration_need_not_wait_for_kubelets_with_an_accepted_step() -> None:
    model = Model(MINE)
    model.passes(3)
    model.write(*AB)
    model.passes(3)
    assert model.accepted == key_set(*AB)
    model.wants_reload = True
    model.passes(1)
    assert not a_text_waits(model)
    until_done(model)
    # One that follows a refused set does: kubelets may have mounted that.
    model.write("a", "C")
    model.passes(3)
    model.write("A", "b", "d")
    assert model.accepted == key_set("A", "b", "d")
    model.wants_reload = True
    model.passes(3)
    assert a_text_waits(model)
    model.wait()
    assert not model.separated


def test_an_administrator_may_vouch_for_a_machine_that_cannot_be_reached_and_for_no_pod() -> None:
    model = Model()
    snapshot = model.world.snapshot()
    assert not key_holders.is_confirmed(snapshot, ("b", "a"))
    snapshot.raw["metadata"]["annotations"] = {key_holders.ANNOTATION_CONFIRMED: "b, a"}
    assert key_holders.is_confirmed(snapshot, ("b", "a"))
    assert not any(one.elsewhere for one in key_holders.holders(snapshot).asked)


def test_nobody_is_asked_again_once_all_have_proven_it_whoever_the_operator_is() -> None:
    model = Model()
    model.write(*AB)
    until_done(model)
    model.kill()
    assert model.keys.standing is not None
    assert model.keys.standing.set is None
    assert model.is_done
    assert model.reloads == 1


def test_with_no_slurmd_left_a_set_that_nobody_can_prove_is_used_all_the_same() -> None:
    """The way out: without it, a daemon that never answers would keep the earlier keys for ever."""
    model = Model()
    model.passes(3)
    model.away = {CONTROLLER}
    model.world.running, model.world.pods = [], []
    model.world.memory.answers.note(JobsQuestion, Jobs(model.world.now, 0.0, JobCounts()))
    model.write(*AB)
    assert model.accepted == key_set(*AB)
    assert model.replaced_pods == ["slurm-controller-0"]


def test_a_slurmdbd_that_has_started_with_an_older_mount_is_started_again_once() -> None:
    model = Model()
    model.passes(3)
    spec = {**model.world.raw["spec"], "accounting": {}}
    model.world.raw = {**model.world.raw, "spec": spec}
    slurmdbd = pod("slurm-accounting-0", "10.0.2.1")
    slurmdbd["metadata"]["creationTimestamp"] = (model.world.wall + timedelta(seconds=5)).isoformat()
    model.world.daemon_pods["accounting"] = (slurmdbd,)
    model.loaded["slurmdbd"] = model.mounted["slurmdbd"] = key_set(*A)
    model.passes(3)
    model.write(*AB)
    # It has not got the key, whatever slurmctld and slurmds have.
    model.refresh.pop("slurmdbd")
    model.passes(30, 30, 30)
    assert model.replaced_pods == []
    model.passes(31, 3)
    assert model.replaced_pods[:1] == ["slurm-accounting-0"]
    assert not model.is_done
    # Its successor is newer than the time for kubelets, and not deleted.
    model.replaced_pods.clear()
    slurmdbd["metadata"] |= {"uid": "another", "creationTimestamp": model.world.wall.isoformat()}
    model.passes(30, 30, 30, 30)
    assert model.replaced_pods == []
    model.loaded["slurmdbd"] = key_set(*AB)
    until_done(model)


def test_a_cluster_of_an_earlier_operator_is_asked_once_and_not_reconfigured() -> None:
    model = Model()
    model.passes(3)
    del model.world.secrets["slurm-auth-copy"]["slurm-keys-loaded"]
    model.kill()
    until_done(model)
    assert model.reloads == 0
    assert model.world.secrets["slurm-auth-copy"]["slurm-keys-loaded"].endswith(b" all")


def test_a_slurmctld_that_has_not_read_the_set_is_noticed_though_it_does_not_show_its_default() -> None:
    model = Model()
    model.write(*AB)
    until_done(model)
    model.write(*BA)
    # All slurmds were started again by their kubelets, and slurmctld was not.
    for name in SLURMDS:
        model.loaded[name] = model.mounted[name] = key_set(*BA)
    model.passes(5, 5)
    assert not model.is_done
    assert "slurmctld has not read the set since kubelets" in model.keys.step.message  # type: ignore[union-attr]
    until_done(model)
    assert model.loaded[CONTROLLER] == key_set(*BA)


def test_a_proof_of_a_while_ago_does_not_count_for_the_next_step() -> None:
    model = Model()
    model.write(*AB)
    until_done(model)
    model.wait()
    # Its Node has come back with what it had mounted long before.
    model.loaded[SLURMDS[0]] = model.mounted[SLURMDS[0]] = key_set(*A)
    model.write(*BA)
    model.passes(5)
    assert model.accepted == key_set(*AB)
    assert "slurmd of compute-0 does not have key b" in refusal(model).message


def test_kubelets_get_their_time_whatever_the_clock_of_the_api_server_says() -> None:
    model = Model()
    model.passes(3)
    model.write(*AB)
    model.world.written["mine"] = model.world.written["mine"][0], model.world.wall - timedelta(days=400)
    model.passes(20, 20, 20)
    assert model.reloads == 0
    until_done(model)
    assert model.reloads == 1


def test_the_model_notices_daemons_that_are_separated() -> None:
    model = Model()
    model.loaded[CONTROLLER] = key_set(*BA)
    model.passes(1)
    assert model.separated

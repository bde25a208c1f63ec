"""The judge finds what is wrong, and nothing in what is right; what Slurm itself does is no finding."""

from __future__ import annotations

import dataclasses

import pytest

from tests.campaign.faults.claims import DATABASE_FULL, STATE_FULL
from tests.campaign.faults.machines import LOSSES, NODE_GONE, NODE_LOST, NODE_REPLACED
from tests.campaign.faults.processes import MARIADB_KILLED, SLURMCTLD_ENDED, SLURMCTLD_KILLED
from tests.campaign.lanes.actions import DELETE_SLURMCTLD, EDIT_CLUSTER
from tests.campaign.lanes.pods import POD_KINDS
from tests.campaign.verdict import AROUND, FORGOTTEN, SLURMDBD_AWAY, UNSENT, forgotten, judge
from tests.campaign.witness import NO_NODES, OBJECT, Asked, Happened, Line, Record, Seen, with_answers

START, END = 1000.0, 1030.0


def line(what: str, at: float, task: str = "-", restarts: int = 0) -> Line:
    return Line(what, "7", task, restarts, "a-0", at)


def world(
    *lines: Line, kind: str = "long", state: str = "COMPLETED", job: str = "7", happened: tuple[Happened, ...] = ()
) -> Seen:
    records = (Record("7", "m", state, "0:0", START, END, "a-0"),) if state else ()
    return Seen(asked=(Asked("m", kind, START - 1, job),), lines={"m": lines}, records=records, happened=happened)


RIGHT = world(line("start", START), line("end", END))


def kinds(seen: Seen) -> list[str]:
    return [one.what for one in judge(seen)]


def test_a_job_that_ran_once_and_is_recorded_so_is_no_finding() -> None:
    assert judge(RIGHT) == []


def test_a_job_that_was_refused_is_no_finding() -> None:
    assert judge(world(state="", job="")) == []


def refused(job: str, nodes: str = NO_NODES, state: str = "FAILED", kind: str = "long") -> Seen:
    seen = world(job=job, kind=kind)
    return dataclasses.replace(seen, records=(Record("7", "m", state, "1:0", START, START, nodes),))


def test_what_slurmctld_records_of_a_job_that_it_has_refused_is_no_finding() -> None:
    assert judge(refused("")) == []
    assert kinds(refused("7")) == ["lost", "recorded otherwise"]
    assert kinds(refused("", nodes="a-0")) == ["lost", "recorded otherwise"]
    assert judge(refused("", state="CANCELLED by 0", kind="heterogeneous")) == []
    assert "lost" in kinds(refused("", state="CANCELLED by 0"))
    assert "lost" in kinds(refused("7", state="CANCELLED by 0", kind="heterogeneous"))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (world(line("start", START), state="NODE_FAIL"), ["killed", "recorded otherwise"]),
        (world(line("start", START)), ["killed"]),
        (world(line("start", START), line("start", START + 9, restarts=1), line("end", END)), ["ran twice"]),
        (world(line("start", START), line("end", END), line("start", END + 1), line("end", END + 2)), ["ran twice"]),
        (world(state=""), ["lost", "not recorded"]),
        (world(state="PENDING"), ["lost", "recorded otherwise"]),
        (world(line("start", START), line("end", END), state="FAILED"), ["recorded otherwise"]),
        (world(line("start", START), line("end", END), state=""), ["not recorded"]),
        # The answer to sbatch was lost: the job is there all the same.
        (world(line("start", START), job=""), ["killed"]),
        (world(line("start", START, "1"), line("end", END, "1"), kind="array"), ["lost"]),
        (
            world(*(line(what, at, task) for task in "123" for what, at in (("start", START), ("end", END))),
                  line("start", END + 1, "2"), kind="array"),
            ["ran twice"],
        ),
        (world(line("start", START), line("start", START + 5), kind="cancelled", state="CANCELLED"), ["ran twice"]),
        (world(line("start", START), kind="cancelled", state="NODE_FAIL"), ["recorded otherwise"]),
    ],
)  # fmt: skip
def test_a_wrong_world_is_found(seen: Seen, expected: list[str]) -> None:
    assert kinds(seen) == expected


def test_a_slurmjob_is_submitted_once_and_lost_where_kubernetes_has_it_and_slurm_never_had() -> None:
    twice = world(line("start", START), line("end", END), kind="SlurmJob", job=OBJECT)
    again = Record("8", "m", "COMPLETED", "0:0", START, END, "a-0")
    assert judge(twice) == []
    assert kinds(dataclasses.replace(twice, records=(*twice.records, again))) == ["submitted twice"]
    assert kinds(world(state="", kind="SlurmJob", job=OBJECT)) == ["lost", "not recorded"]


def test_a_job_that_a_killed_slurmctld_has_forgotten_may_run_again_although_it_is_to_be_cancelled() -> None:
    lines = (line("start", START), line("start", START + 50), line("end", START + 90))
    killed = (Happened(START + 4, START + 4, SLURMCTLD_KILLED, ""),)
    assert kinds(world(*lines, kind="cancelled", state="CANCELLED")) == ["ran twice"]
    assert kinds(world(*lines, kind="cancelled", state="CANCELLED", happened=killed)) == []


def test_what_the_campaign_cancelled_is_no_finding() -> None:
    assert judge(world(line("start", START), kind="cancelled", state="CANCELLED")) == []
    assert judge(world(kind="cancelled", state="CANCELLED")) == []


@pytest.mark.parametrize("at", [START + 1, START + FORGOTTEN, START - AROUND, END + FORGOTTEN])
def test_what_slurmctld_forgets_when_it_is_killed_is_no_finding(at: float) -> None:
    killed = (Happened(at, at, SLURMCTLD_KILLED, ""),)
    wrong = (line("start", START), line("start", START + 9, restarts=1), line("end", END))
    assert judge(world(*wrong, state="FAILED", happened=killed)) == []


def test_a_job_whose_submission_took_long_is_forgotten_until_it_was_answered() -> None:
    asked = Asked("m", "long", START, OBJECT, until=START + 16)
    killed = Happened(START + 23, START + 24, SLURMCTLD_KILLED, "")
    seen = dataclasses.replace(world(state="PENDING", happened=(killed,)), asked=(asked,))
    assert judge(seen) == []
    assert kinds(dataclasses.replace(seen, asked=(dataclasses.replace(asked, until=START),))) == [
        "lost",
        "recorded otherwise",
    ]


def test_the_job_of_an_object_is_forgotten_until_slurm_has_taken_it_however_long_the_operator_waited() -> None:
    made = [Asked("m", "long", START, OBJECT, until=START + 1), Asked("n", "long", START, OBJECT, "pod-1")]
    killed = Happened(START + 43, START + 44, SLURMCTLD_KILLED, "")
    seen = world(state="PENDING", happened=(killed,))

    def lost(submissions: dict[str, float]) -> int:
        asked = with_answers(made, submissions)
        return kinds(dataclasses.replace(seen, asked=asked)).count("lost")

    assert lost({"pod-1": START + 40, "m": START + 30, "another": START + 42}) == 0
    assert lost({"pod-1": START + 40, "m": START + 20}) == 1
    assert lost({}) == 2


@pytest.mark.parametrize("state", ["NODE_FAIL", "REQUEUED"])
def test_an_attempt_that_slurm_placed_and_never_launched_is_no_finding_once_the_job_has_run(state: str) -> None:
    seen = world(line("start", START, restarts=1), line("end", END, restarts=1))
    missed = Record("7", "m", state, "1:0", START - 90, START - 50, "a-0")
    assert judge(dataclasses.replace(seen, records=(missed, *seen.records))) == []
    begun = dataclasses.replace(missed, end=START + 1)
    assert kinds(dataclasses.replace(seen, records=(begun, *seen.records))) == ["recorded otherwise"]
    assert kinds(dataclasses.replace(world(state=""), records=(missed,))) == ["lost", "recorded otherwise"]


def test_a_task_of_an_array_that_was_not_launched_is_told_apart_from_those_that_began_meanwhile() -> None:
    late = (line("start", END + 60, "2", restarts=1), line("end", END + 70, "2", restarts=1))
    others = [one for task in ("1", "3") for one in (line("start", START, task), line("end", END, task))]
    seen = world(*others, *late, kind="array", state="")
    done = [Record(f"7_{task}", "m", "COMPLETED", "0:0", START, END, "a-0") for task in (1, 3)]
    done.append(Record("7_2", "m", "COMPLETED", "0:0", END + 60, END + 70, "a-0"))
    missed = Record("7_2", "m", "NODE_FAIL", "0:0", START, END, "b-1")
    assert judge(dataclasses.replace(seen, records=(*done, missed))) == []
    begun = dataclasses.replace(missed, job="7_3")
    assert kinds(dataclasses.replace(seen, records=(*done, begun))) == ["recorded otherwise"]


@pytest.mark.parametrize("at", [START + FORGOTTEN + 2, END + FORGOTTEN + 2])
def test_a_kill_of_slurmctld_at_another_time_excuses_nothing(at: float) -> None:
    killed = (Happened(at, at, SLURMCTLD_KILLED, ""),)
    seen = world(line("start", START - 1), line("end", END), state="FAILED", happened=killed)
    assert kinds(dataclasses.replace(seen, lines={"m": seen.lines["m"][:1]}))[:1] == ["killed"]


@pytest.mark.parametrize("what", ["slurmctld frozen", "slurmctld ended", "operator killed", "API server killed"])
def test_no_other_fault_excuses_a_lost_job(what: str) -> None:
    happened = (Happened(START + 1, START + 2, what, ""),)
    assert kinds(world(line("start", START), state="NODE_FAIL", happened=happened)) == ["killed", "recorded otherwise"]


def test_a_kill_of_mariadb_excuses_a_record_and_no_job() -> None:
    killed = (Happened(START + 1, START + 1, MARIADB_KILLED, ""),)
    assert judge(world(line("start", START), line("end", END), state="RUNNING", happened=killed)) == []
    assert kinds(world(line("start", START), state="RUNNING", happened=killed)) == ["killed"]


@pytest.mark.parametrize("what", SLURMDBD_AWAY)
def test_what_slurmctld_had_not_sent_when_it_was_killed_is_not_recorded(what: str) -> None:
    lines = (line("start", START), line("end", END))
    away = Happened(START + 1, END + 10, what, "")
    kill = Happened(END + 2 * FORGOTTEN, END + 2 * FORGOTTEN, SLURMCTLD_KILLED, "")
    assert judge(world(*lines, state="RUNNING", happened=(away, kill))) == []
    assert "recorded otherwise" in kinds(world(*lines, state="RUNNING", happened=(kill,)))
    # All was sent before it was killed, or the job ended before.
    late = dataclasses.replace(kill, at=away.until + UNSENT + 1, until=away.until + UNSENT + 1)
    early = dataclasses.replace(away, at=END + FORGOTTEN + 1, until=END + FORGOTTEN + 2)
    excused_alone = [] if what in {MARIADB_KILLED, DATABASE_FULL} else ["recorded otherwise"]
    assert kinds(world(*lines, state="RUNNING", happened=(away, late))) == excused_alone
    assert kinds(world(*lines, state="RUNNING", happened=(early, kill))) == ["recorded otherwise"]
    # It is no excuse for the job.
    assert "killed" in kinds(world(line("start", START), state="RUNNING", happened=(away, kill)))


def test_what_is_wrong_with_objects_costs_and_secrets_is_found() -> None:
    seen = dataclasses.replace(
        RIGHT, unsettled=("Cluster: not ready",), orphans=("pod a-7: is there",), costs=("operator: 1 core",),
        leaks=("Events: has slurm-auth-jwt/jwt.key",), loops=("operator: 900 times in 10 s calls to Slurm",),
    )  # fmt: skip
    assert [(one.what, one.about, one.why) for one in judge(seen)] == [
        ("not settled", "Cluster", "not ready"),
        ("orphan", "pod a-7", "is there"),
        ("cost", "operator", "1 core"),
        ("secret told", "Events", "has slurm-auth-jwt/jwt.key"),
        ("hot loop", "operator", "900 times in 10 s calls to Slurm"),
    ]


@pytest.mark.parametrize("what", [SLURMCTLD_ENDED, DELETE_SLURMCTLD])
def test_what_a_slurmctld_with_a_full_disk_cannot_save_is_forgotten_with_it(what: str) -> None:
    wrong = (line("start", START), line("start", START + 95, restarts=1), line("end", START + 99))
    full = Happened(START - 1, START + 60, STATE_FULL, "")
    ended = Happened(START + 50, START + 50, what, "")
    assert judge(world(*wrong, state="FAILED", happened=(full, ended))) == []
    # It saves its state when it ends, where there is room; and a full disk alone ends nothing.
    assert "ran twice" in kinds(world(*wrong, state="FAILED", happened=(ended,)))
    assert "ran twice" in kinds(world(*wrong, state="FAILED", happened=(full,)))


def test_a_deleted_slurmctld_finds_no_room_although_its_disk_was_full_only_after() -> None:
    again = (line("start", START + 95, restarts=1), line("end", START + 99, restarts=1))
    wrong = (line("start", START), line("end", START + 5), *again)
    deleted = Happened(START + 1, START + 1, DELETE_SLURMCTLD, "")
    assert judge(world(*wrong, happened=(deleted, Happened(START + 3, START + 20, STATE_FULL, "")))) == []
    assert "ran twice" in kinds(world(*wrong, happened=(deleted, Happened(START + 45, START + 60, STATE_FULL, ""))))
    ended = Happened(START + 1, START + 1, SLURMCTLD_ENDED, "")
    assert "ran twice" in kinds(world(*wrong, happened=(ended, Happened(START + 3, START + 20, STATE_FULL, ""))))


def reserved(command: str, at: float, said: str = "") -> Happened:
    return Happened(at, at, f"scontrol {command} reservationname=m", said)


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ((reserved("update", START + 8),), []),
        ((reserved("delete", START + 8, "refused: no answer in 35 s"),), []),
        # Slurm keeps a reservation in which a job runs; one that was only made ends nothing; nor does that of another.
        (
            (reserved("delete", START + 8, "refused: Requested reservation is in use"),),
            ["killed", "recorded otherwise"],
        ),
        ((reserved("create reservation", START + 8),), ["killed", "recorded otherwise"]),
        ((reserved("update", END + 9),), ["killed", "recorded otherwise"]),
        ((Happened(START, START, "scontrol update reservationname=m-2", ""),), ["killed", "recorded otherwise"]),
    ],
)
def test_what_ends_with_its_reservation_is_ended_by_slurm(commands: tuple[Happened, ...], expected: list[str]) -> None:
    kind = "in a reservation that ends"
    assert kinds(world(line("start", START), kind=kind, state="TIMEOUT", happened=commands)) == expected


def test_a_job_of_a_reservation_that_ended_runs_once_and_ends_in_no_other_way() -> None:
    ended = (reserved("update", START + 8),)
    kind = "in a reservation that ends"
    assert kinds(world(line("start", START), kind=kind, state="NODE_FAIL", happened=ended)) == [
        "killed",
        "recorded otherwise",
    ]
    again = (line("start", START), line("start", START + 20, restarts=1))
    assert kinds(world(*again, kind=kind, state="TIMEOUT", happened=ended)) == ["ran twice"]
    # It was held, and had to be released.
    assert kinds(world(kind=kind, state="PENDING", happened=ended)) == ["lost", "recorded otherwise"]


def lost(at: float, what: str, after: int = 3) -> Happened:
    return Happened(at, at + 40, NODE_LOST, f"node-1 is lost after {after} s, with {what}")


@pytest.mark.parametrize("what", LOSSES)
def test_what_ran_on_a_node_that_was_lost_is_no_finding_and_all_else_is(what: str) -> None:
    on_it, beside = (
        Happened(START + 5, START + 70, what, f"node-1 is lost after 3 s, with node-1, {one}") for one in ("a-0", "a-1")
    )
    wrong = (line("start", START), line("start", START + 70, restarts=1), line("end", START + 90))
    assert judge(world(*wrong, state="NODE_FAIL", happened=(on_it,))) == []
    assert kinds(world(*wrong, state="NODE_FAIL", happened=(beside,))) == ["ran twice", "recorded otherwise"]


@pytest.mark.parametrize(
    ("what", "expected"), [(NODE_LOST, ["met nothing"]), (NODE_REPLACED, ["met nothing"]), (NODE_GONE, [])]
)
def test_what_was_on_a_node_for_which_none_comes_is_away_until_the_end(what: str, expected: list[str]) -> None:
    gone = Happened(START, START + 60, what, "node-1 is lost after 3 s, with node-1, slurmctld")
    missed = Happened(START + 900, START + 915, SLURMCTLD_KILLED, "met nothing: no process is there", 7, has_met=False)
    assert kinds(dataclasses.replace(RIGHT, lines={"m": ()}, asked=(), happened=(gone, missed))) == expected


def test_what_ran_on_a_node_that_was_lost_is_no_finding() -> None:
    wrong = (line("start", START), line("start", START + 70, restarts=1), line("end", START + 90))
    assert judge(world(*wrong, state="NODE_FAIL", happened=(lost(START + 5, "node-1, a-0"),))) == []
    assert judge(world(line("start", START), state="", happened=(lost(START + 5, "node-1, a-0"),))) == []
    # Its slurmd was killed a moment later, or much later on a busy machine.
    for before, after in ((7, 3), (25, 26)):
        late = lost(START - before, "node-1, a-0", after)
        assert judge(world(*wrong, state="NODE_FAIL", happened=(late,))) == []


@pytest.mark.parametrize(
    "happened", [lost(START + 5, "node-1, a-1"), lost(START - 20, "node-1, a-0"), lost(END + 9, "node-1, a-0")]
)
def test_another_node_or_another_time_excuses_nothing(happened: Happened) -> None:
    wrong = (line("start", START), line("end", END), line("start", END + 60, restarts=1), line("end", END + 61))
    assert kinds(world(*wrong, happened=(happened,))) == ["ran twice"]


def test_a_job_of_two_nodes_ends_with_either() -> None:
    seen = world(line("start", START), state="NODE_FAIL", happened=(lost(START + 5, "node-1, a-2"),))
    two = dataclasses.replace(seen, records=(dataclasses.replace(seen.records[0], nodes="a-[0,2]"),))
    assert kinds(seen) == ["killed", "recorded otherwise"]
    assert judge(two) == []


def test_daemons_that_are_lost_with_a_node_are_killed() -> None:
    wrong = (line("start", START), line("start", START + 9, restarts=1), line("end", END))
    with_slurmctld, with_mariadb = (lost(START + 5, f"node-1, a-1, {one}") for one in ("slurmctld", "mariadbd"))
    assert judge(world(*wrong, state="FAILED", happened=(with_slurmctld,))) == []
    assert kinds(world(*wrong, happened=(with_mariadb,))) == ["ran twice"]
    assert judge(world(line("start", START), line("end", END), state="RUNNING", happened=(with_mariadb,))) == []


def test_a_full_disk_of_mariadb_excuses_a_record_and_no_job() -> None:
    full = (Happened(START + 1, START + 9, DATABASE_FULL, ""),)
    assert judge(world(line("start", START), line("end", END), state="RUNNING", happened=full)) == []
    assert kinds(world(line("start", START), state="RUNNING", happened=full)) == ["killed"]


@pytest.mark.parametrize("kind", POD_KINDS)
def test_a_pod_is_judged_as_a_job_is(kind: str) -> None:
    right = (Line("start", "pod", "-", 0, "node-2", START), Line("end", "pod", "-", 0, "node-2", END))
    assert judge(world(*right, kind=kind, job=OBJECT)) == []
    assert kinds(world(right[0], kind=kind, job=OBJECT, state="NODE_FAIL")) == ["killed", "recorded otherwise"]
    assert kinds(world(*right, right[0], right[1], kind=kind, job=OBJECT)) == ["ran twice"]
    assert kinds(world(kind=kind, job=OBJECT, state="")) == ["lost", "not recorded"]


def test_the_job_of_a_pod_that_slurm_placed_is_cancelled_when_the_pod_has_ended_and_no_other_is() -> None:
    right = (Line("start", "pod", "-", 0, "node-2", START), Line("end", "pod", "-", 0, "node-2", END))
    found = {name: kinds(world(*right, kind=name, job=OBJECT, state="CANCELLED")) for name in POD_KINDS}
    assert found == {"pod that Slurm places": [], "pod on a virtual Node": ["recorded otherwise"]}


@pytest.mark.parametrize(("at", "expected"), [(START, ["met nothing"]), (END + 30, [])])
def test_a_fault_that_met_nothing_is_told_unless_a_node_with_all_on_it_was_lost(at: float, expected: list[str]) -> None:
    missed = Happened(at, at + 15, SLURMCTLD_KILLED, "met nothing: no process of slurmctld is there", 7, has_met=False)
    happened = (lost(END + 20, "node-1, a-1, slurmctld"), missed)
    assert kinds(dataclasses.replace(RIGHT, happened=happened)) == expected


@pytest.mark.parametrize(
    ("lines", "at", "expected"),
    [
        ((line("start", START), line("end", END)), END + 5, {"m"}),
        ((line("start", START), line("end", END)), END + FORGOTTEN + 2, set()),
        # It runs.
        ((line("start", START),), START + 5, set()),
        ((line("start", START, "1"), line("end", END, "1"), line("start", START, "2")), END + 5, set()),
    ],
)
def test_slurmctld_may_have_forgotten_ends_shortly_before_it_was_killed(
    lines: tuple[Line, ...], at: float, expected: set[str]
) -> None:
    assert forgotten({"m": lines}, (Happened(at, at, SLURMCTLD_KILLED, ""),)) == expected


@pytest.mark.parametrize(
    ("edited", "refused", "excused"),
    [
        ("jobs.tenants.[].namespaceLabels.*", {"m"}, True),
        ("jobs.tenants.[].namespaceLabels.*", {"another"}, False),
        # It fails, and nobody has taken the tenant away.
        ("jobs.bridge.patience", {"m"}, False),
    ],
)
def test_a_bare_pod_whose_namespace_was_taken_its_tenant_fails_as_it_has_to(
    edited: str, refused: set[str], excused: bool
) -> None:
    edit = Happened(START, START, f'{EDIT_CLUSTER} {{"field": "{edited}", "taste": "good"}}', "patched")
    seen = Seen(
        asked=(Asked("m", "pod on a virtual Node", START, OBJECT, "pod-1"),), lines={"m": ()}, happened=(edit,),
        refused=frozenset(refused),
    )  # fmt: skip
    assert (judge(seen) == []) is excused
    # What has run is judged as ever.
    assert kinds(dataclasses.replace(seen, lines={"m": (line("start", START),)})) != []
